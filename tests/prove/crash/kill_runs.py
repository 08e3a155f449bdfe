"""A server dies again and again while clients of all dialects talk; afterwards the judge reads everything."""

import asyncio
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol

import aiohttp

import gateway.model as m
from tests.prove.crash.clients import BROKEN, CrashRun, DialectClient, Watcher, client_types, watchers
from tests.prove.crash.expected_streams import expected_stream
from tests.prove.crash.history import Kind, Violation, judge, of_return
from tests.prove.crash.killable_server import server

LIFE = 8
"""How many deaths a session sees before others take its place: histories must not become too long to be read."""
EACH = 2
"""Clients of each dialect at a time."""
MOMENTS = ("random", "commit", "frame", "start")


@dataclass
class Report:
    """What happened, and what was wrong with it."""

    seed: int
    deaths: Counter[str] = field(default_factory=Counter)
    sessions: int = 0
    turns: int = 0
    things: int = 0
    records: int = 0
    running: int = 0
    waiting: int = 0
    violations: list[Violation] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        deaths = ", ".join(f"{times} {moment}" for moment, times in sorted(self.deaths.items()))
        lines = [
            f"seed {self.seed}: {sum(self.deaths.values())} deaths ({deaths}) in {self.seconds:.0f} s; "
            f"{self.sessions} sessions, {self.turns} steps, {self.records} records, {self.things} things heard",
            f"turns that ran at a death: {self.running}; turns that waited: {self.waiting}; "
            f"promises broken: {len(self.violations)}",
            *map(str, self.violations[:50]),
        ]
        return "\n".join(lines)


class Killable(Protocol):
    """A server that can die and come back with what was stored."""

    address: str

    async def start(self) -> None:
        """Begin, and do not wait until it is ready."""
    async def wait_ready(self) -> None:
        """Come back when it answers."""
    async def end(self, number: signal.Signals) -> None:
        """Come back when it has died of this."""
    async def until_written(self) -> None:
        """Come back when it has stored something."""
    def logs(self, sessions: Iterable[str]) -> dict[str, Sequence[m.Record]]:
        """What is stored of these sessions."""


class KillRun:
    """One run: so many deaths by this signal, at moments that the seed chooses."""

    def __init__(self, served: Killable, world: CrashRun, number: signal.Signals, random: Random, each: int) -> None:
        self.server = served
        self.world = world
        self.number = number
        self.random = random
        self.each = each
        self._kinds = client_types()
        self.clients: list[DialectClient] = []
        self.watchers: list[Watcher] = []
        self.retired: list[DialectClient] = []
        self.report = Report(0)

    async def go(self, deaths: int, progress: Callable[[str], None]) -> None:
        self._gather_clients()
        await self.server.start()
        await self.server.wait_ready()
        for death in range(1, deaths + 1):
            await self._die(self.random.choice(MOMENTS))
            if death % LIFE == 0 or death == deaths:
                await self._change_clients()
                progress(f"{death} of {deaths} deaths, {len(self._found)} promises broken")
        await self.server.end(signal.SIGTERM)
        self._judge()

    @property
    def _found(self) -> list[Violation]:
        return self.report.violations + self.world.found

    # -- dying ----------------------------------------------------------------------------------------------------

    async def _die(self, moment: str) -> None:
        """Clients talk; at the moment the server dies; it comes back and has lost nothing."""
        self.world.heard = 0
        talking = [asyncio.create_task(client.live()) for client in self.clients]
        watched = [client.session for client in self.clients if client.session]
        talking += [asyncio.create_task(watcher.live(watched)) for watcher in self.watchers]
        await self._moment(moment)
        await self.server.end(self.number)
        await self._let_go(talking)
        sessions = [client.session for client in self.clients if client.session]
        before = self.server.logs(sessions)
        await self.server.start()
        if moment == "start":
            await asyncio.sleep(self.random.uniform(0, 0.15))
            await self.server.end(signal.SIGKILL)
            self.report.deaths["early"] += 1
            await self.server.start()
        await self.server.wait_ready()
        self._returned(before, self.server.logs(sessions))
        self.report.deaths[moment] += 1

    async def _moment(self, moment: str) -> None:
        """Wait for it: any time, a change of the file, or something that a client hears."""
        await asyncio.sleep(self.random.uniform(0.02, 0.5))
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                if moment == "commit":
                    await self.server.until_written()
                elif moment == "frame":
                    await self.world.until_heard(self.random.randint(1, 20))

    async def _let_go(self, talking: list[asyncio.Task[None]]) -> None:
        """Who listens notices that nobody is there; who waits for something to happen is told."""
        _, late = await asyncio.wait(talking, timeout=0.2)
        for task in late:
            task.cancel()
        for task in talking:
            with suppress(asyncio.CancelledError):
                await task

    def _returned(self, before: dict[str, Sequence[m.Record]], after: dict[str, Sequence[m.Record]]) -> None:
        for session, records in before.items():
            status = m.fold(session, records).status
            self.report.running += status is m.SessionStatus.RUNNING
            self.report.waiting += status is m.SessionStatus.SUSPENDED
        self.report.violations += of_return(before, after)

    # -- coming and going -----------------------------------------------------------------------------------------

    def _gather_clients(self) -> None:
        self.clients = [kind(self.world, len(self.retired) + n) for n in range(self.each) for kind in self._kinds]
        self.watchers = watchers(self.world)

    async def _change_clients(self) -> None:
        """Every session is fit for use; then others take their place."""
        for client in self.clients:
            if not client.session:
                client.session = await client.create()
        listening = [asyncio.create_task(client._quietly(client.listen())) for client in self.clients]
        listening += [asyncio.create_task(w.live([c.session for c in self.clients])) for w in self.watchers]
        async with asyncio.timeout(120):
            await asyncio.gather(*(self._finish(client) for client in self.clients))
        for task in listening:
            task.cancel()
        await asyncio.wait(listening)
        self.retired += self.clients
        self._gather_clients()

    async def _finish(self, client: DialectClient) -> None:
        try:
            await client.resume()
            await client.finish()
        except BROKEN as error:
            self.world.found.append(Violation(Kind.STUCK, client.session, f"{client.name}: {error!r}"))

    # -- judging --------------------------------------------------------------------------------------------------

    def _judge(self) -> None:
        history, report = self.world.history, self.report
        sessions = {client.session for client in self.retired}
        history.logs = self.server.logs(sessions)
        for session, stream in {(hearing.session, hearing.stream) for hearing in history.hearings}:
            history.tellings[session, stream] = expected_stream(history.logs.get(session, ()), stream)
        report.violations += [*self.world.found, *judge(history)]
        report.sessions, report.turns = len(sessions), self.world.turns
        report.things = sum(len(hearing.heard) for hearing in history.hearings)
        report.records = sum(map(len, history.logs.values()))


async def run(
    folder: Path, deaths: int, seed: int, number: signal.Signals = signal.SIGKILL,
    progress: Callable[[str], None] = lambda line: None, *, careless: bool = False,
) -> Report:
    """Let a process die so many times in this folder; what the judge says."""
    with server(folder, careless=careless) as served:
        return await judge_run(served, deaths, seed, number, progress)


async def judge_run(
    served: Killable, deaths: int, seed: int, number: signal.Signals = signal.SIGKILL,
    progress: Callable[[str], None] = lambda line: None, *, each: int = EACH, thinking: float = 0.0,
) -> Report:
    """Let this server die so many times, while so many clients of each dialect talk; what the judge says."""
    clock, random = asyncio.get_running_loop().time, Random(seed)
    began, timeout = clock(), aiohttp.ClientTimeout(total=None, sock_connect=60, sock_read=60)
    async with aiohttp.ClientSession(timeout=timeout) as http:
        dying = KillRun(served, CrashRun(served.address, random, http, thinking=thinking), number, random, each)
        dying.report.seed = seed
        await dying.go(deaths, progress)
    dying.report.seconds = clock() - began
    return dying.report
