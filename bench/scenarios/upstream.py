"""The cost of the `openai` backend: one model service behind the gateway, nginx and LiteLLM's proxy."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

from bench.client import Connections, run_batch
from bench.contenders import install_litellm, litellm, mock, nginx, nginx_path, ours, ours_durable, ours_remote
from bench.load import Sample, concurrent_turns, create_sessions, paced_turns, turns_in_a_row, warm_up
from bench.measure import Figure, figure, paired_ratio, percentile
from bench.protocols import words
from bench.report import Aim, Row, at_least, at_most
from bench.servers import Contender, Server

from .runner import BUSY_CLIENT, DISTURBED, Bench, alternate
from .streaming import lateness, slowest_rate
from .translation import translation

NAME = "upstream"
OURS, DURABLE, NGINX, LITELLM, DIRECT = COLUMNS = ("dragoman", "durable", "nginx", "litellm", "direct")
"""The gateway with the log in memory and in a file, two proxies, and the service itself."""
TOKEN = "word "
"""What a tokenizer counts as one."""
REST = 0.002
"""With many streams the client sleeps so long after each poll: it leaves the core to the service, which shares it."""
AIMS: Mapping[str, tuple[str, Aim, Aim]] = {
    NGINX: ("to nginx", at_least(1.0, "1.0 ×"), at_most(2.0, "2 ×")),
    LITELLM: ("to LiteLLM", at_least(60.0, "60 ×"), at_most(0.05, "1/20")),
}
"""Peer → the name of its row, the aim for our rate, and the aim for our wait for the first delta."""
ONE_STREAM = {NGINX: at_least(0.9, "0.9 ×")}
"""The aims for our rate that are others if there is one stream."""
LEFT_OUT = {
    NGINX: "nginx was left out: it is not installed (Debian's package is nginx-light)",
    LITELLM: "LiteLLM was left out; python -m bench --only upstream --litellm installs it into .bench, and measures it",
}


@dataclass(frozen=True)
class LoadResult:
    """The result of one round of many turns."""

    samples: Sequence[Sample]
    service: float
    """The CPU time of the service, in seconds."""

    @property
    def deltas(self) -> int:
        return sum(sample.deltas for sample in self.samples)

    @property
    def seconds(self) -> float:
        return sum(sample.round.seconds for sample in self.samples)

    @property
    def rate(self) -> float:
        return self.deltas / sum(sample.deltas / sample.rate for sample in self.samples)

    @property
    def cpu_micros(self) -> float:
        return 1e6 * sum(sample.spent.cpu for sample in self.samples) / self.deltas

    @property
    def busy(self) -> float:
        """The share of the time in which the server was busy; well below 1 it was waiting for us."""
        return sum(sample.spent.cpu for sample in self.samples) / self.seconds

    @property
    def taken(self) -> float:
        """The share of the time in which it waited for its core."""
        return sum(sample.spent.waited for sample in self.samples) / self.seconds

    @property
    def other_core(self) -> float:
        """The share of the time in which the client and the service, which share a core, were busy."""
        client = sum(sample.round.client_busy * sample.round.seconds for sample in self.samples)
        return (self.service + client) / self.seconds


@dataclass(frozen=True)
class UpstreamSetup:
    """The service, and the servers in front of it."""

    bench: Bench
    service: Server
    gateways: Sequence[Server]

    @property
    def all(self) -> Sequence[Server]:
        return [*self.gateways, self.service]


def measure_upstream(bench: Bench) -> Iterator[Row]:
    """Start, many streams at once, single turns, a steady load, memory, and the translation alone."""
    if bench.litellm:
        install_litellm()
    with ExitStack() as stack:
        service = stack.enter_context(Server(mock(), bench.folder, bench.cores.client))
        made = [make(service.port) for make in _makers(bench)]
        bench.tell(f"upstream: starting {', '.join(contender.name for contender in made)}")
        setting = UpstreamSetup(bench, service, [stack.enter_context(bench.start(contender)) for contender in made])
        idle = {server.contender.name: [server.rss() / 2**20] for server in setting.gateways}
        for server in setting.all:
            warm_up([server], words(20))
        yield from _saturated(setting)
        yield from _first(setting)
        yield from _long_history(setting)
        yield from _crowded(setting)
        yield from _remote(setting)
        yield from _steady(setting)
        yield from _resting(setting, idle)
    yield from translation(bench.effort.translated)


def _makers(bench: Bench) -> list[Callable[[int], Contender]]:
    return [ours, ours_durable, *([nginx] if nginx_path() else []), *([litellm] if bench.litellm else [])]


# -- many streams -----------------------------------------------------------------------------------------------------

def _saturated(setting: UpstreamSetup) -> Iterator[Row]:
    for streams, (deltas, repeats, rounds) in setting.bench.effort.upstream.items():
        setting.bench.tell(f"upstream: {streams} at once, {deltas} deltas each")
        found = alternate(setting.all, rounds, _crowds(setting.service, streams, deltas, repeats))
        label = f"{streams:,} × {deltas:,}"
        rates = {name: [crowd.rate for crowd in crowds] for name, crowds in found.items()}
        rates[DIRECT] = [crowd.deltas / crowd.seconds for crowd in found[DIRECT]]
        missing = [note for name, note in LEFT_OUT.items() if name not in rates] if streams == 1 else []
        yield Row(NAME, f"{label} deltas", "deltas/s", _figures(rates), notes=missing)
        aims = {name: aim for name, (_, aim, _) in AIMS.items()} | (ONE_STREAM if streams == 1 else {})
        yield from _ratios(label, rates, aims)
        yield Row(NAME, f"{label} in a file to in memory", "", {}, paired_ratio(rates[DURABLE], rates[OURS]),
                  at_least(0.85, "0.85 ×"))
        del found[DIRECT]
        micros = {name: [crowd.cpu_micros for crowd in crowds] for name, crowds in found.items()}
        yield Row(NAME, f"{label} CPU", "µs/delta", _figures(micros))
        yield from _ratios(f"{label} CPU", micros)
        yield _busy(f"{label} its core busy", found)


def _crowds(service: Server, streams: int, deltas: int, repeats: int) -> Callable[[Server], LoadResult]:
    talk = words(deltas)

    def work(server: Server) -> LoadResult:
        before = service.spent()
        samples = [concurrent_turns(server, streams, talk, REST if streams > 1 else 0.0) for _ in range(repeats)]
        return LoadResult(samples, (service.spent() - before).cpu)

    return work


def _busy(name: str, found: Mapping[str, Sequence[LoadResult]]) -> Row:
    """How busy each gateway was, and why its figure may be unreliable."""
    notes = [note for column, crowds in found.items() for note in _caveats(column, crowds)]
    shares = {column: [100 * crowd.busy for crowd in crowds] for column, crowds in found.items()}
    return Row(NAME, name, "% of core", _figures(shares), notes=notes)


def _caveats(column: str, crowds: Sequence[LoadResult]) -> Iterator[str]:
    """Threads of the server that write a file take the core from each other; that is its own cost."""
    if column != DURABLE and (taken := median(crowd.taken for crowd in crowds)) > DISTURBED:
        yield f"other processes had the core of {column} for {100 * taken:.0f} % of the time"
    if (other := median(crowd.other_core for crowd in crowds)) > BUSY_CLIENT:
        yield f"{column} could have done more: client and service had their core full ({100 * other:.0f} %)"


# -- single turns -----------------------------------------------------------------------------------------------------

def _first(setting: UpstreamSetup) -> Iterator[Row]:
    """From a request to its first delta, on an idle server: all the way to the service and back."""
    turns, blocks = setting.bench.effort.first_events
    setting.bench.tell(f"upstream: {turns * blocks} turns, one after the other")
    found: dict[str, list[list[float]]] = alternate(setting.all, blocks, lambda server: _waits(server, turns))
    halves = {name: [median(waits) for waits in rounds] for name, rounds in found.items()}
    worst = {name: [percentile(waits, 99) for waits in rounds] for name, rounds in found.items()}
    yield Row(NAME, "request to first delta, idle, p50", "ms", _figures(halves))
    yield from _ratios("first delta, p50", halves, {name: aim for name, (_, _, aim) in AIMS.items()})
    if NGINX in halves:
        yield Row(NAME, "first delta, p50, in a file to nginx", "", {}, paired_ratio(halves[DURABLE], halves[NGINX]),
                  at_most(4.0, "4 ×"))
    yield Row(NAME, "request to first delta, idle, p99", "ms", _figures(worst))


def _waits(server: Server, turns: int) -> list[float]:
    samples = turns_in_a_row(server, create_sessions(server, turns), words(1))
    answers = [sample.round.answers[0] for sample in samples]
    return [1000 * (answer.arrivals(server.wire.delta_mark)[0] - answer.sent_at) for answer in answers]


def _long_history(setting: UpstreamSetup) -> Iterator[Row]:
    """The first delta after a request with a long history, and the CPU time until then."""
    tokens, rounds = setting.bench.effort.history_tokens
    setting.bench.tell(f"upstream: a history of {tokens:,} tokens")
    history = [{"role": ("user", "assistant")[number % 2], "content": TOKEN * min(500, tokens)}
               for number in range(2 * max(1, tokens // 1000))]
    servers = [server for server in setting.all if server.contender.name != LITELLM]
    found = alternate(servers, rounds + 1, lambda server: _after_history(server, history))
    waits = {name: [wait for wait, _ in blocks[1:]] for name, blocks in found.items()}
    costs = {name: [cpu for _, cpu in blocks[1:]] for name, blocks in found.items() if name != DIRECT}
    label = f"a history of {tokens:,} tokens"
    yield Row(NAME, f"{label}, request to first delta", "ms", _figures(waits))
    yield from _ratios(f"{label}, first delta", waits, {NGINX: at_most(4.0, "4 ×")})
    yield Row(NAME, f"{label}, CPU", "ms", _figures(costs))
    yield from _ratios(f"{label}, CPU", costs)


def _after_history(server: Server, history: Sequence[Mapping[str, str]]) -> tuple[float, float]:
    """Milliseconds from the first byte of the history to the first delta, and of the server's CPU time."""
    before, started, wire = server.spent(), time.perf_counter(), server.wire
    with Connections(server.port) as connections:
        one, session = connections.open(1), ""
        if create := wire.create_with(history):
            session = wire.session_of(run_batch(one, [create]).answers[0].body())
        answer = run_batch(one, [wire.turn_after(session, words(1).message, history)]).answers[0]
    first = answer.arrivals(wire.delta_mark)[0]
    return 1000 * (first - started), 1000 * (server.spent() - before).cpu


def _crowded(setting: UpstreamSetup) -> Iterator[Row]:
    """The wait for the first delta of several turns at once, and how much of it a server adds to the service's own."""
    streams, repeats = setting.bench.effort.crowd
    setting.bench.tell(f"upstream: {streams} turns at once, {repeats} times")
    servers = [server for server in setting.all if server.contender.name != LITELLM]
    found = alternate(servers, repeats, lambda server: _crowd_waits(server, streams))
    worst = {name: percentile([wait for waits in rounds for wait in waits], 99) for name, rounds in found.items()}
    added = {name: [max(0.001, wait - worst[DIRECT])] for name, wait in worst.items() if name != DIRECT}
    label = f"{streams} at once, first delta p99"
    yield Row(NAME, label, "ms", _figures({name: [wait] for name, wait in worst.items()}))
    yield Row(NAME, f"{label}, added", "ms", _figures(added), aim=at_most(1.0, "1 ms", OURS))
    if NGINX in added:
        yield Row(NAME, f"{label}, added, to nginx", "", {}, paired_ratio(added[OURS], added[NGINX]),
                  at_most(4.0, "4 ×"))


def _crowd_waits(server: Server, streams: int) -> list[float]:
    answers = concurrent_turns(server, streams, words(1)).round.answers
    return [1000 * (answer.arrivals(server.wire.delta_mark)[0] - answer.sent_at) for answer in answers]


def _remote(setting: UpstreamSetup) -> Iterator[Row]:
    """A second gateway in front of ours: what both cost together, to what ours costs alone."""
    streams, (deltas, repeats, rounds) = max(setting.bench.effort.upstream.items())
    behind = next(server for server in setting.gateways if server.contender.name == OURS)
    talk, alone, both = words(deltas), list[float](), list[float]()
    with setting.bench.start(ours_remote(behind.port)) as front:
        warm_up([front], words(20))
        for _ in range(rounds):
            samples = [concurrent_turns(behind, streams, talk, REST) for _ in range(repeats)]
            alone.append(sum(sample.cpu_micros for sample in samples) / repeats)
            before = behind.spent()
            samples = [concurrent_turns(front, streams, talk, REST) for _ in range(repeats)]
            further = 1e6 * (behind.spent() - before).cpu / sum(sample.deltas for sample in samples)
            both.append(sum(sample.cpu_micros for sample in samples) / repeats + further)
    yield Row(NAME, f"{streams:,} × {deltas:,} through two gateways, CPU of both", "µs/delta",
              _figures({OURS: both}), paired_ratio(both, alone), at_most(2.0, "2 ×"))


# -- a steady load ----------------------------------------------------------------------------------------------------

def _steady(setting: UpstreamSetup) -> Iterator[Row]:
    """Many streams with twenty deltas per second each; LiteLLM is left out, since it is too slow."""
    streams, deltas, rounds = setting.bench.effort.upstream_paced
    setting.bench.tell(f"upstream: {streams} streams, {deltas} deltas each, paced")
    servers = [server for server in setting.gateways if server.contender.name != LITELLM]
    found = alternate(servers, rounds, lambda server: paced_turns(server, streams, words(deltas, slowly=True)))
    label = f"{streams} × 20/s"
    micros = {name: [window.cpu_micros for window in windows] for name, windows in found.items()}
    yield Row(NAME, f"{label} CPU, streams running", "µs/delta", _figures(micros))
    yield from _ratios(f"{label} CPU", micros, {NGINX: at_most(2.5, "2.5 ×")})
    late = {name: [1000 * percentile(lateness(window), 99) for window in windows] for name, windows in found.items()}
    yield Row(NAME, f"{label} lateness p99", "ms", _figures(late), aim=at_most(40, "40 ms", OURS))
    slowest = {name: [slowest_rate(window) for window in windows] for name, windows in found.items()}
    yield Row(NAME, f"{label} slowest stream", "% of rate", _figures(slowest), aim=at_least(95, "95 %", OURS))


# -- at rest ----------------------------------------------------------------------------------------------------------

def _resting(setting: UpstreamSetup, idle: Mapping[str, Sequence[float]]) -> Iterator[Row]:
    ready = {server.contender.name: [server.seconds_to_ready] for server in setting.gateways}
    after = {server.contender.name: [server.rss() / 2**20] for server in setting.gateways}
    yield Row(NAME, "process start to ready", "s", _figures(ready), aim=at_most(0.6, "0.6 s", OURS))
    yield Row(NAME, "memory, just started", "MB", _figures(idle), aim=at_most(60, "60 MB", OURS))
    yield Row(NAME, "memory, after all this", "MB", _figures(after))


def _figures(samples: Mapping[str, Sequence[float]]) -> dict[str, Figure]:
    return {name: figure(samples[name]) for name in COLUMNS if name in samples}


def _ratios(label: str, samples: Mapping[str, Sequence[float]], aims: Mapping[str, Aim] | None = None) -> Iterator[Row]:
    """The gateway with the log in memory, compared with each of the others that took part."""
    for name, (what, _, _) in AIMS.items():
        if name in samples:
            yield Row(
                NAME, f"{label} {what}", "", {}, paired_ratio(samples[OURS], samples[name]), (aims or {}).get(name)
            )
