"""What goes wrong in a world, at the times of its plan, and how everything is mended in the end."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from gateway.storage.log.redis import RedisLog
from tests.prove.simulation.plan import Fault
from tests.prove.simulation.servers import REDIS_HOST

if TYPE_CHECKING:
    from tests.prove.simulation.world import World

DRAIN_SECONDS = 0.5
AIMED = (
    "kill", "power", "pause", "stop", "redis_power", "cut_redis", "sever_redis", "part_redis", "block_redis",
    "cut_others", "redis_restart", "redis_refuses", "disk_full", "slow_kill",
)
"""Faults that show more while a turn runs."""
AIMED_OF, AIM_SECONDS = 4, 2.0
"""Of so many of them one comes at its time; the others wait for a turn, so long at most."""
KEYED = ("block_keyed", "cut_keyed")
"""Faults that come to a server while it carries out a request with an idempotency key."""
KEYED_DELAYS = 10.0
"""So many times as long as a message is on its way, at most, such a fault comes after the key was claimed."""
SLOW_DISK_SECONDS = 0.3
"""How long a slow disk takes at most for one piece of work."""
NOTICE_SECONDS = 5.0
"""How long servers may take, beside two leases, to notice that a connection is dead and to make another one."""


class Faults:
    """Brings the faults of the plan about."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._loop = world.loop
        self._network = world.network
        self._mends: dict[int, Callable[[], None]] = {}
        self._last = 0.0

    @property
    def last_trouble(self) -> float:
        """When something was wrong for the last time: now, while a fault lasts or a server is not there."""
        if self._mends or not all(server.is_ready.is_set() for server in self._world.servers):
            return self._loop.time()
        return max(self._last, self._network.last_late, *(server.ready_at for server in self._world.servers))

    async def run(self) -> None:
        began = self._loop.time()
        for number, fault in enumerate(self._world.plan.faults):
            await asyncio.sleep(max(0.0, began + fault.at - self._loop.time()))
            if fault.kind in AIMED and number % AIMED_OF:
                fault = await self._aimed(fault)
            elif fault.kind in KEYED:
                fault = await self._keyed(fault)
            self._world.trace("world", "fault", str(fault))
            self._last = self._loop.time()
            lasting = getattr(self, f"_{fault.kind}")(number, fault)
            if lasting is not None:
                await lasting
        await asyncio.sleep(max(0.0, began + self._world.plan.seconds - self._loop.time()))

    async def _aimed(self, fault: Fault) -> Fault:
        """The fault of a server in which a turn runs, as soon as there is one."""
        end = self._loop.time() + AIM_SECONDS
        while self._loop.time() < end:
            for server in self._world.servers:
                if server.gateway is not None and any(server.gateway.table.running_turns()):
                    return fault._replace(target=server.number)
            await asyncio.sleep(0.01)
        return fault

    async def _keyed(self, fault: Fault) -> Fault:
        """The fault of a server that has claimed an idempotency key, as soon as there is one."""
        end = self._loop.time() + AIM_SECONDS
        while self._loop.time() < end:
            await asyncio.sleep(self._world.plan.delay)
            if (claimant := self._claimant()) is not None:
                await asyncio.sleep(self._network.random.uniform(0.0, KEYED_DELAYS * self._world.plan.delay))
                return fault._replace(target=claimant)
        return fault

    def _claimant(self) -> int | None:
        redis = self._world.redis
        data = redis.redis.data if redis is not None else None
        for key in reversed(data.all_keys() if data is not None else []):
            if b":claim:" in key:
                for server in self._world.servers:
                    log = server.gateway.runtime.log if server.gateway is not None else None
                    if isinstance(log, RedisLog) and log.redis.replica.encode() == data.look(key):
                        return server.number
        return None

    def _later(self, number: int, fault: Fault, mend: Callable[[], None]) -> None:
        self._mends[number] = mend
        self._loop.call_later(abs(fault.seconds), self._mend, number)

    def _mend(self, number: int) -> None:
        mend = self._mends.pop(number, None)
        if mend is not None:
            self._world.trace("world", "mended", str(self._world.plan.faults[number]))
            self._last = self._loop.time()
            mend()

    async def mend_all(self) -> None:
        for number in list(self._mends):
            self._mend(number)
        for server in self._world.servers:
            await server.is_ready.wait()
        self._network.is_calm = True
        await asyncio.sleep(2 * self._world.plan.lease + NOTICE_SECONDS)

    # -- gateways -------------------------------------------------------------------------------------------------

    def _kill(self, number: int, fault: Fault) -> None:
        server = self._world.servers[fault.target]
        if server.is_alive:
            server.kill()
            self._later(number, fault, server.start)

    def _power(self, number: int, fault: Fault) -> None:
        """The machine of a server on SQLite loses its power."""
        server = self._world.servers[fault.target]
        if server.is_alive:
            server.lose_power(self._loop.host.random)
            self._later(number, fault, server.start)

    def _stop(self, number: int, fault: Fault) -> None:
        server = self._world.servers[fault.target]
        if server.gateway is not None:
            server.stop(DRAIN_SECONDS, server.start)

    def _pause(self, number: int, fault: Fault) -> None:
        process = self._world.servers[fault.target].process
        if process is not None:
            process.pause()
            self._later(number, fault, process.resume)

    def _clock(self, number: int, fault: Fault) -> None:
        process = self._world.servers[fault.target].process
        if process is not None:
            process.clock_error += fault.seconds

    def _slow_server(self, number: int, fault: Fault) -> None:
        self._slow(number, fault, self._world.servers[fault.target].host)

    def _slow_disk(self, number: int, fault: Fault) -> None:
        process = self._world.servers[fault.target].process
        if process is not None:
            before, process.disk_seconds = process.disk_seconds, SLOW_DISK_SECONDS
            self._later(number, fault, lambda: setattr(process, "disk_seconds", before))

    async def _slow_kill(self, number: int, fault: Fault) -> None:
        """The process dies while its disk is slow, with something on its way there."""
        process = self._world.servers[fault.target].process
        if process is not None:
            process.disk_seconds = SLOW_DISK_SECONDS
        await asyncio.sleep(SLOW_DISK_SECONDS)
        self._kill(number, fault)

    def _disk_full(self, number: int, fault: Fault) -> None:
        server = self._world.servers[fault.target]
        server.fill_disk()
        self._later(number, fault, server.free_disk)

    # -- Redis ----------------------------------------------------------------------------------------------------

    def _redis_restart(self, number: int, fault: Fault) -> None:
        redis = self._world.redis
        if redis is not None and redis.is_alive:
            redis.crash("all")
            self._later(number, fault, redis.start)

    def _redis_power(self, number: int, fault: Fault) -> None:
        """The machine of Redis loses its power."""
        redis = self._world.redis
        if redis is not None and redis.is_alive:
            redis.crash("fsynced")
            self._later(number, fault, redis.start)

    def _redis_refuses(self, number: int, fault: Fault) -> None:
        redis = self._world.redis
        if redis is not None:
            redis.redis.write_refusal = b"OOM command not allowed when used memory > 'maxmemory'."
            self._later(number, fault, lambda: setattr(redis.redis, "write_refusal", None))

    def _slow_redis(self, number: int, fault: Fault) -> None:
        self._slow(number, fault, REDIS_HOST)

    def _cut_redis(self, number: int, fault: Fault) -> None:
        for link in self._network.links_between(self._world.servers[fault.target].host, REDIS_HOST):
            link.cut()

    def _cut_others(self, number: int, fault: Fault) -> None:
        """All servers but this one lose Redis for a moment: those who watch what it writes."""
        for server in self._world.servers:
            if server.number != fault.target:
                self._cut_redis(number, fault._replace(target=server.number))

    def _sever_redis(self, number: int, fault: Fault) -> None:
        for link in self._network.links_between(self._world.servers[fault.target].host, REDIS_HOST):
            link.sever()

    def _part_redis(self, number: int, fault: Fault) -> None:
        self._part(number, fault, self._world.servers[fault.target].host, REDIS_HOST)

    def _cut_keyed(self, number: int, fault: Fault) -> None:
        self._cut_redis(number, fault)

    def _block_keyed(self, number: int, fault: Fault) -> None:
        self._block_redis(number, fault)

    def _block_redis(self, number: int, fault: Fault) -> None:
        host = self._world.servers[fault.target].host
        self._network.block_way(host, REDIS_HOST)
        self._later(number, fault, lambda: self._network.unblock_way(host, REDIS_HOST))

    # -- clients --------------------------------------------------------------------------------------------------

    def _client_links(self, fault: Fault) -> list[object]:
        host = self._world.servers[fault.target].host
        return [link for link in list(self._network.links.values())
                if link.processes[1].host == host and link.processes[0].host.startswith("10.0.2.")]

    def _cut_client(self, number: int, fault: Fault) -> None:
        for link in self._client_links(fault):
            if self._network.random.random() < 0.7:
                link.cut()  # type: ignore[attr-defined]

    def _sever_client(self, number: int, fault: Fault) -> None:
        for link in self._client_links(fault):
            if self._network.random.random() < 0.5:
                link.sever()  # type: ignore[attr-defined]

    def _part_client(self, number: int, fault: Fault) -> None:
        processes = self._world.conversation.processes
        client = processes[int(fault.seconds * 1000) % len(processes)]
        for server in self._world.servers:
            self._network.close_way(client.host, server.host)

        def mend() -> None:
            for server in self._world.servers:
                self._network.open_way(client.host, server.host)

        self._later(number, fault, mend)

    # -- ways -----------------------------------------------------------------------------------------------------

    def _part(self, number: int, fault: Fault, one: str, other: str) -> None:
        self._network.close_way(one, other)
        self._later(number, fault, lambda: self._network.open_way(one, other))

    def _slow(self, number: int, fault: Fault, host: str) -> None:
        self._network.slow[host] = self._network.slow.get(host, 0.0) + 0.05
        self._later(number, fault, lambda: self._network.slow.pop(host, None))
