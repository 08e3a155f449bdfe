"""The loads that are measured: sessions, turns and watchers on so many replicas, and what of each they contain."""

import socket
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from bench.client import Connections, RequestBatch
from bench.dialects import find_watches
from bench.load import BATCH, CHECKER, create_sessions, measured
from bench.protocols import PAUSE, Workload, words
from bench.servers import Server

WATCH_AFTER = 0.4
"""Seconds from the start of the turns until others begin to watch them."""
STEP = 0.05
"""So often what has arrived is read: the client need not be quick, only complete."""
SETTLE_SECONDS = 1.0
"""After so long, at most, all who read are live."""
WAIT_SECONDS = 60.0
"""Only a server that hangs takes so much longer than its turns."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """So many sessions with one turn each, at once, and who reads them."""

    replicas: int
    streams: int
    deltas: int
    """Deltas of a turn, one every 50 ms."""
    watchers: int = 0
    """Clients that watch each turn, beside the one that began it."""
    is_spread: bool = False
    """Whether each turn is asked for, and watched, at other replicas than the one that holds its session."""
    turns: int = 1
    """Turns of each session, one after the other."""

    @property
    def name(self) -> str:
        said = [f"{self.streams:,} turns at once × {self.deltas:,} deltas"]
        said += [f"{self.turns} times"] if self.turns > 1 else []
        said += [f"{self.watchers} watchers each"] if self.watchers else []
        said += ["read elsewhere"] if self.is_spread else []
        return ", ".join(said)

    def asked_at(self, number: int) -> int:
        """The replica at which the turn of this session is asked for; session N is created at replica N modulo all."""
        return (number + self.is_spread) % self.replicas

    def watched_at(self, number: int, watcher: int) -> int:
        return (number + self.is_spread * (2 + watcher)) % self.replicas

    @property
    def deltas_per_second(self) -> float:
        """At each replica, while the turns run."""
        return self.streams / self.replicas / PAUSE

    @property
    def replica_seconds(self) -> float:
        """For how long replicas have turns that run, all replicas together."""
        return self.replicas * self.turns * self.deltas * PAUSE

    def counts(self) -> dict[str, float]:
        """What the load contains, by the names of the model's coefficients; sessions are created before it."""
        found: Counter[str] = Counter()
        for number in range(self.streams):
            owner, places = number % self.replicas, [self.asked_at(number)]
            places += [self.watched_at(number, watcher) for watcher in range(self.watchers)]
            found["turn"] += 1
            found["turn_elsewhere"] += places[0] != owner
            found["delta"] += self.deltas
            found["delta_relayed"] += self.deltas * len({*places} - {owner})
            found["delta_read"] += self.deltas * len(places)
            found["watch"] += self.watchers
        return {name: float(count * self.turns) for name, count in found.items()}


@dataclass(frozen=True)
class Readers:
    """The sessions of a load, and the open connections of all who read their turns."""

    load: Load
    server: Server
    sessions: Sequence[str]
    asking: Sequence[socket.socket]
    watching: Sequence[socket.socket]

    def play(self) -> Iterator[None]:
        """Every session has its turns; yields when all turns run and are watched. What was read is checked."""
        for _ in range(self.load.turns):
            yield from self._play_once(words(self.load.deltas, slowly=True))

    def _play_once(self, talk: Workload) -> Iterator[None]:
        requests = [self.server.wire.turn(session, talk.message) for session in self.sessions]
        with RequestBatch(self.asking, requests) as turns:
            turns.read(WATCH_AFTER if self.watching else STEP)
            with RequestBatch(self.watching, self._watches()) as watched:
                batches = (turns, watched)
                _read(batches, min(SETTLE_SECONDS, talk.paced * PAUSE / 2))
                yield
                _read(batches, talk.paced * PAUSE + WAIT_SECONDS)
                for answer in (*turns.finish().answers, *watched.finish().answers):
                    CHECKER.check(self.server, answer, talk)

    def _watches(self) -> list[bytes]:
        watch = find_watches()[self.server.wire.name]
        return [b"".join(watch(session, "")) for session in self.sessions for _ in range(self.load.watchers)]


def _read(batches: Sequence[RequestBatch], seconds: float) -> None:
    until = time.perf_counter() + seconds
    while any(batch.is_waiting for batch in batches) and time.perf_counter() < until:
        for batch in batches:
            batch.read(STEP)


@contextmanager
def readers(load: Load, servers: Sequence[Server]) -> Iterator[Readers]:
    """The sessions of a load, created, and all its connections, open."""
    chosen = servers[:load.replicas]
    created = [create_sessions(server, -(-load.streams // load.replicas)) for server in chosen]
    places = range(load.streams)
    sessions = [created[number % load.replicas][number // load.replicas] for number in places]
    with ExitStack() as stack:
        lines = [stack.enter_context(Connections(server.port)) for server in chosen]
        asking = [lines[load.asked_at(number)].open(1)[0] for number in places]
        watching = [lines[load.watched_at(number, one)].open(1)[0] for number in places for one in range(load.watchers)]
        yield Readers(load, chosen[0], sessions, asking, watching)


def turns_in_batches(server: Server, sessions: Sequence[str], talk: Workload) -> None:
    """A turn in each session, some of them at a time."""
    with Connections(server.port) as connections:
        sockets = connections.open(min(BATCH, len(sessions)))
        for start in range(0, len(sessions), BATCH):
            batch = sessions[start:start + BATCH]
            measured(server, sockets[:len(batch)], batch, talk)
