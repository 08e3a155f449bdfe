"""Our own server before every examiner there is: no MUST and no SHOULD fails, and nothing is left untested.

As processes of their own: `make prove ARGS="--only conform"`, and for AAP the command of the README (`test_docs`).
"""

from itertools import count
from pathlib import Path

import pytest

from conformance.kit.reports import writer
from conformance.kit.runner import Runner
from conformance.kit.suite import Target, load_suite
from conformance.kit.verdict import Outcome
from gateway.ports import Clock
from tests.support.conformance.examination_facts import examination_facts
from tests.support.conformance.own_server import SETTINGS, address, auth, profile
from tests.support.dialect_parts import each
from tests.support.gateway_server import serving, simulation
from tests.support.key_stores import key_store


def ticking_clock() -> Clock:
    """The simulated time; no two readings are equal, as on a real server, so that what was changed last is known."""
    ticks, now = count(), simulation().wall_clock
    return lambda: now() + next(ticks) * 1e-6


@pytest.mark.parametrize("name", each("examination"))
async def test_we_conform(name: str, tmp_path: Path) -> None:
    suite, key = load_suite(name), key_store(tmp_path / "data").add("examiner")
    async with serving(tmp_path, ticking_clock(), log="sqlite", auth=auth(name), dialects=SETTINGS) as served:
        target = Target(address(name, served.address), key, allow_destructive=True)
        runner = Runner(suite, target, suite.read_profile(profile(name, tmp_path)))
        report = await runner.run(suite.catalogue.requirements)
    troubled = [item for item in report.findings if item.outcome in (Outcome.FAILED, Outcome.NOT_TESTABLE)]
    assert {item.requirement.id: item.grave[0].remark for item in troubled} == {}
    assert report.exit_code == 0
    assert [path for path in report.left if not path.startswith("the upload ")] == []
    assert bool(report.left) is examination_facts(name).leaves_something
    assert key not in writer("json")(report)
