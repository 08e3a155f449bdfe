"""A gateway that serves every dialect there is, and a browser's way to talk to its console."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.console_client import ConsoleClient
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.gateway_server import serving


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[ConsoleClient]:
    async with serving(tmp_path, dialects=ALL_DIALECTS) as served:
        yield ConsoleClient(served)
