"""All pairs: every dialect before every other and before itself."""

from pathlib import Path

import pytest

from tests.support.dialect_parts import each
from tests.support.dialect_tables import DIALECTS
from tests.support.pairs.pair import misdeclared


@pytest.mark.parametrize("second", each("pair_client"))
@pytest.mark.parametrize("first", DIALECTS)
async def test_what_is_declared_lost_is_lost_and_nothing_else(tmp_path: Path, first: str, second: str) -> None:
    assert await misdeclared(tmp_path, first, second) == {}
