"""Where the microseconds of a turn and of a delta go: by room of ours, and by library."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.contenders import mock, ours
from bench.load import Sample, concurrent_turns, warm_up
from bench.measure import BenchFailure, figure
from bench.protocols import Workload, burst, words
from bench.report import Row
from bench.servers import DRAGOMAN, Contender, Server
from bench.stack_sampler import shares

from .runner import Bench

TURN, DELTA, MODEL = "turn", "delta", "delta of a model"
COLUMNS = (TURN, DELTA, MODEL)
SMALL = 0.005
"""What takes less than this part everywhere is in one row."""
HOTTEST = 8
WRITE_SECONDS = 300.0


@dataclass(frozen=True)
class Costs:
    """The microseconds of one turn or delta."""

    total: float
    rooms: Mapping[str, float]
    functions: Mapping[str, float]


def measure_cpu(bench: Bench) -> Iterator[Row]:
    """The CPU of the server is divided by what it was seen to do; being looked at makes it a little slower."""
    turns, rounds = bench.effort.turns
    found = {TURN: _demo(bench, turns, burst(1), rounds)}
    at_once, deltas, rounds = bench.effort.traced
    found[DELTA] = _demo(bench, at_once, burst(deltas), rounds)
    found[MODEL] = _model(bench, at_once, words(deltas), rounds)
    yield from _rows(found)


def _demo(bench: Bench, turns: int, talk: Workload, rounds: int) -> Costs:
    bench.tell(f"cpu: {turns} at once of the demo agent, {rounds} times")
    return _sampled(bench, DRAGOMAN, turns, talk, rounds)


def _model(bench: Bench, turns: int, talk: Workload, rounds: int) -> Costs:
    bench.tell(f"cpu: {turns} at once of a model service, {rounds} times")
    with Server(mock(), bench.folder, bench.cores.client) as service:
        return _sampled(bench, ours(service.port), turns, talk, rounds)


def _sampled(bench: Bench, contender: Contender, turns: int, talk: Workload, rounds: int) -> Costs:
    file = bench.folder / "looks.json"
    with bench.start(replace(contender, command=_looked_at(contender, file))) as server:
        warm_up([server], talk)
        _written(server, file)
        samples: Sequence[Sample] = [concurrent_turns(server, turns, talk) for _ in range(rounds)]
        found = _written(server, file)
    if not found:
        raise BenchFailure("the server worked too little to be seen at work")
    rooms, functions = shares(found)
    total = sum(sample.spent.cpu for sample in samples) / sum(sample.deltas for sample in samples) * 1e6
    return Costs(total, {name: total * share for name, share in rooms.items()},
                 {name: total * share for name, share in functions.items()})


def _looked_at(contender: Contender, file: Path) -> Callable[[Path, int], Sequence[str]]:
    """The command of a gateway, with a sampler in its process."""
    def command(folder: Path, port: int) -> Sequence[str]:
        python, option, code, *words = contender.command(folder, port)
        return [python, option, f"from bench.stack_sampler import start; start({str(file)!r}); {code}", *words]
    return command


def _written(server: Server, file: Path) -> list[list[str | int]]:
    """What the server was seen to do since the last time."""
    file.unlink(missing_ok=True)
    os.kill(server.pid, signal.SIGUSR2)
    until = time.perf_counter() + WRITE_SECONDS
    while not file.exists():
        if time.perf_counter() > until:
            raise BenchFailure("the server did not say what it was seen to do")
        time.sleep(0.002)
    found: list[list[str | int]] = json.loads(file.read_text())
    return found


def _rows(found: Mapping[str, Costs]) -> Iterator[Row]:
    """A row for each room, the dearest first, with the functions that cost most as notes of the last one."""
    names = {name for costs in found.values() for name in costs.rooms}
    large = [name for name in names
             if any(costs.rooms.get(name, 0.0) >= SMALL * costs.total for costs in found.values())]
    large.sort(key=lambda name: -sum(costs.rooms.get(name, 0.0) / costs.total for costs in found.values()))
    for name in large:
        yield _row(name, {column: costs.rooms.get(name, 0.0) for column, costs in found.items()})
    rest = names - set(large)
    yield _row("others", {column: sum(costs.rooms.get(name, 0.0) for name in rest) for column, costs in found.items()})
    notes = [f"of a {column}: {', '.join(_hottest(costs))}" for column, costs in found.items()]
    yield replace(_row("all", {column: costs.total for column, costs in found.items()}), notes=notes)


def _row(name: str, micros: Mapping[str, float]) -> Row:
    return Row("cpu", name, "µs", {column: figure([value]) for column, value in micros.items()})


def _hottest(costs: Costs) -> Iterator[str]:
    for name in list(costs.functions)[:HOTTEST]:
        yield f"{name} {costs.functions[name]:.1f} µs"
