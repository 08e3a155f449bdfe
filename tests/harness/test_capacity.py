"""The proof `capacity` knows what its loads contain, and finds costs by what loads took."""

from itertools import product

import pytest

from gateway.capacity import COST_NAMES
from tests.prove.capacity.fit import fitted
from tests.prove.capacity.fleet import Spent
from tests.prove.capacity.loads import Load
from tests.prove.capacity.measurement import FULL, QUICK, REDIS_NAMES, CpuSample, checks_of, fitted_cpu, loads_of
from tests.prove.capacity.page import error
from tests.prove.capacity.simulated_fleet import exponent


def test_what_a_load_contains() -> None:
    alone = Load(replicas=1, streams=10, deltas=40, watchers=2)
    assert alone.counts() == {"turn": 10, "turn_elsewhere": 0, "delta": 400, "delta_relayed": 0, "delta_read": 1200,
                              "watch": 20}
    spread = Load(replicas=3, streams=9, deltas=10, watchers=1, is_spread=True, turns=2)
    assert spread.counts() == {"turn": 18, "turn_elsewhere": 18, "delta": 180, "delta_relayed": 360,
                               "delta_read": 360, "watch": 18}
    both = Load(replicas=2, streams=2, deltas=10, watchers=1, is_spread=True)
    assert [(both.asked_at(number), both.watched_at(number, 0)) for number in (0, 1)] == [(1, 0), (0, 1)]
    assert both.counts()["delta_relayed"] == 20, "the watcher is where the session is"


def test_the_check_is_twice_as_large_as_the_largest_load_of_the_fit() -> None:
    for size in (FULL, QUICK):
        assert {load.streams for load in checks_of(size)} == {2 * max(load.streams for load in loads_of(size))}


def test_costs_are_found_that_explain_the_totals() -> None:
    true = {"a": 2.0, "b": 0.5, "c": 30.0}
    samples = [({"a": a, "b": b, "c": c}, true["a"] * a + true["b"] * b + true["c"] * c)
               for a, b, c in product((1.0, 9.0), (0.0, 400.0), (0.0, 2.0))]
    assert fitted(samples, ("a", "b", "c")) == {name: pytest.approx(cost) for name, cost in true.items()}
    assert fitted(samples, ("a", "b", "c", "unknown"))["unknown"] == 0.0


def test_no_cost_is_negative() -> None:
    samples = [({"a": 1.0, "b": 0.0}, 10.0), ({"a": 1.0, "b": 1.0}, 9.0), ({"a": 2.0, "b": 1.0}, 19.5)]
    found = fitted(samples, ("a", "b"))
    assert found["b"] == 0.0
    assert found["a"] == pytest.approx(9.7, abs=0.3)


def test_loads_that_do_not_tell_costs_apart_are_refused() -> None:
    with pytest.raises(ValueError, match="apart"):
        fitted([({"a": 1.0, "b": 2.0}, 3.0), ({"a": 2.0, "b": 4.0}, 6.0)], ("a", "b"))


@pytest.mark.parametrize("size", [FULL, QUICK], ids=lambda size: size.name)
def test_the_loads_of_the_proof_tell_all_costs_apart(size: object) -> None:
    assert size in (FULL, QUICK)
    work = [*((load.name, load.replicas, load.counts(), load) for load in loads_of(size)),  # type: ignore[arg-type]
            ("sessions", 1, {"session": 200.0}, None), ("nothing", 3, {}, None)]
    costs = {name: 10.0 * place for place, name in enumerate(COST_NAMES, 1)}

    def sample(name: str, replicas: int, counts: dict[str, float], load: Load | None) -> CpuSample:
        known = {**counts, "second": 3.0}
        commits = load.replica_seconds * load.deltas_per_second / (1 + load.deltas_per_second * 0.01) if load else 0.0
        contents = {**known, "commit": commits}
        spent, redis = (sum(costs[name] * contents.get(name, 0.0) for name in side) / 1e6
                        for side in (COST_NAMES, REDIS_NAMES))
        return CpuSample(name, replicas, known, Spent(spent, 0.0, redis, 0), load)

    found = fitted_cpu([sample(*one) for one in work], 1, 0.01)
    for name, cost in costs.items():
        assert getattr(found.replica, name) == pytest.approx(cost, abs=0.1)
        assert getattr(found.redis, name) == pytest.approx(cost if name in REDIS_NAMES else 0.0, abs=0.1)


def test_exponents() -> None:
    assert exponent({3: 1, 10: 100, 50: 500}) == pytest.approx(1)
    assert exponent({3: 900, 10: 100, 50: 2500}) == pytest.approx(2)
    assert error(1.1, 1.0) == pytest.approx(0.1)
    assert error(1.0, 0.0) == 0.0
