"""A world from its plan to its verdict: the same plan gives the same steps, byte for byte."""

import asyncio
import gc
import logging
import os
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, NamedTuple
from unittest.mock import patch

import structlog
from aiohttp import web_app
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import StreamResponse
from aiohttp.web_urldispatcher import UrlDispatcher
from engineio.base_socket import BaseSocket

from gateway import composition
from gateway.engine import Cursor
from gateway.engine.streams.feed import Feed
from gateway.resources import key_service
from tests.prove.crash.history import History
from tests.prove.simulation.conversation import Conversation
from tests.prove.simulation.determinism import wall_clock, world_sources
from tests.prove.simulation.faults import NOTICE_SECONDS, Faults
from tests.prove.simulation.loop import PROCESS, WorldLoop, WorldStopped, current_process
from tests.prove.simulation.losses import LossDay
from tests.prove.simulation.machines import SimulatedMachines
from tests.prove.simulation.network import Network
from tests.prove.simulation.plan import DAY, Plan
from tests.prove.simulation.redis_server import SimulatedRedis
from tests.prove.simulation.refusals import Refusal
from tests.prove.simulation.servers import FRONT, PORT, REDIS_HOST, REDIS_PORT, GatewayServer, RedisHost, write_keys
from tests.prove.simulation.witness import Witness
from tests.support.dialect_tables import load_once
from tests.support.route_copies import RouteCopies

QUIET_SECONDS = 45.0
"""So long after the last client, at most, a server has more tasks than when it began."""
TURN_SECONDS = 6.0
"""How long a turn may take: longer than any that ends by itself."""
PASSING = (RequestHandler, BaseRequest, StreamResponse, Cursor, Feed, BaseSocket)
"""What servers have in memory only as long as somebody is connected."""
HANDFUL = 8
"""So many may be left, of hundreds: timers keep the last connections, and Socket.IO the last socket of each server."""
MEMORY_LOOKED_AT_IN = 4
"""One world of so many is looked through for it: that takes a fifth of the time of a world."""
MOST_SECONDS = 1800.0
"""The virtual time after which a world that is not over counts as hung."""
MOST_CPU_SECONDS = 120.0
"""The CPU after which it does, if its virtual time stands still: a hundred times what a world takes."""


class Step(NamedTuple):
    """Something that happened in a world."""

    at: float
    process: str
    kind: str
    words: str

    def __str__(self) -> str:
        return f"{self.at:12.6f} {self.process:10} {self.kind:12} {self.words}"


@dataclass
class Outcome:
    """What became of a world."""

    plan: Plan
    steps: list[Step] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """Every promise that was not kept."""
    turns: int = 0
    seconds: float = 0.0
    callbacks: int = 0
    history: History = field(default_factory=History)
    """What every client was told."""
    refusals: list[Refusal] = field(default_factory=list)
    """The requests that were refused."""

    def trace(self) -> str:
        return "\n".join(map(str, self.steps)) + "\n"


class WorldStuck(KeyboardInterrupt):
    """A program of the world runs and runs, and lets nobody else run; loops and tasks pass this kind of error on."""


@contextmanager
def cpu_limit() -> Iterator[None]:
    """Whatever runs here is stopped when it has taken more CPU than a world takes."""
    def stop(number: int, frame: FrameType | None) -> None:
        raise WorldStuck("".join(traceback.format_stack(frame)[-3:]))

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class World:
    """Gateways, their store, their clients, and the network between them."""

    def __init__(self, plan: Plan, folder: Path, *, is_traced: bool) -> None:
        seed = str(plan.seed)
        self.plan = plan
        self.is_traced = is_traced
        self.outcome = Outcome(plan)
        self.loop = WorldLoop(seed, until=MOST_SECONDS)
        self.network = Network(self.loop, seed, self.trace if is_traced else None)
        self.network.delay = plan.delay
        self.redis = self._make_redis(seed) if plan.log == "redis" else None
        self.servers = [
            GatewayServer(
                self.loop, number, seed, folder / f"server{number}", self.trace, self._settings(folder, number))
            for number in range(plan.servers)
        ]
        self.network.balancers[FRONT] = self._next_servers
        self.conversation = Conversation(
            self.loop, plan, f"http://{FRONT}:{PORT}", self.trace, SimulatedMachines(self.loop, seed))
        self.witness = Witness()
        self.logged: set[tuple[str, str]] = set()
        """Which server has written a line of which name into its log."""
        self.loss_day = LossDay(self)
        self._turn = 0

    def _settings(self, folder: Path, number: int) -> dict[str, Any]:
        limits = {
            "lease_seconds": self.plan.lease, "drain_seconds": 0.5, "ask_seconds": 7 * DAY,
            "turn_seconds": TURN_SECONDS,
        }
        if self.plan.log == "redis":
            log, data = f"redis://{REDIS_HOST}:{REDIS_PORT}/0", folder / "shared"
        else:
            log, data = "sqlite", folder / f"data{number}"
        if not data.exists():
            write_keys(data)
        durability = "fsync" if self.plan.durability == "fsync" else "normal"
        return {"log": log, "data": str(data), "limits": limits, "durability": durability}

    def _make_redis(self, seed: str) -> RedisHost:
        redis = SimulatedRedis(
            wall_clock, random=Random(f"{seed} redis"),
            appendfsync="always" if self.plan.durability == "always" else "everysec")
        return RedisHost(self.loop, self.network, redis, seed, self.trace)

    def _next_servers(self) -> list[str]:
        """The machines behind the balancer, the next one first."""
        self._turn += 1
        hosts = [server.host for server in self.servers]
        start = self._turn % len(hosts)
        return hosts[start:] + hosts[:start]

    def trace(self, process: str, kind: str, words: str) -> None:
        if self.is_traced:
            self.outcome.steps.append(Step(self.loop.now, process, kind, words))

    def note(self, logger: object, method: str, entry: MutableMapping[str, Any]) -> Any:
        """A line of a server's log is a step of the world; an error that nobody expected breaks a promise."""
        process = current_process()
        if process is None:
            raise structlog.DropEvent  # the world is over, and tasks are taken away
        error, name = entry.get("exc_info"), process.name
        self.logged.add((name, entry.get("event", "")))
        if error is None and not self.is_traced:
            raise structlog.DropEvent
        entry = dict(entry)
        entry.pop("exc_info", None)
        event = entry.pop("event", "")
        words = " ".join(f"{key}={value}" for key, value in sorted(entry.items(), key=lambda one: one[0]))
        self.trace(name, f"log.{method}", f"{event} {words}"[:300])
        if error is not None:
            error = sys.exc_info()[1] if error is True else error
            if isinstance(error, BaseException):
                told = "".join(traceback.format_exception(error)[-4:])
                self.outcome.broken.append(f"traceback in {name}: {event} {words}\n{told}")
        raise structlog.DropEvent

    def run(self) -> Outcome:
        try:
            with cpu_limit():
                self.loop.run_until_complete(self.loop.create_task(self._main(), context=self.loop.host.context.copy()))
        except WorldStopped as error:
            self.outcome.broken.append(f"hang: {error}")
        except WorldStuck as error:
            self.outcome.broken.append(f"hang: a program lets nobody else run:\n{error}")
        except Exception as error:  # noqa: BLE001  # it is told with the seed
            self.outcome.broken.append(f"the world broke: {''.join(traceback.format_exception(error)[-6:])}")
        finally:
            self.outcome.seconds, self.outcome.callbacks = self.loop.now, self.loop.steps
            self.outcome.turns, self.outcome.history = self.conversation.turns, self.conversation.history
            self.outcome.broken += self.loop.errors
            for server in self.servers:
                server.kill()
            self.loop.end_world()
            self.loop.close()
        return self.outcome

    async def _main(self) -> None:
        if self.redis is not None:
            self.redis.start()
        for server in self.servers:
            server.start()
        async with asyncio.timeout(60):
            for server in self.servers:
                await server.is_ready.wait()
        await self.conversation.begin()
        if self.plan.loss:
            self.outcome.broken += await self.loss_day.run()
            return
        faults = Faults(self)
        refusals = self.conversation.refusals
        refusals.last_trouble = lambda: faults.last_trouble
        await faults.run()
        while self.conversation.turns < self.plan.turns:  # noqa: ASYNC110
            await asyncio.sleep(0.5)
        self.conversation.has_talked = True
        await faults.mend_all()
        calm_since = self.loop.now
        heads = self.witness.heads_before(self.loop.time() - 2 * self.plan.lease - NOTICE_SECONDS)
        found = await self.conversation.verdict(heads)
        self.outcome.broken += map(str, found)
        self.outcome.broken += self.witness.verdict(self.conversation.history.logs)
        self.outcome.refusals = refusals.seen
        self.outcome.broken += refusals.verdict(2 * self.plan.lease + NOTICE_SECONDS)
        self.outcome.broken += await self._leaked_tasks()
        self.outcome.broken += self._leaked_memory()
        self.outcome.broken += map(str, await self.conversation.last_verdict(calm_since))
        if self.redis is not None:
            self.outcome.broken += [f"the simulated Redis does not know {one}" for one in self.redis.redis.unknown]

    async def _leaked_tasks(self) -> list[str]:
        """Tasks that servers have too many, long after the last client has gone."""
        end = self.loop.time() + QUIET_SECONDS
        while leaked := [one for server in self.servers for one in server.leaked_tasks()]:
            if self.loop.time() > end:
                break
            await asyncio.sleep(1.0)
        return leaked

    def _leaked_memory(self) -> list[str]:
        """What servers still have in memory of requests and streams, though nobody is connected to them any more.

        Programs that have died keep what they had, so this says something only where none has.
        """
        if self.plan.seed % MEMORY_LOOKED_AT_IN or any(server.lives > 1 for server in self.servers):
            return []
        gc.collect()
        left = Counter(type(one).__name__ for one in gc.get_objects() if isinstance(one, PASSING))
        return [f"servers have {count} of {kind} in memory, and nobody is connected"
                for kind, count in sorted(left.items()) if count > HANDFUL]


KEY_SECONDS = 1.0
"""How often servers look for new keys: nobody makes or revokes any in a world."""
MEMORY = Path("/dev/shm")
HERE = Path("/proc/self/cwd")
"""The folder of a world by a name that is the same for every world: errors tell it to clients."""
ROUTES = RouteCopies(UrlDispatcher.add_routes)


@contextmanager
def simulation() -> Iterator[None]:
    """While this holds, worlds can be run one after the other."""
    collected = gc.isenabled()
    log_settings = structlog.get_config()
    logging.disable(logging.CRITICAL)  # of libraries; the gateway's own log is part of the steps
    gc.collect()
    gc.freeze()  # what is there now stays: nobody need look through it again after every world
    gc.disable()  # what the collector finds, and when, would differ from run to run
    try:
        with (
            warnings.catch_warnings(), world_sources(), patch.object(composition, "load_table", load_once),
            patch.object(key_service, "POLL_SECONDS", KEY_SECONDS),
            patch.object(UrlDispatcher, "add_routes", lambda router, routes: ROUTES.add(router, routes)),
        ):
            warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
            yield
    finally:
        structlog.configure(**log_settings)
        logging.disable(logging.NOTSET)
        gc.unfreeze()
        if collected:
            gc.enable()


def run_world(plan: Plan, *, is_traced: bool = False, make: Callable[..., World] = World) -> Outcome:
    """Run a world, within `simulation()`; its steps are kept if it is traced."""
    gc.collect()  # what the world before has left
    folder = tempfile.mkdtemp(prefix="world", dir=MEMORY if MEMORY.is_dir() else None)
    before = Path.cwd()
    os.chdir(folder)
    try:
        world = make(plan, HERE, is_traced=is_traced)
        structlog.configure(processors=[world.note], cache_logger_on_first_use=False)
        with world.loss_day.watching() if plan.loss else world.witness.watching():
            return world.run()
    finally:
        os.chdir(before)
        shutil.rmtree(folder, ignore_errors=True)
        web_app._cached_build_middleware.cache_clear()  # it keeps the gateways of the world


__all__ = ["PROCESS", "Outcome", "Step", "World", "run_world", "simulation"]
