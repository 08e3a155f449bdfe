"""The servers of the bench are forked from a warm interpreter, as in its tests; processes run in real time."""

from tests.bench.conftest import warm_servers  # noqa: F401
from tests.support.real_time import pytest_asyncio_loop_factories  # noqa: F401
