"""A server in a process of its own, for the tests that kill one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.broken_connections import Mortal, mortal


@pytest.fixture
async def mortal_server(tmp_path: Path) -> AsyncIterator[Mortal]:
    with mortal(tmp_path) as server:
        yield server
