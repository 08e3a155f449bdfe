"""Streamed turns: bursts, short turns, paced streams, and the wait for the first event."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from bench.client import LoadResponse
from bench.load import Window, concurrent_turns, create_sessions, paced_turns, turns_in_a_row, warm_up
from bench.measure import percentile
from bench.protocols import PAUSE, burst, slow
from bench.report import Row, at_least, at_most
from bench.scenarios.runner import OURS, Bench, alternate, client_row, compared
from bench.servers import CONTENDERS, DRAGOMAN, Contender


def stream_burst(bench: Bench) -> Iterator[Row]:
    """Turns whose deltas come all at once."""
    for turns, (deltas, rounds) in bench.effort.burst.items():
        bench.tell(f"burst: {turns} at once, {deltas} deltas each")
        yield from _burst(bench, turns, deltas, rounds)


def _burst(bench: Bench, turns: int, deltas: int, rounds: int) -> Iterator[Row]:
    talk, label = burst(deltas), f"{turns:,} × {deltas:,}"
    with bench.running(*CONTENDERS) as servers:
        warm_up(servers, talk)
        found = alternate(servers, rounds, lambda server: concurrent_turns(server, turns, talk))
    rates = {name: [sample.rate for sample in samples] for name, samples in found.items()}
    micros = {name: [sample.cpu_micros for sample in samples] for name, samples in found.items()}
    yield compared("burst", f"{label} deltas", "deltas/s", rates, at_least(1.0, "1.0 ×") if turns > 1 else None)
    yield compared("burst", f"{label} server CPU", "µs/delta", micros)
    yield client_row("burst", f"{label} client busy", found)


def short_turns(bench: Bench) -> Iterator[Row]:
    """The cost of a turn that says next to nothing: its start and its end."""
    turns, rounds = bench.effort.turns
    bench.tell(f"turn: {turns} at once, one delta each")
    talk = burst(1)
    with bench.running(*CONTENDERS) as servers:
        warm_up(servers, talk)
        found = alternate(servers, rounds, lambda server: concurrent_turns(server, turns, talk))
    micros = {name: [1e6 * sample.spent.cpu / turns for sample in samples] for name, samples in found.items()}
    yield compared("turn", f"{turns:,} × 1 server CPU", "µs/turn", micros)
    yield client_row("turn", f"{turns:,} × 1 client busy", found)


def stream_paced(bench: Bench) -> Iterator[Row]:
    """Many streams with twenty deltas per second each."""
    streams, deltas, rounds = bench.effort.paced
    bench.tell(f"paced: {streams} streams, {deltas} deltas each, {PAUSE * 1000:g} ms apart")
    talk = slow(deltas)
    with bench.running(*CONTENDERS) as servers:
        warm_up(servers, talk)
        found = alternate(servers, rounds, lambda server: paced_turns(server, streams, talk))
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
    kept = {name: list(map(slowest_rate, windows)) for name, windows in found.items()}
    yield compared("paced", f"{label} slowest stream", "% of rate", kept, at_least(95, "95 %", OURS), share=False)
    yield client_row("paced", f"{label} client busy", whole)


def lateness(window: Window) -> list[float]:
    """How much later than the pause after the delta before it each delta came; early ones are not late."""
    late = list[float]()
    for times in window.arrivals:
        late += [max(0.0, after - before - PAUSE) for before, after in pairwise(times)]
    return late


def slowest_rate(window: Window) -> float:
    """The rate of the slowest stream, in percent of what its pauses allow."""
    return min(100 * PAUSE * (len(times) - 1) / (times[-1] - times[0]) for times in window.arrivals)


def first_event(bench: Bench) -> Iterator[Row]:
    """The wait of a client from a request to its first event, on an idle server."""
    yield compared("first", "request to first event, idle", "ms", first_waits(bench, "first", CONTENDERS))


def first_waits(bench: Bench, scenario: str, contenders: Sequence[Contender]) -> dict[str, list[float]]:
    """Contender → the median wait for the first event in milliseconds, block by block."""
    turns, blocks = bench.effort.first_events
    bench.tell(f"{scenario}: {turns * blocks} turns, one after the other")
    talk, found = burst(1), dict[str, list[float]]()
    with bench.running(*contenders) as servers:
        warm_up(servers, talk)
        for _ in range(blocks):
            for server in servers:
                samples = turns_in_a_row(server, create_sessions(server, turns), talk)
                waits = [1000 * first_wait(sample.round.answers[0]) for sample in samples]
                found.setdefault(server.contender.name, []).append(median(waits))
    return found


def first_wait(answer: LoadResponse) -> float:
    """From the request to the first event."""
    return answer.arrivals(DRAGOMAN.protocol.event_mark)[0] - answer.sent_at
