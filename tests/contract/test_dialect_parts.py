"""Every dialect has the parts that tests of all dialects need; a part that a dialect lacks is named in the summary."""

import re
from pathlib import Path

import pytest

from tests.support.dialect_parts import PARTS, part, skipped
from tests.support.dialect_tables import DIALECTS

ROOT = Path(__file__).parents[2]
EACH = [pytest.param(dialect, name, id=f"{dialect}-{name}", marks=skipped(dialect, name))
        for dialect in DIALECTS for name in PARTS]


@pytest.mark.parametrize(("dialect", "name"), EACH)
def test_a_dialect_has_its_parts(dialect: str, name: str) -> None:
    assert part(dialect, name).__doc__


def test_every_part_that_is_asked_for_is_known() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    asked_for = set(re.findall(r'\b(?:part|each|dialects_with)\((?:\w+, )?"(\w+)"', code))
    assert asked_for - set(DIALECTS) == {*PARTS, "settings", "stream_options"}
