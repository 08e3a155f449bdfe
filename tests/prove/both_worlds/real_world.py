"""A plan of a simulated world, carried out in the real one: processes, a Redis, sockets, and the same clients."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

import aiohttp

from tests.prove.crash.history import History
from tests.prove.fleet.gateways import Fleet, fleet
from tests.prove.simulation.conversation import Conversation
from tests.prove.simulation.faults import NOTICE_SECONDS
from tests.prove.simulation.plan import Fault, Plan
from tests.prove.simulation.servers import token_of, write_keys

TOKEN: ContextVar[str] = ContextVar("token", default="")
"""The key that HTTP clients of the program which runs now send."""
MAKE_SESSION = aiohttp.ClientSession.__init__


class Day(NamedTuple):
    """What became of a plan: what clients were told, and which promises were broken."""

    history: History
    broken: list[str]


class Program:
    """A client of the gateways; all are in one process, and each has a key of its own."""

    host = "127.0.0.1"

    def __init__(self, name: str, seed: int, tenant: str) -> None:
        self.name = name
        self.random = Random(f"{seed} {name}")
        self._context = copy_context()
        self._context.run(TOKEN.set, token_of(tenant))

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        return asyncio.get_running_loop().create_task(work, name=name, context=self._context.copy())


class Programs:
    """Where the clients of the real world run."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def process(self, name: str, number: int, tenant: str) -> Program:
        return Program(name, self._seed, tenant)

    def cut_off(self) -> set[str]:
        """Clients keep their connections: what is cut are servers' connections to Redis."""
        return set()


def _make_session(self: aiohttp.ClientSession, *given: Any, **named: Any) -> None:
    if token := TOKEN.get():
        named["headers"] = {"Authorization": f"Bearer {token}", **(named.get("headers") or {})}
    MAKE_SESSION(self, *given, **named)


@contextmanager
def keys_sent() -> Iterator[None]:
    """While this holds, HTTP clients send the key of their program, whoever makes them."""
    with patch.object(aiohttp.ClientSession, "__init__", _make_session):
        yield


class RealFaults:
    """Brings the faults of a plan about, one after the other."""

    def __init__(self, servers: Fleet) -> None:
        self._servers = servers
        self.last = 0.0
        """When something was mended for the last time."""

    async def run(self, plan: Plan) -> None:
        time = asyncio.get_running_loop().time
        began = time()
        for fault in plan.faults:
            await asyncio.sleep(max(0.0, began + fault.at - time()))
            await getattr(self, f"_{fault.kind}")(fault)
            self.last = time()
        await asyncio.sleep(max(0.0, began + plan.seconds - time()))

    async def _kill(self, fault: Fault) -> None:
        await self._servers.servers[fault.target].end()
        await asyncio.sleep(fault.seconds)
        await self._servers.back(fault.target)

    async def _stop(self, fault: Fault) -> None:
        await self._servers.servers[fault.target].end(signal.SIGTERM)
        await self._servers.back(fault.target)

    async def _pause(self, fault: Fault) -> None:
        await self._servers.pause(fault.target, fault.seconds)

    async def _block_redis(self, fault: Fault) -> None:
        await self._part(fault, self._servers.wires[fault.target].cut)

    async def _cut_others(self, fault: Fault) -> None:
        """All servers but this one lose Redis for a moment."""
        for number, wire in enumerate(self._servers.wires):
            if number != fault.target:
                wire.cut()
                wire.mend()

    async def _part_redis(self, fault: Fault) -> None:
        await self._part(fault, self._servers.wires[fault.target].hush)

    async def _part(self, fault: Fault, begin: Callable[[], None]) -> None:
        begin()
        await asyncio.sleep(fault.seconds)
        self._servers.wires[fault.target].mend()

    async def _redis_restart(self, fault: Fault) -> None:
        await asyncio.to_thread(self._servers.redis.stop, kill=True)
        await asyncio.sleep(fault.seconds)
        await asyncio.to_thread(self._servers.redis.start)


async def real_day(folder: Path, plan: Plan) -> Day:
    """Three processes on a Redis, the clients of the plan, and its faults."""
    write_keys(folder / "shared")
    async with fleet(folder, plan.servers, lease=plan.lease, auth="keys") as servers:
        with keys_sent():
            day = await _talk(servers, plan)
        return Day(day.history, [*day.broken, *_tracebacks(servers)])


async def _talk(servers: Fleet, plan: Plan) -> Day:
    loop = asyncio.get_running_loop()
    conversation = Conversation(loop, plan, servers.address, lambda *step: None, Programs(plan.seed))
    faults, refusals, rest = RealFaults(servers), conversation.refusals, 2 * plan.lease + NOTICE_SECONDS
    await conversation.begin()
    await faults.run(plan)
    refusals.last_trouble = lambda: faults.last
    await asyncio.sleep(max(0.0, faults.last + rest - loop.time()))
    conversation.has_talked = True
    found = await conversation.verdict({})
    return Day(conversation.history, [*map(str, found), *refusals.verdict(rest)])


def _tracebacks(servers: Fleet) -> list[str]:
    """What servers did not expect."""
    return [f"traceback in server{line}" for line in servers.errors().splitlines() if "Traceback" in line]
