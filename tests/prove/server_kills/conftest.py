"""A server in a process of its own, for the tests that kill one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.connection_faults import KillableServer, killable_server


@pytest.fixture
async def restartable_server(tmp_path: Path) -> AsyncIterator[KillableServer]:
    with killable_server(tmp_path) as server:
        yield server
