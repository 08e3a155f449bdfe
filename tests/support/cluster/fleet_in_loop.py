"""Several gateways in the loop of a test, on one Redis, behind a balancer; they die and come back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.storage.redis import RedisClient
from tests.support.cluster.tcp_forwarder import RoundRobinForwarder, TcpForwarder
from tests.support.dialect_tables import DIALECTS
from tests.support.gateway_server import Served, serving, simulation
from tests.support.redis_server import redis_of_this_run

LEASE = 10.0


class ServerInLoop:
    """One port; each life has a line of its own to Redis."""

    def __init__(self, folder: Path, shared: Path, prefix: str, lease: float, settings: dict[str, Any]) -> None:
        self._folder, self._prefix = folder, prefix
        self._settings = {
            "dialects": {name: {} for name in DIALECTS}, "data": str(shared),
            "limits": {"lease_seconds": lease, "drain_seconds": 0.5}, **settings,
        }
        self._life = AsyncExitStack()
        self._ends: list[asyncio.Task[None]] = []
        self.port = 0
        folder.mkdir()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self.wire, self._life = TcpForwarder(lambda: [redis_of_this_run().port]), AsyncExitStack()
        await self.wire.start()
        self._life.push_async_callback(self.wire.close)
        log = f"redis://127.0.0.1:{self.wire.port}/0?prefix={self._prefix}"
        self.served: Served = await self._life.enter_async_context(
            serving(self._folder, port=self.port, log=log, **self._settings))
        self.port = self.served.port

    async def die(self) -> None:
        """Nobody is told: connections break off, and nothing that this life still does reaches Redis."""
        runner = self.served.runner
        assert runner is not None and runner.server is not None
        self.wire.cut()
        for site in list(runner.sites):
            await site.stop()
        for connection in runner.server.connections:
            if connection.transport is not None:
                connection.transport.abort()
        self._ends.append(asyncio.create_task(self._life.aclose()))

    async def close(self) -> None:
        await asyncio.gather(self._life.aclose(), *self._ends)


class FleetInLoop:
    """Servers by number, and an address that leads to any of them in turn."""

    def __init__(self, folder: Path, number: int, lease: float, settings: dict[str, Any]) -> None:
        self.lease = lease
        self.servers = [
            ServerInLoop(folder / f"server{n}", folder / "shared", folder.name, lease, settings)
            for n in range(number)]
        self.front = RoundRobinForwarder(lambda: [one.port for one in self.servers])

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.front.port}"

    @property
    def wires(self) -> list[TcpForwarder]:
        return [one.wire for one in self.servers]

    def errors(self) -> str:
        return ""


@asynccontextmanager
async def fleet_in_loop(
    folder: Path, number: int, lease: float = LEASE, settings: dict[str, Any] | None = None,
) -> AsyncIterator[FleetInLoop]:
    """Leases of these servers run by the clock of the loop."""
    redis_of_this_run().forget()
    made = FleetInLoop(folder, number, lease, settings or {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(RedisClient.__init__.__kwdefaults__, "clock", simulation().time)  # type: ignore[arg-type]
        await made.front.start()
        for server in made.servers:
            await server.start()
        try:
            yield made
        finally:
            await made.front.close()
            for server in made.servers:
                await server.close()
