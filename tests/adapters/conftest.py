"""A server that dies in the middle of a turn: what all dialects have to live through."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.broken_connections import MortalInLoop, mortal_in_loop


@pytest.fixture
async def mortal_server(tmp_path: Path) -> AsyncIterator[MortalInLoop]:
    async with mortal_in_loop(tmp_path) as server:
        yield server
