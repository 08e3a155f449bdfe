"""Every dialect before one other: what is lost on the way is what the tables declare.

All pairs: `make prove ARGS="--only pairs"`.
"""

from pathlib import Path

import pytest

from gateway.backends.demo.directive_parser import ARGUMENT_PARSERS
from tests.support.dialect_parts import skipped
from tests.support.dialect_tables import DIALECTS
from tests.support.pairs.pair import DIRECTIVES, misdeclared

PAIRS = [pytest.param(first, second, id=f"{first}-{second}", marks=skipped(second, "pair_client"))
         for first, second in zip(DIALECTS, [DIALECTS[-1], *DIALECTS], strict=False)]


def test_every_directive_is_tried() -> None:
    assert {text.split()[0].removeprefix("/") for text in DIRECTIVES} >= ARGUMENT_PARSERS.keys()


@pytest.mark.parametrize(("first", "second"), PAIRS)
async def test_what_is_declared_lost_is_lost_and_nothing_else(tmp_path: Path, first: str, second: str) -> None:
    assert await misdeclared(tmp_path, first, second) == {}
