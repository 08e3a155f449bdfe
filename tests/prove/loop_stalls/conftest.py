"""The server is a process of its own: real time."""

from tests.support.real_time import pytest_asyncio_loop_factories  # noqa: F401
