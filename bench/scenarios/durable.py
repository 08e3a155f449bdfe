"""The cost of durability: the same work with the log in a file, and with the log in memory."""

from collections.abc import Callable, Iterator

from bench.load import Sample, concurrent_turns, paced_turns, warm_up
from bench.measure import figure, percentile
from bench.protocols import Workload, burst, slow
from bench.report import Row, at_least, at_most
from bench.servers import DRAGOMAN, DURABLE, Server

from .runner import Bench, alternate, client_row, compared
from .streaming import first_waits, lateness, slowest_rate

BOTH = (DURABLE, DRAGOMAN)


def measure_durable(bench: Bench) -> Iterator[Row]:
    """Bursts, a steady load, and single turns."""
    yield from _bursts(bench)
    yield from _steady(bench)
    yield from _single(bench)


def _bursts(bench: Bench) -> Iterator[Row]:
    for turns, (deltas, rounds) in bench.effort.burst.items():
        bench.tell(f"durable: {turns} at once, {deltas} deltas each")
        talk, label = burst(deltas), f"{turns:,} × {deltas:,}"
        with bench.running(*BOTH) as servers:
            warm_up(servers, talk)
            found = alternate(servers, rounds, _work(turns, talk))
        rates = {name: [sample.rate for sample in samples] for name, samples in found.items()}
        micros = {name: [sample.cpu_micros for sample in samples] for name, samples in found.items()}
        yield compared("durable", f"{label} deltas", "deltas/s", rates, at_least(0.75, "0.75 ×"))
        yield compared("durable", f"{label} server CPU", "µs/delta", micros)
        yield client_row("durable", f"{label} client busy", found)


def _work(turns: int, talk: Workload) -> Callable[[Server], Sample]:
    return lambda server: concurrent_turns(server, turns, talk)


def _steady(bench: Bench) -> Iterator[Row]:
    streams, deltas, rounds = bench.effort.paced
    bench.tell(f"durable: {streams} streams, {deltas} deltas each")
    talk, label = slow(deltas), f"{streams} × 20/s"
    with bench.running(*BOTH) as servers:
        warm_up(servers, talk)
        found = alternate(servers, rounds, lambda server: paced_turns(server, streams, talk))
    cpu = {name: [window.cpu_micros for window in windows] for name, windows in found.items()}
    yield compared("durable", f"{label} CPU, streams running", "µs/delta", cpu)
    for percent in (50, 99):
        late = {name: [1000 * percentile(lateness(window), percent) for window in windows]
                for name, windows in found.items()}
        yield compared("durable", f"{label} lateness p{percent}", "ms", late, share=False)
    slowest = {name: [slowest_rate(window) for window in windows] for name, windows in found.items()}
    aim = at_least(95, "95 %", DURABLE.name)
    yield compared("durable", f"{label} slowest stream", "% of rate", slowest, aim, share=False)


def _single(bench: Bench) -> Iterator[Row]:
    """A turn on an idle server waits for two commits: that of the message, and that of the first event."""
    found = first_waits(bench, "durable", BOTH)
    yield compared("durable", "request to first event, idle", "ms", found, share=False)
    more = [late - soon for late, soon in zip(found[DURABLE.name], found[DRAGOMAN.name], strict=True)]
    aim = at_most(4, "4 ms", DURABLE.name)
    yield Row("durable", "the same, more than in memory", "ms", {DURABLE.name: figure(more)}, aim=aim)
