"""Our own server, started as a user starts it, before the command that examines it."""

from pathlib import Path

import pytest

from tests.support.conformance.own_server import assert_that_we_conform
from tests.support.dialect_parts import each


@pytest.mark.parametrize("name", each("examination"))
def test_we_conform_when_it_is_typed(name: str, tmp_path: Path) -> None:
    assert_that_we_conform(name, tmp_path)
