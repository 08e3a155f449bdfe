"""Many clients, each with a session of its own; everything that they receive is checked."""

import socket
import time
from bisect import bisect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from .client import BatchResult, Connections, LoadResponse, RequestBatch, run_batch
from .measure import BenchFailure, CpuTime
from .protocols import PAUSE, Workload
from .servers import Server

RAMP_SECONDS = 1.5
"""Paced streams are steady so many seconds after their start."""
BATCH = 50
"""So many connections are opened at once; more would overflow the server's queue, and the kernel would retry."""


@dataclass(frozen=True)
class Sample:
    """One measured round of turns."""

    round: BatchResult
    deltas: int
    spent: CpuTime
    """The CPU time of the server process."""

    @property
    def rate(self) -> float:
        """Deltas per second; time in which others had the server's core does not count."""
        return self.deltas / max(self.spent.cpu, self.round.seconds - self.spent.waited)

    @property
    def cpu_micros(self) -> float:
        return self.spent.cpu / self.deltas * 1e6


@dataclass(frozen=True)
class Window:
    """A period in which all streams ran, and its cost."""

    whole: Sample
    arrivals: Sequence[Sequence[float]]
    """The times of each stream's deltas within the window."""
    spent: CpuTime

    @property
    def cpu_micros(self) -> float:
        return self.spent.cpu / sum(map(len, self.arrivals)) * 1e6


class StreamChecker:
    """Checks every stream; a stream that equals one that was checked before is correct."""

    def __init__(self) -> None:
        self._right: dict[tuple[str, str], bytes] = {}

    def check(self, server: Server, answer: LoadResponse, talk: Workload) -> bytes:
        if answer.status != 200:
            raise BenchFailure(f"{server.contender.name} answered {answer.status}: {answer.body()[:200]!r}")
        body, key = answer.body(), (server.contender.name, talk.message)
        if body != self._right.get(key):
            server.wire.check(body, talk)
            self._right[key] = body
        return body


CHECKER = StreamChecker()


def create_sessions(server: Server, count: int) -> list[str]:
    """Sessions that are made one after the other on one connection; empty ids if the protocol has none."""
    if not server.wire.create():
        return [""] * count
    with Connections(server.port) as connections:
        one = connections.open(1)
        return [_created(server, run_batch(one, [server.wire.create()]).answers[0]) for _ in range(count)]


def _created(server: Server, answer: LoadResponse) -> str:
    if answer.status != 201:
        raise BenchFailure(f"{server.contender.name} answered {answer.status}: {answer.body()[:200]!r}")
    return server.wire.session_of(answer.body())


def concurrent_turns(server: Server, count: int, talk: Workload, rest: float = 0.0) -> Sample:
    """So many turns at once, each on its own connection and in its own new session."""
    with open_clients(server, count) as (sockets, sessions):
        return measured(server, sockets, sessions, talk, rest)


def paced_turns(server: Server, count: int, talk: Workload) -> Window:
    """So many paced turns at once; the window lies between their start and their end."""
    with open_clients(server, count) as (sockets, sessions):
        requests, before = [server.wire.turn(session, talk.message) for session in sessions], server.spent()
        with RequestBatch(sockets, requests) as playing:
            playing.read(RAMP_SECONDS)
            begin, settled = time.perf_counter(), server.spent()
            playing.read(max(PAUSE, talk.paced * PAUSE - RAMP_SECONDS - 2 * PAUSE))
            end, spent = time.perf_counter(), server.spent() - settled
            played = playing.finish()
    whole = _checked_sample(server, played, talk, server.spent() - before)
    times = [answer.arrivals(server.wire.delta_mark)[:talk.paced] for answer in played.answers]
    seen = [each[bisect(each, begin):bisect(each, end)] for each in times]
    if any(len(each) < 2 for each in seen):
        raise BenchFailure(f"{server.contender.name}: a stream of {talk.message} did not run while we looked")
    return Window(whole, seen, spent)


@contextmanager
def open_clients(server: Server, count: int) -> Iterator[tuple[Sequence[socket.socket], Sequence[str]]]:
    """So many clients, each with a connection and a session."""
    with Connections(server.port) as connections:
        sessions = list[str]()
        while len(sessions) < count:
            sessions += _create_sessions(server, connections.open(min(BATCH, count - len(sessions))))
        yield connections.sockets, sessions


def _create_sessions(server: Server, sockets: Sequence[socket.socket]) -> list[str]:
    if not server.wire.create():
        return [""] * len(sockets)
    answers = run_batch(sockets, [server.wire.create()] * len(sockets)).answers
    return [_created(server, answer) for answer in answers]


def measured(
    server: Server, sockets: Sequence[socket.socket], sessions: Sequence[str], talk: Workload, rest: float = 0.0,
) -> Sample:
    requests = [server.wire.turn(session, talk.message) for session in sessions]
    before = server.spent()
    played = run_batch(sockets, requests, rest)
    return _checked_sample(server, played, talk, server.spent() - before)


def _checked_sample(server: Server, played: BatchResult, talk: Workload, spent: CpuTime) -> Sample:
    for answer in played.answers:
        CHECKER.check(server, answer, talk)
    return Sample(played, len(played.answers) * len(talk.deltas), spent)


def turns_in_a_row(server: Server, sessions: Sequence[str], talk: Workload) -> list[Sample]:
    """One turn after the other on one connection, in the given sessions."""
    with Connections(server.port) as connections:
        one = connections.open(1)
        return [measured(server, one, [session], talk) for session in sessions]


def warm_up(servers: Sequence[Server], talk: Workload) -> None:
    """Let the first server show its output, teach it to the servers that must be taught, and warm all of them up."""
    first, *others = servers
    body = CHECKER.check(first, turns_in_a_row(first, create_sessions(first, 1), talk)[0].round.answers[0], talk)
    for server in others:
        if server.contender.needs_script:
            server.load_script(talk, body)
        if not talk.paced:
            turns_in_a_row(server, create_sessions(server, 1), talk)
