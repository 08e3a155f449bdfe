"""Memory for one more idle session, open stream or stored resource, with few of them and with many."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from bench.client import Connections, RequestBatch
from bench.dialects import Watch, find_additions, find_idle_watches
from bench.load import create_sessions, turns_in_a_row
from bench.measure import BenchFailure
from bench.protocols import burst
from bench.report import Row
from bench.scenarios.runner import Bench
from bench.servers import ALL_IN_MEMORY, DRAGOMAN, Server

from .additions import post_additions
from .costs import PLACES, flat, sizes_of

WARM_UP = 200
"""So many resources are created before the first is measured."""
OPENED_AT_ONCE, WAITS = 50, 300
"""How many streams are opened at once, and how often they are looked at until each has said something."""


def measure_memory_sizes(bench: Bench) -> Iterator[Row]:
    """KiB for each of those that were added last, up to three sizes; everything is kept in memory."""
    sessions, streams, resources = bench.effort.held
    with bench.start(DRAGOMAN) as server:
        turns_in_a_row(server, create_sessions(server, 50), burst(5))
        yield _row("idle session", sessions, _grown(server, sessions, lambda many: create_sessions(server, many)))
    for name, watch in find_idle_watches().items():
        yield _row(f"open {name} stream", streams, _streams(bench, watch, streams))
    addition = max(find_additions(), key=lambda one: one.most)
    with bench.start(ALL_IN_MEMORY) as server:
        post_additions(addition, server, range(WARM_UP))
        costs = _grown(server, resources, lambda many: post_additions(addition, server, range(many)))
        yield _row(f"stored resource ({addition.name})", resources, costs)


def _row(what: str, sizes: Sequence[int], costs: dict[str, list[float]]) -> Row:
    return flat()(f"memory of one more {what}, up to {sizes_of(sizes)}", "KiB", costs)


def _grown(server: Server, sizes: Sequence[int], add: Callable[[int], object]) -> dict[str, list[float]]:
    """By how much each one makes the server grow, on the way from one size to the next."""
    costs, had = dict[str, list[float]](), 0
    for column, size in zip(PLACES, sizes, strict=True):
        before = server.rss()
        add(size - had)
        costs[column] = [max(1, server.rss() - before) / 2**10 / (size - had)]
        had = size
    return costs


def _streams(bench: Bench, watch: Watch, sizes: Sequence[int]) -> dict[str, list[float]]:
    with bench.start(ALL_IN_MEMORY) as server, Connections(server.port) as connections:
        _open(server, connections, watch, create_sessions(server, OPENED_AT_ONCE))
        idle = iter(create_sessions(server, sizes[-1]))
        return _grown(server, sizes, lambda many: _open(server, connections, watch, list(islice(idle, many))))


def _open(server: Server, connections: Connections, watch: Watch, sessions: Sequence[str]) -> None:
    """Watch each of these sessions, in which nothing happens; the streams stay open."""
    for start in range(0, len(sessions), OPENED_AT_ONCE):
        some = sessions[start:start + OPENED_AT_ONCE]
        with RequestBatch(connections.open(len(some)), [b"".join(watch(session, "")) for session in some]) as playing:
            for _ in range(WAITS):
                playing.read(0.1)
                if all(answer.pieces for answer in playing.answers):
                    break
            else:
                raise BenchFailure(f"{server.contender.name}: an open stream said nothing")
