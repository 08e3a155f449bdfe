"""What sessions, turns, deltas and streams cost a replica and a primary of Redis, as it was measured."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

FILE = Path(__file__).with_name("coefficients.json")


COST_NAMES: Mapping[str, str] = {
    "session": "a session is created",
    "turn": "a turn begins and ends",
    "turn_elsewhere": "its message came to another replica than the one that holds the session",
    "delta": "a delta comes from the model and is stored",
    "delta_relayed": "a delta reaches another replica on which somebody watches",
    "delta_read": "a delta is written to one stream",
    "watch": "a client begins to watch a turn",
    "commit": "a group of deltas is stored together",
    "second": "a replica lives for a second",
}
"""What each cost is the cost of."""


class CpuCosts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Microseconds of CPU; `COST_NAMES` says of what."""

    session: float
    turn: float
    turn_elsewhere: float
    delta: float
    delta_relayed: float
    delta_read: float
    watch: float
    commit: float
    second: float


class ReplicaMemory(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bytes of a replica for each of these."""

    process: float
    session: float
    """A session in the cache, without its turns."""
    turn: float
    """A turn of a session in the cache."""
    running_turn: float
    """A turn that runs, with the stream of the client that began it."""
    stream: float
    """A further stream."""


class RedisMemory(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bytes of Redis for each of these."""

    process: float
    """Each primary, without sessions."""
    session: float
    turn: float
    delta: float


class CpuMeasurement(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The costs with one primary, or with a cluster of several."""

    primaries: int
    replica: CpuCosts
    redis: CpuCosts
    commit_seconds: float
    """How long deltas wait, on an average, for others that are written with them."""

    def commits(self, deltas: float) -> float:
        """How many groups a replica writes per second, if so many deltas come per second."""
        return deltas / (1 + deltas * self.commit_seconds)


class MeasuredLoad(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A load, what it took, and what the model says that it takes; CPU in seconds."""

    name: str
    replicas: int
    primaries: int
    replica_cpu: float
    replica_model: float
    redis_cpu: float
    redis_model: float
    is_check: bool
    """Whether the load is twice as large as those that the coefficients were fitted to."""


class MemoryCheck(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The memory of a load that is twice as large, in bytes."""

    name: str
    measured: float
    model: float


class FleetCount(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much of one thing a simulated fleet does, by its number of replicas, and with which exponent that grows."""

    name: str
    by_replicas: dict[int, float]
    exponent: float


class Machine(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where and how it was measured."""

    size: str
    """`full` or `quick`."""
    processor: str
    cores: int
    versions: dict[str, str]
    load: list[float]
    """How many processes wanted a core on an average of five minutes: when the measurement began and when it ended."""
    waited: float
    """For each second of CPU, the seconds for which replicas waited for a core."""


class Coefficients(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that was measured."""

    machine: Machine
    cpu: list[CpuMeasurement]
    replica_memory: ReplicaMemory
    redis_memory: RedisMemory
    loads: list[MeasuredLoad]
    memory_checks: list[MemoryCheck]
    fleet: list[FleetCount]

    def cpu_with(self, primaries: int) -> CpuMeasurement:
        """The costs with so many primaries: those of one, or of the largest cluster that was measured."""
        ordered = sorted(self.cpu, key=lambda one: one.primaries)
        return ordered[0] if primaries == 1 else ordered[-1]


def read_coefficients(file: Path = FILE) -> Coefficients:
    return msgspec.json.decode(file.read_bytes(), type=Coefficients)


def cost_of(costs: CpuCosts, counts: Mapping[str, float]) -> float:
    """The CPU seconds of so many sessions, turns, deltas and so on, which are named as the costs are."""
    each: dict[str, float] = asdict(costs)
    return sum(cost * counts.get(name, 0.0) for name, cost in each.items()) / 1e6
