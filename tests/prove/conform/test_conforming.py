"""Our own server before everything that examiners ask, in one loop with them, and started as a user starts both."""

from pathlib import Path

import pytest

from tests.support.conformance.own_server import assert_that_we_conform, examine_ourselves
from tests.support.dialect_parts import each


@pytest.mark.parametrize("name", each("examination"))
def test_we_conform_when_it_is_typed(name: str, tmp_path: Path) -> None:
    assert_that_we_conform(name, tmp_path)


@pytest.mark.parametrize("name", each("examination"))
async def test_we_conform_in_one_loop(name: str, tmp_path: Path) -> None:
    await examine_ourselves(name, tmp_path)
