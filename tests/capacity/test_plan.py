"""The plan of a load follows from the costs, and every number says what decided it."""

from typing import Any

import msgspec
import pytest

from gateway.capacity import (
    COST_NAMES,
    Coefficients,
    CpuCosts,
    CpuMeasurement,
    Demand,
    Machine,
    RedisMemory,
    ReplicaMemory,
    make_plan,
    one_carries,
)
from gateway.capacity.plan import work
from gateway.errors import Invalid

FREE = CpuCosts(**dict.fromkeys(COST_NAMES, 0.0))
MB = 2.0**20


def costs(replica: dict[str, float], redis: dict[str, float], **sizes: Any) -> Coefficients:
    """Costs of which most are nothing; each delta takes a byte of Redis, unless said."""
    replace = msgspec.structs.replace
    return Coefficients(
        machine=Machine(size="full", processor="a test", cores=2, versions={}, load=[0.0, 0.0], waited=0.0),
        cpu=[CpuMeasurement(primaries=count, replica=replace(FREE, **replica), redis=replace(FREE, **redis),
                            commit_seconds=0.001) for count in sizes.get("primaries", (1,))],
        replica_memory=sizes.get("replica_memory", ReplicaMemory(
            process=100 * MB, session=0, turn=0, running_turn=0, stream=0)),
        redis_memory=sizes.get("redis_memory", RedisMemory(process=MB, session=0, turn=0, delta=1)),
        loads=[], memory_checks=[], fleet=[])


def test_replicas_have_the_cores_that_the_turns_take_and_a_margin() -> None:
    demand = Demand(turns_per_second=100, margin=50)
    plan = make_plan(demand, costs({"turn": 20_000}, {}))  # two cores of work
    assert plan.replicas.count == 4
    assert plan.replicas.cpu == pytest.approx(0.5)
    assert (plan.replicas.decided_by, plan.replicas.largest_cost, plan.replicas.largest_share) == ("CPU", "turn", 1.0)
    assert make_plan(msgspec.structs.replace(demand, margin=0), costs({"turn": 20_000}, {})).replicas.count == 2
    assert make_plan(msgspec.structs.replace(demand, speed=2), costs({"turn": 20_000}, {})).replicas.count == 2


def test_one_replica_less_would_not_carry_it() -> None:
    for turns in (30, 77, 777):
        demand = Demand(turns_per_second=turns, watchers=2)
        found = costs({"turn": 3_000, "delta": 50, "delta_relayed": 40, "delta_read": 20, "second": 800}, {})
        plan, measurement = make_plan(demand, found), found.cpu[0]

        def busy(replicas: int, demand: Demand = demand, measurement: CpuMeasurement = measurement) -> float:
            counts = work(demand, measurement, replicas)
            return sum(getattr(measurement.replica, name) * count for name, count in counts.items()) / 1e6 / replicas

        assert busy(plan.replicas.count) <= 0.5 < busy(plan.replicas.count - 1)


def test_what_replicas_do_in_a_second() -> None:
    measurement = costs({}, {}).cpu[0]
    alone = work(Demand(turns_per_second=10, watchers=2, deltas_per_turn=100), measurement, 1)
    assert alone == {"session": 1, "turn": 10, "turn_elsewhere": 0, "delta": 1000, "delta_relayed": 0,
                     "delta_read": 3000, "watch": 20, "commit": 500, "second": 1}
    two = work(Demand(turns_per_second=10, watchers=0, deltas_per_turn=100), measurement, 2)
    assert (two["turn_elsewhere"], two["delta_relayed"], two["commit"]) == (5, 500, pytest.approx(2 * 500 / 1.5))
    crowd = work(Demand(turns_per_second=10, watchers=10_000, deltas_per_turn=100), measurement, 3)
    assert crowd["delta_relayed"] == pytest.approx(2000), "each delta reaches each of the two others once at most"


def test_connections_and_memory_decide_where_they_run_out_first() -> None:
    free = costs({}, {})
    by_streams = make_plan(Demand(turns_per_second=1_000, watchers=9, max_connections=10_000), free)
    assert (by_streams.replicas.count, by_streams.replicas.decided_by) == (20, "connections")
    heavy = costs({}, {}, replica_memory=ReplicaMemory(process=0, session=0, turn=0, running_turn=MB, stream=0))
    by_memory = make_plan(Demand(turns_per_second=1_000, replica_memory=1_000), heavy)
    assert (by_memory.replicas.count, by_memory.replicas.decided_by) == (20, "memory")
    assert by_memory.runs_out_first == "memory of a replica"


def test_a_cluster_of_redis_has_three_primaries_at_least() -> None:
    found = costs({}, {"delta": 30}, primaries=(1,))
    few, more = Demand(turns_per_second=80), Demand(turns_per_second=90)
    assert make_plan(few, found).primaries.count == 1
    assert make_plan(more, found).primaries.count == 3
    assert any("not measured" in one for one in make_plan(more, found).assumptions)
    assert not any("not measured" in one for one in make_plan(few, found).assumptions)
    clustered = costs({}, {"delta": 30}, primaries=(1, 3))
    assert not any("not measured" in one for one in make_plan(more, clustered).assumptions)


def test_stored_sessions_fill_primaries() -> None:
    demand = Demand(sessions=1_000_000, turns_per_session=10, deltas_per_turn=100, primary_memory=100, margin=0)
    plan = make_plan(demand, costs({}, {}))
    assert (plan.primaries.count, plan.primaries.decided_by) == (10, "memory")  # 954 MB, and one for each primary
    assert plan.primaries.memory == pytest.approx(1 + 1e9 / MB / 10)
    assert plan.runs_out_first == "memory of a primary"


def test_one_replica_and_one_primary_carry_what_the_margin_leaves() -> None:
    demand = Demand(watchers=1, deltas_per_turn=20, turns_per_session=1)
    found = one_carries(demand, costs({"turn": 5_000}, {"turn": 500}))
    assert found.replica_turns == pytest.approx(100)
    assert found.replica_streams == pytest.approx(200)
    assert found.primary_turns == pytest.approx(1_000)
    assert found.primary_sessions == pytest.approx((16_384 / 2 - 1) * MB / 20)
    assert found.replica_turns_end_with == "CPU"


@pytest.mark.parametrize(("wrong", "said"), [
    ({"sessions": -1}, "--sessions: must be from 0 to 1,000,000,000,000, not -1"),
    ({"turns_per_second": float("nan")}, "--turns-per-second: must be from 0 to 1,000,000,000, not nan"),
    ({"watchers": float("inf")}, "--watchers: must be from 0 to 1,000,000,000, not inf"),
    ({"deltas_per_turn": 0}, "--deltas-per-turn: must be from 1 to 1,000,000,000, not 0"),
    ({"margin": 100}, "--margin: must be from 0 to 95, not 100"),
    ({"speed": 0, "margin": -3}, "--margin: must be from 0 to 95, not -3\n--speed: must be more than 0"),
])
def test_a_number_that_cannot_be_is_refused_with_its_option(wrong: dict[str, float], said: str) -> None:
    with pytest.raises(Invalid) as refused:
        make_plan(Demand(**wrong), costs({}, {}))
    assert refused.value.message.startswith(said)


def test_a_load_that_no_number_of_servers_carries_is_refused() -> None:
    with pytest.raises(Invalid, match="no number of servers"):
        make_plan(Demand(turns_per_second=1, replica_memory=50), costs({}, {}))
    with pytest.raises(Invalid, match="a replica without turns takes 100 MB"):
        one_carries(Demand(replica_memory=150), costs({}, {}))
    kept = costs({}, {}, replica_memory=ReplicaMemory(process=0, session=MB, turn=0, running_turn=0, stream=0))
    with pytest.raises(Invalid, match="a replica without turns takes 5,000 MB"):
        one_carries(Demand(), kept)
