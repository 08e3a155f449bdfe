"""Three servers on one Redis: a turn that is read at the server that runs it, and at another one."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import median
from typing import NamedTuple

from bench.client import Connections
from bench.load import Sample, create_sessions, measured, warm_up
from bench.measure import cpu_time
from bench.protocols import AapProtocol, Workload, burst
from bench.report import Aim, Row, at_most
from bench.scenarios.runner import Bench, compared
from bench.servers import Contender, Server, gateway_command

from .workers import redis_server

NAME = "fleet"
OTHER, OWNER, ALONE = COLUMNS = ("another server", "its own server", "one server alone")
REPLICAS = 3


class Reading(NamedTuple):
    """What one round of turns cost: the servers together, and Redis."""

    sample: Sample
    servers: float
    redis: float

    @property
    def waits(self) -> list[float]:
        """Milliseconds from each request to its first delta."""
        mark = AapProtocol.delta_mark
        return [1000 * (answer.arrivals(mark)[0] - answer.sent_at) for answer in self.sample.round.answers]


def measure_fleet(bench: Bench) -> Iterator[Row]:
    """Deltas per second, CPU time and the first delta; every server is on the same core."""
    if shutil.which("redis-server") is None:
        bench.tell("fleet: left out, because redis-server is not installed")
        return
    turns, deltas, rounds = bench.effort.fleet
    with redis_server(bench.folder, bench.cores.client) as (port, pid):
        replicas = [_contender(f"replica {number}", port, 0) for number in range(REPLICAS)]
        with bench.running(*replicas, _contender(ALONE, port, 1)) as servers:
            *fleet, alone = servers
            warm_up(servers, burst(deltas))
            ways = {OTHER: (fleet[0], fleet[1]), OWNER: (fleet[0], fleet[0]), ALONE: (alone, alone)}
            for label, talk, streams in (("turns at once", burst(deltas), turns), ("turn", burst(10), 1)):
                bench.tell(f"fleet: {streams} {label}")
                read = partial(_read, talk=talk, streams=streams, redis=pid)
                found = {name: [read(*ways[name]) for _ in range(rounds)] for name in COLUMNS}
                yield from _rows(f"{streams:,} × {len(talk.deltas):,}", found)


def _contender(name: str, redis: int, database: int) -> Contender:
    log = f"redis://127.0.0.1:{redis}/{database}"
    return Contender(name, partial(gateway_command, log=log), AapProtocol())


def _read(owner: Server, reader: Server, *, talk: Workload, streams: int, redis: int) -> Reading:
    """So many turns in sessions of one server, which clients of another one, or of the same, ask for and read."""
    sessions, both = create_sessions(owner, streams), {owner, reader}
    before, redis_before = [server.spent().cpu for server in both], cpu_time(redis)
    with Connections(reader.port) as connections:
        sample = measured(reader, connections.open(streams), sessions, talk)
    spent = sum(server.spent().cpu for server in both) - sum(before)
    return Reading(sample, spent, (cpu_time(redis) - redis_before).cpu)


def _rows(label: str, found: Mapping[str, Sequence[Reading]]) -> Iterator[Row]:
    def row(name: str, unit: str, of: Callable[[Reading], float], aim: Aim | None = None) -> Row:
        samples = {way: [of(one) for one in many] for way, many in found.items()}
        return compared(NAME, f"{label} {name}", unit, samples, aim)

    yield row("deltas", "deltas/s", lambda one: one.sample.deltas / one.sample.round.seconds)
    aim = at_most(1.5, "1.5 ×")
    yield row("CPU of the servers", "µs/delta", lambda one: 1e6 * one.servers / one.sample.deltas, aim)
    yield row("CPU of Redis", "µs/delta", lambda one: 1e6 * one.redis / one.sample.deltas)
    yield row("first delta, p50", "ms", lambda one: median(one.waits), aim)
