"""The scenarios: each starts its own servers, drives them in turns, and yields rows."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TypeVar

from .client import Answer, Connections, Playing
from .load import Sample, Window, concurrent_turns, create_sessions, paced_turns, rehearse, turns_in_a_row
from .measure import Broken, Cores, Figure, figure, paired, percentile
from .report import Aim, Row, at_least, at_most
from .servers import CONTENDERS, DRAGOMAN, Contender, Server
from .wire import PAUSE, burst, slow

BUSY_CLIENT = 0.9
DISTURBED = 0.1
OURS = DRAGOMAN.name


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much work is done to be sure."""

    name: str
    burst: Mapping[int, tuple[int, int]]
    """Turns at once → deltas of each, rounds."""
    turns: tuple[int, int]
    """Turns at once, rounds."""
    paced: tuple[int, int, int]
    """Streams, deltas of each, rounds."""
    first_events: tuple[int, int]
    """Turns in a block, blocks."""
    open_streams: int
    idle_sessions: int
    logged_events: int
    starts: int
    many_sessions: int
    history: tuple[int, int]
    """Turns, deltas of each."""
    growth: tuple[int, int]
    """Turns in a block, blocks."""
    upstream: Mapping[int, tuple[int, int, int]]
    """Turns at once → deltas of each, how often in a round, rounds."""
    upstream_paced: tuple[int, int, int]
    """Streams, deltas of each, rounds."""
    translated: tuple[int, int]
    """Deltas, rounds."""


FULL = Effort(
    name="full", burst={1: (20_000, 9), 16: (1_250, 9), 100: (400, 9), 1_000: (200, 5)},
    turns=(1_000, 5), paced=(500, 100, 3), first_events=(50, 6), open_streams=500, idle_sessions=5_000,
    logged_events=100_000, starts=5, many_sessions=1_000, history=(500, 197), growth=(20, 9),
    upstream={1: (200, 20, 5), 32: (200, 3, 5), 100: (200, 1, 5)}, upstream_paced=(500, 100, 1),
    translated=(20_000, 5),
)
QUICK = Effort(
    name="quick", burst={1: (10_000, 3), 100: (200, 3), 1_000: (50, 1)}, turns=(1_000, 3), paced=(500, 80, 1),
    first_events=(30, 3), open_streams=500, idle_sessions=2_000, logged_events=50_000, starts=3, many_sessions=1_000,
    history=(100, 997), growth=(10, 5),
    upstream={1: (200, 10, 3), 32: (200, 1, 3), 100: (200, 1, 3)}, upstream_paced=(500, 80, 1),
    translated=(10_000, 3),
)
TINY = Effort(
    name="tiny", burst={2: (20, 1)}, turns=(2, 1), paced=(2, 3, 1), first_events=(2, 1), open_streams=2,
    idle_sessions=2, logged_events=50, starts=1, many_sessions=2, history=(2, 20), growth=(2, 1),
    upstream={1: (5, 2, 1), 2: (20, 1, 1)}, upstream_paced=(2, 40, 1), translated=(20, 1),
)


@dataclass(frozen=True)
class Bench:
    """What every scenario works with."""

    effort: Effort
    cores: Cores
    folder: Path
    tell: Callable[[str], None]
    """Says how far we are."""
    litellm: bool = False
    """Whether LiteLLM's proxy takes part where it can; it is large, and it takes its time."""

    def start(self, contender: Contender) -> Server:
        return Server(contender, self.folder, self.cores.server)

    @contextmanager
    def running(self, *contenders: Contender) -> Iterator[Sequence[Server]]:
        """All of them at once; only the one that is being driven has anything to do."""
        with ExitStack() as stack:
            yield [stack.enter_context(self.start(contender)) for contender in contenders]


Found = TypeVar("Found")
Scenario = Callable[[Bench], Iterator[Row]]
Samples = Mapping[str, Sequence[float]]
"""Column → what was measured, round by round."""


def compared(
    scenario: str, name: str, unit: str, samples: Samples, aim: Aim | None = None, *, share: bool = True,
) -> Row:
    """A row with a figure for each column and, of the first two, the ratio."""
    columns = list(samples)
    ratio = paired(samples[columns[0]], samples[columns[1]]) if share and len(columns) > 1 else None
    return Row(scenario, name, unit, {column: figure(samples[column]) for column in columns}, ratio, aim)


def in_turns(servers: Sequence[Server], rounds: int, work: Callable[[Server], Found]) -> dict[str, list[Found]]:
    """Every server does the work once in each round, first one first, then the other first."""
    found: dict[str, list[Found]] = {server.contender.name: [] for server in servers}
    for turn in range(rounds):
        for server in servers if turn % 2 == 0 else reversed(servers):
            found[server.contender.name].append(work(server))
    return found


def client_row(scenario: str, name: str, found: Mapping[str, Sequence[Sample]]) -> Row:
    """How busy the client was: near 100 % it was measured, not the server."""
    shares = {column: figure([100 * s.round.client_busy for s in samples]) for column, samples in found.items()}
    notes = [note for column, samples in found.items() for note in doubts(column, samples)]
    return Row(scenario, name, "% of core", shares, notes=notes)


def doubts(column: str, samples: Sequence[Sample]) -> Iterator[str]:
    """What makes these samples worth less than they look."""
    if median(sample.round.client_busy for sample in samples) > BUSY_CLIENT:
        yield f"the load client was the bottleneck against {column}"
    taken = median(sample.spent.waited / sample.round.seconds for sample in samples)
    if taken > DISTURBED:
        yield f"other processes had the core of {column} for {100 * taken:.0f} % of the time"
    taken = median(sample.round.client_kept_off for sample in samples)
    if taken > DISTURBED:
        yield (f"other processes had the client's core for {100 * taken:.0f} % of the time against {column}; "
               "a client that is late makes many small writes cheaper than they are")


# -- streaming --------------------------------------------------------------------------------------------------------

def stream_burst(bench: Bench) -> Iterator[Row]:
    """Turns that say all they have to say at once."""
    for turns, (deltas, rounds) in bench.effort.burst.items():
        bench.tell(f"burst: {turns} at once, {deltas} deltas each")
        yield from _burst(bench, turns, deltas, rounds)


def _burst(bench: Bench, turns: int, deltas: int, rounds: int) -> Iterator[Row]:
    talk, label = burst(deltas), f"{turns:,} × {deltas:,}"
    with bench.running(*CONTENDERS) as servers:
        rehearse(servers, talk)
        found = in_turns(servers, rounds, lambda server: concurrent_turns(server, turns, talk))
    rates = {name: [sample.rate for sample in samples] for name, samples in found.items()}
    micros = {name: [sample.cpu_micros for sample in samples] for name, samples in found.items()}
    yield compared("burst", f"{label} deltas", "deltas/s", rates, at_least(1.0, "1.0 ×") if turns > 1 else None)
    yield compared("burst", f"{label} server CPU", "µs/delta", micros)
    yield client_row("burst", f"{label} client busy", found)


def short_turns(bench: Bench) -> Iterator[Row]:
    """What a turn costs that says next to nothing: the price of its start and end."""
    turns, rounds = bench.effort.turns
    bench.tell(f"turn: {turns} at once, one delta each")
    talk = burst(1)
    with bench.running(*CONTENDERS) as servers:
        rehearse(servers, talk)
        found = in_turns(servers, rounds, lambda server: concurrent_turns(server, turns, talk))
    micros = {name: [1e6 * sample.spent.cpu / turns for sample in samples] for name, samples in found.items()}
    yield compared("turn", f"{turns:,} × 1 server CPU", "µs/turn", micros)
    yield client_row("turn", f"{turns:,} × 1 client busy", found)


def stream_paced(bench: Bench) -> Iterator[Row]:
    """Many streams, twenty deltas a second each."""
    streams, deltas, rounds = bench.effort.paced
    bench.tell(f"paced: {streams} streams, {deltas} deltas each, {PAUSE * 1000:g} ms apart")
    talk = slow(deltas)
    with bench.running(*CONTENDERS) as servers:
        rehearse(servers, talk)
        found = in_turns(servers, rounds, lambda server: paced_turns(server, streams, talk))
    label, whole = f"{streams} × 20/s", {name: [window.whole for window in found[name]] for name in found}
    steady = {name: [window.cpu_micros for window in windows] for name, windows in found.items()}
    micros = {name: [sample.cpu_micros for sample in samples] for name, samples in whole.items()}
    first = {name: [1000 * median(map(first_wait, sample.round.answers)) for sample in whole[name]] for name in whole}
    yield compared("paced", f"{label} CPU, streams running", "µs/delta", steady, at_most(1.3, "1.3 ×"))
    yield compared("paced", f"{label} CPU, start and end too", "µs/delta", micros, at_most(1.3, "1.3 ×"))
    yield compared("paced", f"{label} first event, all at once", "ms", first)
    late = {name: list(map(lateness, windows)) for name, windows in found.items()}
    for percent in (50, 99):
        at = {name: [percentile(times, percent) * 1000 for times in rounds_] for name, rounds_ in late.items()}
        aim = at_most(40, "40 ms", OURS) if percent == 99 else None
        yield compared("paced", f"{label} lateness p{percent}", "ms", at, aim, share=False)
    kept = {name: list(map(kept_up, windows)) for name, windows in found.items()}
    yield compared("paced", f"{label} slowest stream", "% of rate", kept, at_least(95, "95 %", OURS), share=False)
    yield client_row("paced", f"{label} client busy", whole)


def lateness(window: Window) -> list[float]:
    """How much later than the pause after its predecessor each delta came; what came early is not late."""
    late = list[float]()
    for times in window.arrivals:
        late += [max(0.0, after - before - PAUSE) for before, after in pairwise(times)]
    return late


def kept_up(window: Window) -> float:
    """The rate of the slowest stream, in percent of what its pauses allow."""
    return min(100 * PAUSE * (len(times) - 1) / (times[-1] - times[0]) for times in window.arrivals)


def first_event(bench: Bench) -> Iterator[Row]:
    """How long an idle server takes from a request to its first event."""
    yield compared("first", "request to first event, idle", "ms", first_waits(bench, "first", CONTENDERS))


def first_waits(bench: Bench, scenario: str, contenders: Sequence[Contender]) -> dict[str, list[float]]:
    """Contender → how many milliseconds its first events took, half of them at most, block for block."""
    turns, blocks = bench.effort.first_events
    bench.tell(f"{scenario}: {turns * blocks} turns, one after the other")
    talk, found = burst(1), dict[str, list[float]]()
    with bench.running(*contenders) as servers:
        rehearse(servers, talk)
        for _ in range(blocks):
            for server in servers:
                samples = turns_in_a_row(server, create_sessions(server, turns), talk)
                waits = [1000 * first_wait(sample.round.answers[0]) for sample in samples]
                found.setdefault(server.contender.name, []).append(median(waits))
    return found


def first_wait(answer: Answer) -> float:
    """From the request to the first event."""
    return answer.arrivals(DRAGOMAN.wire.event_mark)[0] - answer.sent_at


# -- memory and start -------------------------------------------------------------------------------------------------

def memory(bench: Bench) -> Iterator[Row]:
    """What a server holds: idle, per session, per event of the log, per open stream."""
    effort = bench.effort
    bench.tell(f"memory: {effort.idle_sessions} sessions, {effort.open_streams} open streams")
    with bench.running(*CONTENDERS) as servers:
        idle = {server.contender.name: [server.rss() / 2**20] for server in servers}
        yield compared("memory", "idle", "MB", idle, at_most(80, "80 MB", OURS))
        per_event = _per_event(servers[0], effort.logged_events)
        yield Row("memory", "per event in the memory log", "bytes", {OURS: figure([per_event])})
    with bench.start(DRAGOMAN) as server:
        per_session = _per_session(server, effort.idle_sessions) / 2**10
        aim = at_most(4, "4 KiB", OURS)
        yield Row("memory", "per idle session", "KiB", {OURS: figure([per_session])}, aim=aim)
    with bench.running(*CONTENDERS) as servers:
        rehearse(servers, burst(5))
        rehearse(servers, HELD_OPEN)
        held = {s.contender.name: [_per_stream(s, effort.open_streams, per_event) / 2**10] for s in servers}
    yield compared("memory", "per open stream, its log apart", "KiB", held, at_most(48, "48 KiB", OURS))


HELD_OPEN = slow(60)
"""Longer than we look at it."""


def _per_event(server: Server, events: int) -> float:
    rehearse([server], burst(100))
    session, before = create_sessions(server, 1), server.rss()
    turns_in_a_row(server, session * 10, burst(events // 10))
    return (server.rss() - before) / events


def _per_session(server: Server, count: int) -> float:
    create_sessions(server, 100)
    before = server.rss()
    create_sessions(server, count)
    return (server.rss() - before) / count


def _per_stream(server: Server, count: int, per_event: float) -> float:
    """The growth while so many streams are open, without what the log keeps of them."""
    sessions = create_sessions(server, count)
    before = server.rss()
    with Connections(server.port) as connections:
        while len(connections.sockets) < count:
            connections.open(min(50, count - len(connections.sockets)))
            time.sleep(0.02)
        requests = [server.wire.turn(session, HELD_OPEN.message) for session in sessions]
        with Playing(connections.sockets, requests) as playing:
            playing.read(2.0)
            held = server.rss() - before
    deltas = [len(answer.arrivals(server.wire.delta_mark)) for answer in playing.answers]
    if not all(deltas):
        raise Broken(f"{server.contender.name}: {deltas.count(0)} of {count} open streams said nothing")
    logged = sum(deltas) * per_event if server.contender is DRAGOMAN else 0.0
    return (held - logged) / count


def start_up(bench: Bench) -> Iterator[Row]:
    """From the start of the process to the first 200 on /readyz."""
    bench.tell(f"start: {bench.effort.starts} starts of each")
    found: dict[str, list[float]] = {contender.name: [] for contender in CONTENDERS}
    for _ in range(bench.effort.starts):
        for contender in CONTENDERS:
            with bench.start(contender) as server:
                found[contender.name].append(server.seconds_to_ready)
    yield compared("start", "process start to ready", "s", found, at_most(0.8, "0.8 s", OURS))


# -- growth -----------------------------------------------------------------------------------------------------------

FLAT = at_most(1.2, "1.2 × (flat)")


def growth(bench: Bench) -> Iterator[Row]:
    """Whether a delta costs more where there are many sessions, or where a session has a long history."""
    with bench.start(DRAGOMAN) as small, bench.start(DRAGOMAN) as large:
        yield from _more_sessions(bench, small, large)
    with bench.start(DRAGOMAN) as server:
        yield from _more_history(bench, server)


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
        bench, ("10 events of history", young), (f"{events:,} events of history", lambda count: (server, old * count)),
    )


Setting = tuple[str, Callable[[int], tuple[Server, Sequence[str]]]]
"""What it is called, and (turns) → the server and a session for each turn."""


def _side_by_side(bench: Bench, small: Setting, large: Setting) -> Iterator[Row]:
    turns, blocks = bench.effort.growth
    found: dict[str, list[float]] = {small[0]: [], large[0]: []}
    for _ in range(blocks):
        for name, prepare in (small, large):
            samples = turns_in_a_row(*prepare(turns), burst(200))
            found[name].append(median(sample.cpu_micros for sample in samples))
    yield Row("growth", f"CPU {small[0]}", "µs/delta", {OURS: figure(found[small[0]])})
    yield Row("growth", f"CPU {large[0]}", "µs/delta", {OURS: figure(found[large[0]])}, _growth(found), FLAT)


def _growth(found: Mapping[str, Sequence[float]]) -> Figure:
    small, large = found.values()
    return paired(large, small)
