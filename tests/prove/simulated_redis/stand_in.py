"""A pytest plugin: tests that use the Redis server of the run get the simulated one, in the loop of the test."""

from functools import cache
from typing import Any

from tests.prove.simulation.redis_server import SimulatedRedis
from tests.simulation import SimulatedLoop
from tests.support import redis_server

PORT = 6379


class StandIn:
    """Looks like `RedisServer`; each loop has a server of its own."""

    port = PORT
    url = f"redis://127.0.0.1:{PORT}/0"

    def __init__(self) -> None:
        self.servers: list[SimulatedRedis] = []

    def forget(self) -> None:
        """Everything that is stored in the newest loop."""
        self.servers[-1].data.clear()


@cache
def stand_in() -> StandIn:
    return StandIn()


_make = SimulatedLoop.__init__


def _make_with_redis(loop: SimulatedLoop, *given: Any) -> None:
    _make(loop, *given)
    server = SimulatedRedis(loop.wall_clock)
    stand_in().servers.append(server)
    loop.network.listen(server.connection, PORT, None)


SimulatedLoop.__init__ = _make_with_redis  # type: ignore[method-assign]
redis_server.redis_of_this_run = stand_in  # type: ignore[assignment]


def pytest_unconfigure() -> None:
    unknown = sorted({one for server in stand_in().servers for one in server.unknown})
    print(f"{len(stand_in().servers)} simulated servers; not simulated: {unknown or 'nothing'}")
