"""Real time for the tests of a folder, whose conftest.py imports this: processes cannot join a simulated loop.

    from tests.support.real_time import pytest_asyncio_loop_factories  # noqa: F401
"""

import asyncio
from collections.abc import Callable

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"real": asyncio.new_event_loop}
