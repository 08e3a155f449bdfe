"""Three gateways on one Redis, behind a balancer that sends each connection to the next; and those who talk to them."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import aiohttp

import gateway.model as m
from tests.prove.crash.clients import CrashRun, DialectClient, Watcher, client_types, watchers
from tests.prove.crash.expected_streams import expected_stream
from tests.prove.crash.history import Violation, judge, times_settled, times_there
from tests.prove.crash.killable_server import KillableProcess
from tests.prove.fleet.allowed_refusals import unexplained_refusals
from tests.support.cluster.fleet_in_loop import FleetInLoop
from tests.support.cluster.tcp_forwarder import RoundRobinForwarder, TcpForwarder
from tests.support.redis_server import RedisServer

LEASE = 1.5
PATIENCE = 120.0
"""Seconds that only a hang takes."""
Within = Callable[[int], Sequence[str]]
"""Number of a server → the words before its command, which run it somewhere else."""


async def server_says(server: KillableProcess, words: str) -> None:
    """Wait until the journal of a server, which is another process, has these words."""
    tail = await asyncio.create_subprocess_exec("tail", "-n", "+1", "-F", server.errors, stdout=asyncio.subprocess.PIPE)
    assert tail.stdout
    try:
        async with asyncio.timeout(60):
            while words.encode() not in await tail.stdout.readline():
                pass
    finally:
        tail.kill()
        await tail.wait()


class Fleet:
    """Servers by number; each has a line of its own to Redis, and a client can ask one of them or any.

    Behind sentinels, whose addresses `logs` has (one for each server), they have no lines that could be cut.
    """

    def __init__(
        self, folder: Path, lease: float = LEASE, logs: Sequence[str] = (), within: Within = lambda number: (),
    ) -> None:
        self.folder = folder
        self._logs, self._within = logs, within
        self.lease = lease
        self.redis = RedisServer(folder / "redis")
        self.servers: list[KillableProcess] = []
        self.wires: list[TcpForwarder] = []
        self.out: set[int] = set()
        """Servers that the balancer does not choose."""
        self.front = RoundRobinForwarder(lambda: [one.port for n, one in enumerate(self.servers) if n not in self.out])

    async def start(self, number: int, **settings: object) -> None:
        if not self._logs:
            await asyncio.to_thread(self.redis.start)
        await self.front.start()
        for n in range(number):
            log = self._logs[n] if self._logs else await self._line_to_redis()
            home = self.folder / f"server{n}"
            home.mkdir()
            self.servers.append(KillableProcess(
                home, log=log, data=str(self.folder / "shared"), within=self._within(n),
                **{"limits": {"lease_seconds": self.lease, "drain_seconds": 0.5}, **settings},
            ))
            await self.servers[-1].start()
        for server in self.servers:
            await server.wait_ready()

    async def _line_to_redis(self) -> str:
        wire = TcpForwarder(lambda: [self.redis.port])
        await wire.start()
        self.wires.append(wire)
        return f"redis://127.0.0.1:{wire.port}/0"

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.front.port}"

    async def back(self, number: int) -> None:
        await self.servers[number].start()
        await self.servers[number].wait_ready()

    async def pause(self, number: int, seconds: float) -> None:
        self.servers[number].signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        self.servers[number].signal(signal.SIGCONT)

    def errors(self) -> str:
        """What the servers have to say, but for what a test brings about."""
        said = []
        for number, server in enumerate(self.servers):
            lines = server.errors.read_text().splitlines() if server.errors.exists() else []
            lines = [line for line in lines if line.startswith("{") and "no news from" not in line]
            said += [f"{number}: {line[:1500]}" for line in lines]
        return "\n".join(said)

    async def close(self) -> None:
        for server in self.servers:
            if server.is_alive:
                server.signal(signal.SIGCONT)
            await asyncio.to_thread(server.close)
        for wire in (self.front, *self.wires):
            await wire.close()
        self.redis.stop(kill=True)


@asynccontextmanager
async def fleet(
    folder: Path, number: int = 3, *, lease: float = LEASE, logs: Sequence[str] = (),
    within: Within = lambda number: (), **settings: object,
) -> AsyncIterator[Fleet]:
    made = Fleet(folder, lease, logs, within)
    try:
        await made.start(number, **settings)
        yield made
    finally:
        await made.close()


def calling() -> aiohttp.ClientSession:
    """Every request is a connection of its own, so that each goes to another server."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=60, sock_read=60)
    return aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(force_close=True))


class FleetConversation:
    """Clients of all dialects talk for a while; afterwards the judge reads everything."""

    def __init__(self, fleet: Fleet | FleetInLoop, http: aiohttp.ClientSession, seed: int, each: int = 1) -> None:
        self.fleet = fleet
        self.world = CrashRun(fleet.address, Random(seed), http)
        self.clients: list[DialectClient] = [kind(self.world, n) for n in range(each) for kind in client_types()]
        self.watchers = watchers(self.world)
        self.tried_seconds = 2 * (2 * fleet.lease + 2)
        """Twice as long as a server tries to pass a command on: what has not come by then does not come any more."""
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        for client in self.clients:
            client.session = await client.create()
        sessions = [client.session for client in self.clients]
        self._tasks = [asyncio.create_task(self._on(client)) for client in self.clients]
        self._tasks += [asyncio.create_task(self._watch(watcher, sessions)) for watcher in self.watchers]

    async def _on(self, client: DialectClient) -> None:
        while True:
            await client.live()
            await asyncio.sleep(0.05)

    async def _watch(self, watcher: Watcher, sessions: list[str]) -> None:
        while True:
            await watcher.live(sessions)
            await asyncio.sleep(0.05)

    async def until_heard(self, things: int) -> None:
        """Until so many things more have been heard."""
        async with asyncio.timeout(PATIENCE):
            await self.world.until_heard(things)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        done, _ = await asyncio.wait(self._tasks)
        for task in done:
            if not task.cancelled():
                task.result()

    async def settled(self) -> None:
        """Until nothing is in doubt: a request outlives its client, for as long as a server tries to pass it on."""
        for client in self.clients:
            async with asyncio.timeout(PATIENCE):
                while self._in_doubt(client.session, await self.records(client.session)):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)

    def _in_doubt(self, session: str, records: Sequence[m.Record]) -> bool:
        """Whether something that was said or answered may yet come."""
        history, since = self.world.history, asyncio.get_running_loop().time() - self.tried_seconds
        taken = {said.words for said in history.said if said.taken}
        told = {answered.request_id for answered in history.answered if answered.taken}
        return any(
            one.words not in taken and not times_there(one.words, records)
            for one in history.said if one.session == session and one.at > since
        ) or any(
            one.request_id not in told and not times_settled(one.request_id, records)
            for one in history.answered if one.session == session and one.at > since
        )

    async def verdict(self) -> list[Violation]:
        """Every session is fit for use, and every promise was kept; meanwhile a server had reason to refuse."""
        await self.stop()
        await self.settled()
        refusals, self.world.found = self.world.found, []
        listening = [asyncio.create_task(client._quietly(client.listen())) for client in self.clients]
        try:
            async with asyncio.timeout(PATIENCE):
                for client in self.clients:
                    await client.resume()
                    await client.finish()
        except Exception as error:
            error.add_note(f"the servers say:\n{self.fleet.errors()[-20_000:]}")
            raise
        for task in listening:
            task.cancel()
        await asyncio.wait(listening)
        judged = await self.judged()
        return [*unexplained_refusals(refusals, self.world.history), *self.world.found, *judged]

    async def judged(self) -> list[Violation]:
        """What the judge says of all that was said and heard."""
        history = self.world.history
        for client in self.clients:
            history.logs[client.session] = await self.records(client.session)
        for session, stream in {(hearing.session, hearing.stream) for hearing in history.hearings}:
            history.tellings[session, stream] = expected_stream(history.logs.get(session, ()), stream)
        return judge(history)

    async def records(self, session: str) -> list[m.Record]:
        async with self.world.http.get(self.world.url(f"/replay/{session}")) as answer:
            assert answer.status == 200, await answer.text()
            return [m.decode_record(line) for line in (await answer.read()).splitlines()]
