"""Computes how many replicas and primaries a load needs, from the measured costs, and what decided each number."""

from collections.abc import Callable, Iterator, Mapping

import msgspec
from msgspec import Struct

from gateway.errors import Invalid

from .coefficients import Coefficients, CpuMeasurement, cost_of

DELTAS_PER_SECOND = 20.0
"""How fast a model writes, in the measured loads."""
MOST = 1e9
"""No number of a load may be greater: more machines than there are would be needed."""
LEAST_CLUSTER = 3
"""Redis Cluster has at least so many primaries."""
ROUNDS = 10
"""How often replicas and primaries are computed from each other, at most."""
MEGABYTE = 2**20


class Demand(Struct, frozen=True, kw_only=True):
    """A load, and what there is to carry it."""

    sessions: float = 0.0
    """Sessions that are stored."""
    turns_per_second: float = 0.0
    watchers: float = 0.0
    """Clients that watch each turn, beside the one that began it."""
    deltas_per_turn: float = 200.0
    turns_per_session: float = 10.0
    cached_sessions: float = 5_000.0
    """`limits.cached_sessions` of each replica."""
    max_connections: float = 20_000.0
    """`limits.max_connections` of each replica."""
    margin: float = 50.0
    """Percent of each core, each memory and all connections that stay free."""
    spare: float = 1.0
    """Replicas that may be down while the others carry the load."""
    replica_memory: float = 2_048.0
    """Megabytes for each replica."""
    primary_memory: float = 16_384.0
    """Megabytes for each primary."""
    speed: float = 1.0
    """How many times as fast a core is as one of the machine on which the costs were measured."""

    @property
    def turn_seconds(self) -> float:
        return self.deltas_per_turn / DELTAS_PER_SECOND

    @property
    def running_turns(self) -> float:
        return self.turns_per_second * self.turn_seconds

    @property
    def streams(self) -> float:
        """Streams that are open at a time."""
        return self.running_turns * (1 + self.watchers)

    @property
    def share(self) -> float:
        """The part of everything that may be used."""
        return 1 - self.margin / 100

    def check(self) -> None:
        """Raise `Invalid` with everything that cannot be."""
        wrong = [f"{_option(name)}: must be {bounds}, not {value:g}"
                 for name, (bounds, fits) in BOUNDS.items() if not fits(value := getattr(self, name))]
        if wrong:
            raise Invalid("\n".join(wrong))


Bound = tuple[str, Callable[[float], bool]]
NOT_NEGATIVE: Bound = (f"from 0 to {MOST:,.0f}", lambda value: 0 <= value <= MOST)
POSITIVE: Bound = (f"more than 0, and at most {MOST:,.0f}", lambda value: 0 < value <= MOST)
COUNTED: Bound = (f"from 1 to {MOST:,.0f}", lambda value: 1 <= value <= MOST)
BOUNDS: Mapping[str, Bound] = {
    "sessions": (f"from 0 to {1000 * MOST:,.0f}", lambda value: 0 <= value <= 1000 * MOST),
    "turns_per_second": NOT_NEGATIVE, "watchers": NOT_NEGATIVE, "deltas_per_turn": COUNTED,
    "turns_per_session": COUNTED, "cached_sessions": COUNTED, "max_connections": COUNTED,
    "margin": ("from 0 to 95", lambda value: 0 <= value <= 95), "spare": NOT_NEGATIVE, "replica_memory": POSITIVE,
    "primary_memory": POSITIVE, "speed": POSITIVE,
}
"""What each number of a demand may be."""


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


class ServerNeed(Struct, frozen=True, kw_only=True):
    """How many servers of one kind are needed."""

    count: int
    cpu: float
    """The busy part of the core of each."""
    memory: float
    """Megabytes that each uses."""
    decided_by: str
    largest_cost: str
    """The cost that takes most of the CPU."""
    largest_share: float


class Plan(Struct, frozen=True, kw_only=True):
    """What a load needs."""

    demand: Demand
    replicas: ServerNeed
    primaries: ServerNeed
    streams: float
    running_turns: float
    runs_out_first: str
    """What is used most, as a part of what may be used."""
    assumptions: list[str]


def make_plan(demand: Demand, costs: Coefficients) -> Plan:
    """The fewest replicas and primaries that carry the load; raises `Invalid`."""
    demand.check()
    found = (1, 1)
    for _ in range(ROUNDS):
        before, found = found, _fitting(demand, costs, found[1])
        if found == before:
            break
    return _described(demand, costs, *found)


def _fitting(demand: Demand, costs: Coefficients, primaries: int) -> tuple[int, int]:
    """The fewest replicas with so many primaries, and the fewest primaries with those replicas."""
    replicas = _fewest(lambda count: max(_replica_use(demand, costs, count, primaries).values()))
    return replicas, _fewest(lambda count: max(_primary_use(demand, costs, replicas, count).values()), _next_cluster)


def _fewest(use: Callable[[int], float], following: Callable[[int], int] = lambda count: count + 1) -> int:
    """The least number with which nothing is used more than it may be: doubled until it fits, then halved between."""
    fits = 1
    if use(fits) <= 1:
        return fits
    least = following(fits)
    while use(fits := max(least, 2 * fits)) > 1:
        if fits > MOST:
            raise Invalid("the load is too large: no number of servers carries it with this memory and margin")
    low, high = least, fits
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if use(middle) <= 1 else (middle + 1, high)
    return high


def _next_cluster(count: int) -> int:
    return max(LEAST_CLUSTER, count + 1)


# -- how much of everything is used, as a part of what may be used ----------------------------------------------------

def work(demand: Demand, measurement: CpuMeasurement, replicas: float) -> dict[str, float]:
    """What all replicas do in a second, by the names of the costs; a balancer gives each request to any replica."""
    turns, readers = demand.turns_per_second, 1 + demand.watchers
    deltas, elsewhere = turns * demand.deltas_per_turn, 1 - 1 / replicas
    return {
        "session": turns / demand.turns_per_session, "turn": turns, "turn_elsewhere": turns * elsewhere,
        "delta": deltas, "delta_relayed": deltas * (replicas - 1) * (1 - elsewhere**readers),
        "delta_read": deltas * readers, "watch": turns * demand.watchers,
        "commit": replicas * measurement.commits(deltas / replicas), "second": replicas,
    }


def _replica_use(demand: Demand, costs: Coefficients, replicas: float, primaries: int) -> dict[str, float]:
    measurement = costs.cpu_with(primaries)
    cpu = cost_of(measurement.replica, work(demand, measurement, replicas)) / replicas / demand.speed
    memory = replica_memory(demand, costs, replicas)
    return {
        "CPU": cpu / demand.share, "memory": memory / demand.replica_memory / demand.share,
        "connections": demand.streams / replicas / demand.max_connections / demand.share,
    }


def replica_memory(demand: Demand, costs: Coefficients, replicas: float) -> float:
    """Megabytes of each replica."""
    sizes, cached = costs.replica_memory, min(demand.cached_sessions, demand.sessions)
    stored = cached * (sizes.session + demand.turns_per_session * sizes.turn)
    open_ = demand.running_turns * (sizes.running_turn + demand.watchers * sizes.stream)
    return (sizes.process + stored + open_ / replicas) / MEGABYTE


def _primary_use(demand: Demand, costs: Coefficients, replicas: float, primaries: int) -> dict[str, float]:
    measurement = costs.cpu_with(primaries)
    cpu = cost_of(measurement.redis, work(demand, measurement, replicas)) / primaries / demand.speed
    return {"CPU": cpu / demand.share,
            "memory": primary_memory(demand, costs, primaries) / demand.primary_memory / demand.share}


def primary_memory(demand: Demand, costs: Coefficients, primaries: int) -> float:
    """Megabytes of each primary."""
    sizes = costs.redis_memory
    each = sizes.session + demand.turns_per_session * (sizes.turn + demand.deltas_per_turn * sizes.delta)
    return (sizes.process + demand.sessions * each / primaries) / MEGABYTE


# -- what is said of it -----------------------------------------------------------------------------------------------

def _described(demand: Demand, costs: Coefficients, replicas: int, primaries: int) -> Plan:
    measurement = costs.cpu_with(primaries)
    contents = work(demand, measurement, replicas)
    use, redis_use = _replica_use(demand, costs, replicas, primaries), _primary_use(demand, costs, replicas, primaries)
    most = {**{f"{name} of a replica": part for name, part in use.items()},
            **{f"{name} of a primary": part for name, part in redis_use.items()}}
    return Plan(
        demand=demand, streams=demand.streams, running_turns=demand.running_turns,
        replicas=_need(replicas, use, demand, replica_memory(demand, costs, replicas),
                       {name: cost_of(measurement.replica, {name: count}) for name, count in contents.items()}),
        primaries=_need(primaries, redis_use, demand, primary_memory(demand, costs, primaries),
                        {name: cost_of(measurement.redis, {name: count}) for name, count in contents.items()}),
        runs_out_first=max(most, key=lambda name: most[name]), assumptions=list(_assumptions(demand, costs, primaries)))


def _need(
    count: int, use: Mapping[str, float], demand: Demand, memory: float, shares: Mapping[str, float],
) -> ServerNeed:
    largest, total = max(shares, key=lambda name: shares[name]), sum(shares.values())
    return ServerNeed(
        count=count, cpu=use["CPU"] * demand.share, memory=memory, decided_by=max(use, key=lambda name: use[name]),
        largest_cost=largest, largest_share=shares[largest] / total if total else 0.0)


class Carried(Struct, frozen=True, kw_only=True):
    """What one replica and one primary carry."""

    demand: Demand
    replica_turns: float
    """Turns per second."""
    replica_turns_end_with: str
    replica_streams: float
    replica_memory: float
    primary_turns: float
    primary_sessions: float
    """Sessions that fit into its memory."""
    assumptions: list[str]


def one_carries(demand: Demand, costs: Coefficients) -> Carried:
    """The most turns per second of one replica alone, with a full cache, and of one primary; and the most sessions.

    Raises `Invalid`.
    """
    demand.check()
    demand = _stored(demand, demand.cached_sessions)
    if replica_memory(demand, costs, 1) > demand.replica_memory * demand.share:
        raise Invalid(
            f"--replica-memory: {demand.replica_memory:,g} MB with a margin of {demand.margin:g} % are too little: a "
            f"replica without turns takes {replica_memory(demand, costs, 1):,.0f} MB")

    def most_turns(use: Callable[[Demand], Mapping[str, float]]) -> Demand:
        return _with(demand, _most(lambda turns: max(use(_with(demand, turns)).values()) <= 1))

    replica = most_turns(lambda given: _replica_use(given, costs, 1, 1))
    primary = most_turns(lambda given: {"CPU": _primary_use(given, costs, 1, 1)["CPU"]})
    use, most_memory = _replica_use(replica, costs, 1, 1), demand.primary_memory * demand.share
    sessions = _most(lambda count: primary_memory(_stored(demand, count), costs, 1) <= most_memory)
    return Carried(
        demand=demand, replica_turns=replica.turns_per_second, replica_streams=replica.streams,
        replica_turns_end_with=max(use, key=lambda name: use[name]), replica_memory=replica_memory(replica, costs, 1),
        primary_turns=primary.turns_per_second, primary_sessions=sessions,
        assumptions=list(_assumptions(demand, costs, 1)))


def _with(demand: Demand, turns_per_second: float) -> Demand:
    return msgspec.structs.replace(demand, turns_per_second=turns_per_second)


def _stored(demand: Demand, sessions: float) -> Demand:
    return msgspec.structs.replace(demand, sessions=sessions)


def _most(fits: Callable[[float], bool]) -> float:
    """The greatest number that fits, nearly; 0 if none does."""
    low, high = 0.0, MOST
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _assumptions(demand: Demand, costs: Coefficients, primaries: int) -> Iterator[str]:
    machine = costs.machine
    yield (f"a core is {demand.speed:g} × as fast as one of {machine.processor}, on which the costs were measured "
           "(--speed)")
    yield f"{demand.margin:g} % of each core, of memory and of connections stay free (--margin)"
    yield (f"a turn has {demand.deltas_per_turn:,g} deltas, {DELTAS_PER_SECOND:g} in a second, so it runs for "
           f"{demand.turn_seconds:,.0f} s (--deltas-per-turn); a session has {demand.turns_per_session:,g} turns "
           "(--turns-per-session)")
    yield (f"a replica has {demand.replica_memory:,.0f} MB (--replica-memory) and caches {demand.cached_sessions:,.0f} "
           f"sessions, a primary has {demand.primary_memory:,.0f} MB (--primary-memory)")
    yield "a balancer gives each request to any replica, and every replica has a core of its own"
    yield "agents are `openai` backends; lists, searches, files and the agents' own work are not counted"
    if primaries > 1 and costs.cpu_with(primaries).primaries == 1:
        yield "several primaries were not measured: each is taken to cost what a single one costs"
