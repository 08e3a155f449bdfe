"""How far AAP gets without code: its table, with routes and rows for whole requests, is examined as any server is.

What fails needs code: several messages in one request, what a message means for what is asked, a list of
tools whose absence switches all off, the mode `message`, words of a query, and asks that are written as calls.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.aap.profile import AapProfile
from conformance.kit.suite import load_suite
from conformance.kit.verdict import Outcome
from mappings.language import builtin_path
from mappings.language.scopes import EVENT_CUES
from tests.support.conformance.examinations import examine_at
from tests.support.gateway_server import serving
from tests.support.plain_dialect import PlainFolder

NAME = "aaplain"
ROUTES = Path(__file__).with_name("aap_routes.yaml")
BY_THE_TABLE_ALONE = """
AAP-ERR-01 AAP-HIST-01 AAP-HIST-03 AAP-HIST-04 AAP-META-01 AAP-META-02 AAP-META-03 AAP-META-04 AAP-META-05
AAP-SESS-01 AAP-SESS-02 AAP-SESS-05 AAP-SESS-07 AAP-SESS-09 AAP-SESS-10 AAP-SESS-11 AAP-SESS-13
AAP-SSE-01 AAP-SSE-02 AAP-SSE-04 AAP-SSE-05 AAP-SSE-06 AAP-SSE-07 AAP-SSE-09
AAP-TOOL-01 AAP-TOOL-02 AAP-TOOL-03 AAP-TOOL-05 AAP-TOOL-06 AAP-TURN-01 AAP-TURN-02 AAP-TURN-04
"""
"""The requirements that AAP's table meets without code."""


def aap_without_code() -> dict[str, Any]:
    """AAP's table without the cues of its projector, and with routes."""
    table, routes = (yaml.safe_load(path.read_text("utf-8")) for path in (builtin_path("aap"), ROUTES))
    frames = {cue: rows for cue, rows in table["frames"].items() if cue in EVENT_CUES}
    types = {name: kind for name, kind in table["types"].items() if isinstance(kind, str) and name != "text"}
    return {**table, **routes, "dialect": NAME, "frames": frames, "types": {**types, **routes["types"]}}


@pytest.mark.timeout(600)
async def test_aap_without_code_meets_these_requirements(plain_folder: PlainFolder) -> None:
    (plain_folder.path / "mappings" / f"{NAME}.yaml").write_text(yaml.safe_dump(aap_without_code(), sort_keys=False))
    settings = {"dialects": {NAME: {}}, "dialect_folders": [str(plain_folder.path)], "log": "memory"}
    async with serving(plain_folder.path, **settings) as served:
        profile = load_suite("aap").read_profile()
        assert isinstance(profile, AapProfile)
        report = await examine_at("aap", served.url("/aap"), profile, within=60, at_once=8)
    passed = {item.requirement.id for item in report.of(Outcome.PASSED)}
    assert sorted(passed) == BY_THE_TABLE_ALONE.split()
