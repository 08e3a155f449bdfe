"""Several servers' engines in one process, on one Redis: each with a house of its own, and a way to die."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

from gateway.cluster import cluster_session_service
from gateway.config import LimitSettings
from gateway.engine import Hub, Runtime, SessionTable
from gateway.ids import make_mint
from gateway.ports import Chunk, Subscription
from gateway.storage import UNSEALED, Seal
from gateway.storage.log.redis import RedisLog
from gateway.storage.redis import RedisAddress, RedisClient
from tests.support.engine.engine_fixture import CARD, CountingMetrics, FunctionBackend, Play, Streams
from tests.support.gateway_server import simulation
from tests.support.redis_server import redis_of_this_run

LEASE = 10.0


class Replica:
    """One server's engine."""

    def __init__(self, prefix: str, play: Play, seal: Seal = UNSEALED, **limits: float) -> None:
        loop = simulation()
        address = RedisAddress.read(f"{redis_of_this_run().url}?prefix={prefix}")
        self.redis = RedisClient(address, lease=LEASE, clock=loop.time)
        self.log = RedisLog(self.redis, seal=seal)
        self.watchman = CountingMetrics()
        made = LimitSettings().model_copy(update=limits)
        self.runtime = Runtime(
            log=self.log, clock=loop.wall_clock, mint=make_mint(), limits=made, agents={"agent": CARD},
            backends={"agent": FunctionBackend(play)}, observer=self.watchman,
        )
        self.table = SessionTable()
        self.hub = Hub(
            log=self.log, sessions=self.table, streams=Streams(), clock=loop.wall_clock, observer=self.watchman,
            max_lag=lambda: made.max_lag_events,
        )
        self.stops = 0
        """How often an operator's request to drain has reached it."""
        self.sessions = cluster_session_service(self.runtime, self.table, self.hub, self.log, self._stop)

    def _stop(self) -> None:
        self.stops += 1

    async def open(self) -> None:
        await self.log.open()
        await self.sessions.recover()

    async def freeze(self) -> None:
        """It does nothing more by itself, as if it were paused: no beat, no ear."""
        heartbeat = self.sessions.heartbeat
        assert heartbeat._task is not None
        heartbeat._task.cancel()
        await asyncio.wait([heartbeat._task])
        await self.sessions._pubsub.close()

    async def thaw(self) -> None:
        """It comes back, and does not know yet that it was away."""
        self.sessions.heartbeat.start()
        self.sessions._pubsub._is_first = False
        await self.sessions._pubsub.start(self.sessions.inbox, self.sessions.inbox.addresses[0])

    async def die(self) -> None:
        """Gone without a word."""
        await self.freeze()
        for session in self.table:
            if session.run is not None:
                session.run.abandon()
        assert self.log._writing is not None
        self.log._writing.cancel()
        await self.redis.close()
        await self.sessions.rpc.close()

    async def close(self) -> None:
        await self.sessions.rest()
        await self.log.close()


@asynccontextmanager
async def replicas(number: int, play: Play, **limits: float) -> AsyncIterator[list[Replica]]:
    redis_of_this_run().forget()
    prefix = uuid4().hex
    made = [Replica(prefix, play, **limits) for _ in range(number)]
    for one in made:
        await one.open()
    try:
        yield made
    finally:
        for one in made:
            await one.close()


async def heard(subscription: Subscription, last: str) -> list[str]:
    """Everything up to the first line that ends so."""
    lines: list[str] = []
    async with asyncio.timeout(60):
        while not any(line.endswith(last) for line in lines):
            chunks = await subscription.chunks()
            assert chunks, f"the stream ended before {last}: {lines}"
            lines += texts_of(*chunks)
    return lines


def texts_of(*chunks: Chunk) -> list[str]:
    return [frame.body.decode().strip() for chunk in chunks for frame in chunk.frames]
