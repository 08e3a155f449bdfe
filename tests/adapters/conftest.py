"""A server that dies in the middle of a turn: what all dialects have to live through."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.connection_faults import KillableServerInLoop, killable_server_in_loop


@pytest.fixture
async def restartable_server(tmp_path: Path) -> AsyncIterator[KillableServerInLoop]:
    async with killable_server_in_loop(tmp_path) as server:
        yield server
