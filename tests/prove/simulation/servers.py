"""The programs of a world that serve: gateways that start, die and come back with what was durable, and their Redis."""

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from aiohttp import web

from gateway.app import Gateway
from gateway.composition import load_components
from gateway.config import load_config
from gateway.errors import GatewayError
from gateway.ports import Key
from gateway.resources.keys import FILE, KeyFile, hash_token
from gateway.storage.log import SqliteLog
from tests.prove.simulation.determinism import wall_clock
from tests.prove.simulation.loop import EPOCH, Process, ProcessState, WorldLoop
from tests.prove.simulation.network import Network, Trace
from tests.support.dialect_tables import DIALECTS
from tests.support.gateway_server import write_settings

FRONT = "10.0.0.100"
"""The address of the balancer in front of the gateways."""
REDIS_HOST = "10.0.1.1"
TENANTS = ("ann", "bob")
PORT, REDIS_PORT = 8080, 6379
LASTING_TASKS = Counter({"AsyncServer._service_task": 1, "Event.wait": 1})
"""Tasks that a gateway starts with its first client and keeps: the one in which Socket.IO looks after its sockets."""
PAGE_BYTES = 4096
"""How much of a file the system writes at a time."""
AGENTS = {"demo": {"backend": "demo"}, "hung": {"backend": "tests.prove.simulation.hung_agent:HungAgent"}}
RESTART_SECONDS = 0.5
"""How long a supervisor waits before it starts a program again that could not start."""


def token_of(tenant: str) -> str:
    return f"drg_{tenant}_0123456789abcdef0123456789abcdef"


def write_keys(folder: Path) -> None:
    """A key for each tenant, in a file that gateways carry over into their store when they start."""
    folder.mkdir(parents=True, exist_ok=True)
    made = datetime.fromtimestamp(EPOCH, UTC)
    keys = tuple(Key(name=name, user=name, hash=hash_token(token_of(name)), created=made) for name in TENANTS)
    (folder / FILE).write_bytes(msgspec.json.encode(KeyFile(keys=keys)))


class GatewayServer:
    """One gateway of the world: a machine, and one process after the other on it."""

    def __init__(
        self, loop: WorldLoop, number: int, seed: str, folder: Path, trace: Trace, settings: dict[str, Any],
    ) -> None:
        self.loop = loop
        self.number = number
        self.host = f"10.0.0.{number + 1}"
        self.lives = 0
        self.is_wanted = True
        """Whether the supervisor is to start it again."""
        self.gateway: Gateway | None = None
        self.process: Process | None = None
        self.is_ready = asyncio.Event()
        self.ready_at = 0.0
        self._seed = seed
        self._folder = folder
        self._trace = trace
        self._runner: web.AppRunner | None = None
        self._first_tasks: Counter[str] = Counter()
        folder.mkdir(exist_ok=True)
        served: dict[str, dict[str, object]] = {name: {} for name in DIALECTS}
        write_settings(
            folder, dialects=served, agents=AGENTS, hosts=[FRONT], console=False, auth="keys", **settings)
        self._config = load_config(folder / "config.yaml")
        self.database = Path(settings["data"]) / "dragoman.db"
        self._written_back: dict[Path, bytes] = {}
        self.written_back_at = 0.0

    def start(self) -> None:
        """A new process on the machine, with a new name for every life."""
        self.lives += 1
        name = f"server{self.number}"
        self.process = Process(self.loop, name, self.host, f"{self._seed} {name} {self.lives}")
        self._trace(self.process.name, "start", f"life {self.lives}")
        self.process.spawn(self._serve(self.process), "serve")

    async def _serve(self, process: Process) -> None:
        gateway = Gateway(load_components(self._config), wall_clock)
        process.exits["files"] = lambda: _close_files(gateway)
        runner = gateway.runner(shutdown_timeout=1.0)
        try:
            await runner.setup()
            await web.TCPSite(runner, self.host, PORT).start()
        except GatewayError as error:
            self._trace(process.name, "cannot start", error.message)
            await runner.cleanup()
            await gateway.close()
            self.loop.call_soon(process.kill, context=self.loop.host.context)
            self.loop.call_later(RESTART_SECONDS, self._again, process, context=self.loop.host.context)
            return
        self.gateway, self._runner = gateway, runner
        gateway.readiness.mark_ready()
        self._trace(process.name, "ready", "")
        self.is_ready.set()
        self.ready_at = self.loop.time()
        self._first_tasks = Counter(_kind(task) for task in process.tasks)

    def leaked_tasks(self) -> list[str]:
        """Tasks that the gateway has, and did not have when it was ready."""
        if self.process is None or self.gateway is None:
            return []
        more = Counter(_kind(task) for task in self.process.tasks) - self._first_tasks - LASTING_TASKS
        return [f"server{self.number} has {count} more tasks of {kind}" for kind, count in sorted(more.items())]

    def _again(self, process: Process) -> None:
        if self.process is process and self.is_wanted:
            self.start()

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.state is not ProcessState.DEAD

    def kill(self) -> None:
        """As `kill -9`: nothing more of it runs."""
        if self.process is not None and self.is_alive:
            self._trace(self.process.name, "killed", "")
            self.is_ready.clear()
            self.gateway = None
            self.process.kill()

    # -- power ----------------------------------------------------------------------------------------------------

    def _disk(self) -> dict[Path, bytes]:
        """The database and its write-ahead log, as the system has them in memory."""
        return {path: path.read_bytes() for path in self.database.parent.glob(f"{self.database.name}*")
                if not path.name.endswith(("-shm", ".lock"))}

    def write_back(self) -> None:
        """The system writes everything to the disk that it has only in memory."""
        self._written_back, self.written_back_at = self._disk(), self.loop.time()

    def lose_power(self, random: Random) -> None:
        """Of what was not forced to the disk nor written back, any page may be there, and any may not."""
        now = self._disk()
        before = now if self._config.durability == "fsync" else self._written_back
        self.kill()
        self.database.with_name(f"{self.database.name}-shm").unlink(missing_ok=True)
        for path, content in now.items():
            if path.name.endswith("-wal"):
                content = _torn(before.get(path, b""), content, random)
            path.unlink(missing_ok=True)  # SQLite knows a file by its number: what it knows of the old one is over
            path.write_bytes(content)

    def stop(self, drain_seconds: float, done: Callable[[], None]) -> None:
        """As SIGTERM: the gateway is told to stop, and ends when it has."""
        process, gateway, runner = self.process, self.gateway, self._runner
        if process is None or gateway is None or runner is None or process.state is ProcessState.DEAD:
            done()
            return
        self._trace(process.name, "told to stop", "")
        self.is_ready.clear()
        self.gateway = None
        process.spawn(self._stop(process, gateway, runner, drain_seconds, done), "stop")

    async def _stop(
        self, process: Process, gateway: Gateway, runner: web.AppRunner, seconds: float, done: Callable[[], None],
    ) -> None:
        gateway.readiness.mark_draining()
        await gateway.sessions.drain(seconds, asyncio.Event())
        await runner.cleanup()
        await gateway.close()
        self._trace(process.name, "stopped", "")
        self.loop.call_soon(process.kill, context=self.loop.host.context)
        self.loop.call_soon(done, context=self.loop.host.context)


    def fill_disk(self) -> None:
        """From now on the database cannot grow: SQLite itself says that the disk is full."""
        self._limit_pages(lambda connection: connection.execute("PRAGMA page_count").fetchone()[0])

    def free_disk(self) -> None:
        self._limit_pages(lambda connection: 1_000_000_000)

    def _limit_pages(self, most: Callable[[Any], int]) -> None:
        log = self.gateway.runtime.log if self.gateway is not None else None
        if isinstance(log, SqliteLog) and (connection := log._database._connections.get("write")) is not None:
            connection.execute(f"PRAGMA max_page_count = {most(connection)}")


def _torn(before: bytes, now: bytes, random: Random) -> bytes:
    """A file of which some pages are as they are now, and the others as they were before."""
    pages = [
        (now if random.random() < 0.5 else before)[start:start + PAGE_BYTES].ljust(
            min(PAGE_BYTES, len(now) - start), b"\0")
        for start in range(0, len(now), PAGE_BYTES)
    ]
    return b"".join(pages)


def _kind(task: asyncio.Task[Any]) -> str:
    """What a task does: the name of its coroutine."""
    return getattr(task.get_coro(), "__qualname__", "?")


def _close_files(gateway: Gateway) -> None:
    """What the system does with the files of a process that is gone: locks are released, and what was written stays."""
    log = gateway.runtime.log
    if isinstance(log, SqliteLog):
        database = log._database
        for connection in database._connections.values():
            connection.close()
        if database._lock is not None:
            database._lock.close()


class RedisHost:
    """The Redis of the world: its data, and one process after the other."""

    def __init__(self, loop: WorldLoop, network: Network, redis: Any, seed: str, trace: Trace) -> None:
        self.redis = redis
        self._loop = loop
        self._network = network
        self._seed = seed
        self._trace = trace
        self._lives = 0
        self.process: Process | None = None

    def start(self) -> None:
        self._lives += 1
        self.process = Process(self._loop, "redis", REDIS_HOST, f"{self._seed} redis {self._lives}")
        self._trace("redis", "start", f"life {self._lives}")
        self._network.listen(self.redis.connection, self.process, REDIS_PORT)

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.state is not ProcessState.DEAD

    def crash(self, keep: str) -> None:
        if self.process is not None and self.is_alive:
            self._trace("redis", "crashed", keep)
            self.process.kill()
            self.redis.crash(keep)
