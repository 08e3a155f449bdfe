"""The servers that are examined run in the loop of the test, so their time can be simulated."""

import asyncio
from collections.abc import Callable

import pytest

from tests.simulation import SimulatedLoop

pytest.register_assert_rewrite("tests.support.conformance.own_server")  # its assertions show what they compare


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"simulated": SimulatedLoop}
