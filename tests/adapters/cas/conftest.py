"""A gateway that speaks CAS, and a client of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.dialects.cas.client import Client
from tests.support.gateway_server import serving


@pytest.fixture
async def cas(tmp_path: Path) -> AsyncIterator[Client]:
    async with serving(tmp_path, log="memory") as served:
        yield Client(served)
