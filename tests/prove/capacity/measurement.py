"""Measures loads on fleets of several sizes, and finds the costs that explain them."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.load import create_sessions
from bench.measure import BenchFailure
from gateway.capacity import CpuCosts, CpuMeasurement, MeasuredLoad, cost_of

from .fit import fitted
from .fleet import Fleet, Spent, cost, running_fleet
from .loads import Load, readers

REPLICAS = 3
REPLICA_NAMES = CpuCosts.__struct_fields__
REDIS_NAMES = tuple(name for name in REPLICA_NAMES if name != "delta_read")
"""Redis does not know how many clients of a replica read what the replica was told."""
Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is measured."""

    name: str
    streams: int
    """Turns at once in the loads that the costs are fitted to; the check has twice as many."""
    deltas: int
    sessions: int
    """Sessions that are created for their cost."""
    idle_seconds: float
    rounds: int
    memory_sessions: int
    memory_streams: int


FULL = Size(name="full", streams=120, deltas=60, sessions=600, idle_seconds=15.0, rounds=3, memory_sessions=2_000,
            memory_streams=200)
QUICK = Size(name="quick", streams=30, deltas=40, sessions=210, idle_seconds=6.0, rounds=1, memory_sessions=600,
             memory_streams=100)


@dataclass(frozen=True)
class CpuSample:
    """A piece of work, what it contains, and what it took."""

    name: str
    replicas: int
    counts: dict[str, float]
    spent: Spent
    load: Load | None = None
    is_check: bool = False

    def contents(self, measurement: CpuMeasurement) -> dict[str, float]:
        """What it contains by the names of the costs; how many groups are written, the model says."""
        if self.load is None:
            return self.counts
        return {**self.counts, "commit": self.load.replica_seconds * measurement.commits(self.load.deltas_per_second)}


def loads_of(size: Size) -> list[Load]:
    """The loads of the fit: on one, two and three replicas, read where their sessions are, and elsewhere."""
    streams, deltas = size.streams, size.deltas
    return [
        Load(replicas=1, streams=streams, deltas=1, turns=3),
        Load(replicas=1, streams=streams, deltas=deltas // 2),
        Load(replicas=1, streams=streams, deltas=deltas),
        Load(replicas=1, streams=streams, deltas=deltas // 3, watchers=3),
        Load(replicas=1, streams=streams, deltas=deltas, watchers=3),
        Load(replicas=2, streams=streams, deltas=deltas, watchers=1, is_spread=True),
        Load(replicas=3, streams=streams, deltas=1, turns=3, is_spread=True),
        Load(replicas=3, streams=streams, deltas=deltas),
        Load(replicas=3, streams=streams, deltas=deltas, is_spread=True),
        Load(replicas=3, streams=streams, deltas=deltas, watchers=2, is_spread=True),
    ]


def checks_of(size: Size) -> list[Load]:
    """Loads twice as large as those of the fit, and otherwise composed."""
    streams, deltas = 2 * size.streams, size.deltas * 3 // 4
    return [
        Load(replicas=1, streams=streams, deltas=deltas, watchers=1),
        Load(replicas=3, streams=streams, deltas=deltas, watchers=1, is_spread=True),
    ]


def cpu_samples(fleet: Fleet, size: Size) -> Iterator[CpuSample]:
    """One round of everything; every replica of the fleet lives all the time, and that has its cost."""
    for replicas in (1, REPLICAS):
        yield _created(fleet, size.sessions // replicas, replicas)
    yield _sample(fleet, "nothing", REPLICAS, {}, lambda: time.sleep(size.idle_seconds))
    for load in loads_of(size):
        yield _played(fleet, load, is_check=False)
    for load in checks_of(size):
        yield _played(fleet, load, is_check=True)


def _created(fleet: Fleet, share: int, replicas: int) -> CpuSample:
    return _sample(fleet, f"{share * replicas} sessions are created", replicas, {"session": share * replicas},
                   lambda: [create_sessions(server, share) for server in fleet.servers[:replicas]])


def _played(fleet: Fleet, load: Load, *, is_check: bool) -> CpuSample:
    with readers(load, fleet.servers) as found:
        return _sample(fleet, load.name, load.replicas, load.counts(), lambda: list(found.play()), load, is_check)


def _sample(
    fleet: Fleet, name: str, replicas: int, counts: dict[str, float], work: Callable[[], object],
    load: Load | None = None, is_check: bool = False,
) -> CpuSample:
    began = time.perf_counter()
    spent = cost(fleet, work)
    seconds = {"second": (time.perf_counter() - began) * len(fleet.servers)}
    return CpuSample(name, replicas, {**counts, **seconds}, spent, load, is_check)


def measured_samples(folder: Path, size: Size, primaries: int, tell: Tell) -> list[CpuSample]:
    """All rounds of all loads on a new fleet."""
    samples = list[CpuSample]()
    with running_fleet(folder, REPLICAS, primaries) as fleet:
        for number in range(size.rounds):
            for sample in cpu_samples(fleet, size):
                samples.append(sample)
                tell(f"{primaries} primaries, round {number + 1}: {sample.name}, {sample.replicas} replicas: "
                     f"{sample.spent.replicas:.3f} s, Redis {sample.spent.redis:.3f} s, {sample.spent.scripts} scripts")
    return samples


def commit_seconds(samples: Sequence[CpuSample]) -> float:
    """How long deltas wait for others, by the number of scripts that Redis ran: each group is one."""
    known = [(one.load, one.spent.scripts) for one in samples if one.load is not None and not one.is_check]
    return median(
        max(0.0, load.replica_seconds / scripts - 1 / load.deltas_per_second)
        for load, scripts in known if load.deltas > 1 and not load.is_spread)


def fitted_cpu(samples: Sequence[CpuSample], primaries: int, seconds: float) -> CpuMeasurement:
    """The costs that explain the samples best."""
    free = CpuCosts(**dict.fromkeys(REPLICA_NAMES, 0.0))
    bare = CpuMeasurement(primaries=primaries, replica=free, redis=free, commit_seconds=round(seconds, 6))
    known = [(sample.contents(bare), sample.spent) for sample in samples if not sample.is_check]
    try:
        replica = fitted([(counts, spent.replicas) for counts, spent in known], REPLICA_NAMES)
        redis = fitted([(counts, spent.redis) for counts, spent in known], REDIS_NAMES)
    except ValueError as error:
        raise BenchFailure(str(error)) from None
    return CpuMeasurement(primaries=primaries, replica=_micros(replica), redis=_micros(redis),
                          commit_seconds=bare.commit_seconds)


def _micros(costs: dict[str, float]) -> CpuCosts:
    return CpuCosts(**{name: round(1e6 * costs.get(name, 0.0), 2) for name in REPLICA_NAMES})


def compared(found: CpuMeasurement, samples: Sequence[CpuSample]) -> list[MeasuredLoad]:
    """Each load, its rounds together, beside what the model says of it."""
    grouped: dict[tuple[str, int], list[CpuSample]] = {}
    for sample in samples:
        grouped.setdefault((sample.name, sample.replicas), []).append(sample)
    return [
        MeasuredLoad(
            name=name, replicas=replicas, primaries=found.primaries, is_check=many[0].is_check,
            replica_cpu=round(sum(one.spent.replicas for one in many), 4),
            replica_model=round(sum(cost_of(found.replica, one.contents(found)) for one in many), 4),
            redis_cpu=round(sum(one.spent.redis for one in many), 4),
            redis_model=round(sum(cost_of(found.redis, one.contents(found)) for one in many), 4))
        for (name, replicas), many in grouped.items()]
