"""What happens in a world, decided by its seed before it begins: who is there, and what goes wrong when."""

from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

DAY = 86_400.0
DIALECT_CLIENTS = 10
"""How many clients there are at most."""
SINGLE_SERVER = 5
"""One world of so many has a single server with a SQLite log; the others have three servers on Redis."""


class Fault(NamedTuple):
    """Something that goes wrong, so many seconds after the clients began."""

    at: float
    kind: str
    target: int
    """Which server, or which client."""
    seconds: float
    """How long it lasts."""

    def __str__(self) -> str:
        return f"{self.at:.3f} {self.kind} {self.target} for {self.seconds:.3f} s"


@dataclass(frozen=True)
class Plan:
    """One day of the world."""

    seed: int
    servers: int
    log: str
    """`redis` or `sqlite`."""
    lease: float
    delay: float
    """Seconds that a message is on its way, on an average."""
    seconds: float
    """How long the clients talk."""
    turns: int
    """How many turns there are to be."""
    clients: tuple[int, ...]
    """The numbers of the clients; a number stands for a dialect and a character."""
    watched: int
    """How many sessions are watched by others, too."""
    faults: tuple[Fault, ...]
    users: int = 2
    """How many tenants have a program that makes, lists, interrupts and deletes sessions."""
    loss: str = ""
    """What a machine that loses its power takes with it, in a world of which that is the end (`losses.py`)."""
    durability: str = "normal"
    """As `config.yaml` has it; `always` is Redis's own setting."""
    keepers: int = 0
    """How many tenants have a program that keeps files and schedules."""

    def without_fault(self, place: int) -> "Plan":
        return replace(self, faults=self.faults[:place] + self.faults[place + 1:])

    def without_client(self, place: int) -> "Plan":
        return replace(self, clients=self.clients[:place] + self.clients[place + 1:])

    def lines(self) -> list[str]:
        return [
            f"seed {self.seed}: {self.servers} x {self.log}, lease {self.lease:g} s, delay {1000 * self.delay:g} ms, "
            f"{self.seconds:.1f} s, {self.turns} turns, clients {' '.join(map(str, self.clients))}",
            *(f"  fault {fault}" for fault in self.faults),
        ]


CLUSTER_FAULTS = (
    "kill", "kill", "kill", "pause", "pause", "cut_redis", "cut_others", "part_redis", "block_redis", "sever_redis",
    "cut_client", "sever_client", "part_client", "slow_server", "slow_redis", "stop", "redis_restart",
    "redis_refuses", "clock",
)
SINGLE_FAULTS = (
    "kill", "kill", "pause", "cut_client", "sever_client", "part_client", "slow_server", "stop", "disk_full",
    "slow_disk", "slow_kill", "clock",
)
POWER_FAULTS = {"fsync": ("power", "power"), "always": ("redis_power", "redis_power"), "normal": ()}
"""By durability: machines that may lose their power without a loss."""


def plan_of(seed: int) -> Plan:
    """The world of this seed."""
    chance = Random(f"plan {seed}")
    is_single = seed % SINGLE_SERVER == 0
    lease = chance.choice((1.5, 3.0, 10.0))
    seconds = chance.uniform(6.0, 12.0) + lease
    durability = chance.choice(("normal", "fsync" if is_single else "always"))
    kinds = (*(SINGLE_FAULTS if is_single else CLUSTER_FAULTS), *POWER_FAULTS[durability])
    faults = sorted(
        Fault(
            chance.uniform(0.2, seconds), kind := chance.choice(kinds), chance.randrange(1 if is_single else 3),
            _duration(kind, chance, lease),
        )
        for _ in range(chance.choice((0, 1, 2, 3, 4, 6)))
    )
    return Plan(
        seed=seed, servers=1 if is_single else 3, log="sqlite" if is_single else "redis", lease=lease,
        delay=chance.choice((0.0002, 0.001, 0.01)), seconds=seconds, turns=20,
        clients=tuple(range(DIALECT_CLIENTS)), watched=chance.choice((0, 1, 2)), faults=tuple(faults),
        durability=durability, keepers=chance.choice((0, 1)),
    )


def _duration(kind: str, chance: Random, lease: float) -> float:
    if kind in ("pause", "part_redis", "block_redis", "part_client", "sever_redis"):
        return chance.choice((0.3, 1.2, 2.5)) * lease * chance.uniform(0.5, 1.0)
    if kind == "clock":
        return chance.choice((-3600.0, -5.0, 5.0, DAY))
    return chance.uniform(0.05, 1.5 * lease)
