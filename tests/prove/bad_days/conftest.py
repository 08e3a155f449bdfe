"""The servers are processes, so these tests run in real time."""

from tests.support.real_time import pytest_asyncio_loop_factories  # noqa: F401
