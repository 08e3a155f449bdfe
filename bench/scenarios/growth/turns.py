"""The cost of a delta with many sessions and with a long history, and of a turn after many others."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median

from bench.load import create_sessions, turns_in_a_row
from bench.protocols import burst
from bench.report import Row
from bench.scenarios.runner import Bench
from bench.servers import DRAGOMAN, Server

from .costs import LARGE, PLACES, SMALL, cpu_ms, flat, sizes_of

ROUNDS = 5


def measure_turns(bench: Bench) -> Iterator[Row]:
    """Whether a delta or a turn costs more with many sessions, or in a session with a long history."""
    with bench.start(DRAGOMAN) as small, bench.start(DRAGOMAN) as large:
        yield from _more_sessions(bench, small, large)
    with bench.start(DRAGOMAN) as server:
        yield from _more_history(bench, server)
    with bench.start(DRAGOMAN) as server:
        yield from _more_turns(bench, server)


def _more_sessions(bench: Bench, small: Server, large: Server) -> Iterator[Row]:
    count = bench.effort.many_sessions
    bench.tell(f"growth: 1 and {count} sessions")
    alone, crowded = create_sessions(small, 1), create_sessions(large, count)
    turns_in_a_row(small, alone, burst(10))
    turns_in_a_row(large, crowded, burst(10))
    yield from _side_by_side(
        bench, ("with 1 session", lambda turns: (small, alone * turns)),
        (f"with {count:,} sessions", lambda turns: (large, crowded[:1] * turns)),
    )


def _more_history(bench: Bench, server: Server) -> Iterator[Row]:
    turns, deltas = bench.effort.history
    events = turns * (len(burst(deltas).deltas))
    bench.tell(f"growth: a history of 10 and of {events} events")
    old = create_sessions(server, 1)
    turns_in_a_row(server, old * turns, burst(deltas))

    def young(count: int) -> tuple[Server, list[str]]:
        sessions = create_sessions(server, count)
        turns_in_a_row(server, sessions, burst(1))
        return server, sessions

    yield from _side_by_side(
        bench, ("after 10 events", young), (f"after {events:,} events", lambda count: (server, old * count)),
    )


def _more_turns(bench: Bench, server: Server) -> Iterator[Row]:
    """A short turn in sessions that have had few turns, and many; each session is new but for the longest one."""
    (few, some, many), block = bench.effort.turns_before
    bench.tell(f"growth: a turn after {few}, {some} and {many} turns")
    longest = _session_with(server, many)
    costs: dict[str, list[float]] = {column: [] for column in PLACES}
    for turn in range(ROUNDS + 1):
        sessions = (_session_with(server, few), _session_with(server, some), longest)
        for column, session in zip(PLACES, sessions, strict=True):
            took = cpu_ms(server, partial(turns_in_a_row, server, session * block, burst(10))) / block
            costs[column] += [took] if turn else []
    yield flat()(f"a turn of 10 deltas after {sizes_of((few, some, many))} turns", "ms CPU", costs)


def _session_with(server: Server, turns: int) -> list[str]:
    session = create_sessions(server, 1)
    turns_in_a_row(server, session * turns, burst(1))
    return session


Setting = tuple[str, Callable[[int], tuple[Server, Sequence[str]]]]
"""A name, and (turns) → the server and a session for each turn."""


def _side_by_side(bench: Bench, small: Setting, large: Setting) -> Iterator[Row]:
    turns, blocks = bench.effort.growth
    found: dict[str, list[float]] = {small[0]: [], large[0]: []}
    for _ in range(blocks):
        for name, prepare in (small, large):
            samples = turns_in_a_row(*prepare(turns), burst(200))
            found[name].append(median(sample.cpu_micros for sample in samples))
    costs = dict(zip((SMALL, LARGE), found.values(), strict=True))
    yield flat()(f"a delta {small[0]} / {large[0]}", "µs CPU", costs)
