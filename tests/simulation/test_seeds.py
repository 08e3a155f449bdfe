"""Worlds by their seeds: whatever goes wrong in them no promise is broken, and the same seed gives the same steps."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from gateway.engine import Hub
from tests.prove.simulation import world
from tests.prove.simulation.__main__ import digest_of
from tests.prove.simulation.kept_plans import KeptPlan, kept_plans
from tests.prove.simulation.losses import LOSSES
from tests.prove.simulation.plan import Plan, plan_of
from tests.prove.simulation.planted import PLANTED, planted
from tests.prove.simulation.scenarios import any_world
from tests.prove.simulation.world import run_world, simulation

ROOT = Path(__file__).resolve().parents[2]
SEEDS = range(20)


@pytest.fixture(scope="module", autouse=True)
def simulated() -> Iterator[None]:
    with simulation():
        yield


def small(seed: int) -> Plan:
    """The world of this seed with fewer clients and turns: `make prove ARGS="--only simulation"` runs whole ones."""
    return replace(plan_of(seed), clients=tuple(range(seed % 4, seed % 4 + 4)), turns=5, users=seed % 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_promise_is_broken(seed: int) -> None:
    outcome = run_world(small(seed))
    assert outcome.broken == [], "\n".join(outcome.plan.lines())
    assert outcome.turns >= 5


@pytest.mark.parametrize("loss", LOSSES)
def test_a_machine_loses_no_more_than_the_promises_allow(loss: str) -> None:
    plan = next(plan for seed in range(1, 1000) if (plan := any_world(seed)).loss == loss)
    assert run_world(replace(plan, clients=(0, 1, 2, 3), seconds=4.0)).broken == []


@pytest.mark.parametrize("kept", kept_plans(), ids=lambda kept: kept.bug)
def test_a_day_that_was_bad_once_is_good_now(kept: KeptPlan) -> None:
    assert run_world(kept.plan).broken == [], kept.why


def test_every_kept_plan_names_the_bug_that_it_shows() -> None:
    assert [kept.bug for kept in kept_plans() if kept.bug not in PLANTED] == []


@pytest.mark.parametrize("name", PLANTED)
def test_every_bug_can_be_planted(name: str) -> None:
    with planted(name):
        pass


def test_a_server_that_lets_nobody_else_run_is_found() -> None:
    def run_for_ever(hub: Hub, *given: object) -> None:
        while True:
            pass

    with patch.object(Hub, "subscribe", run_for_ever), patch.object(world, "MOST_CPU_SECONDS", 1.0):
        [broken] = run_world(small(1)).broken
    assert broken.startswith("hang: a program lets nobody else run:")
    assert "run_for_ever" in broken


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_seed_gives_the_same_steps(seed: int) -> None:
    once, again = (run_world(replace(small(seed), turns=2), is_traced=True).trace() for _ in range(2))
    assert once == again


def test_another_seed_gives_other_steps() -> None:
    one, other = (run_world(replace(small(0), turns=1, seed=seed), is_traced=True).trace() for seed in (0, 5))
    assert one != other


def test_the_same_seed_gives_the_same_steps_in_another_process() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "tests.prove.simulation", "--replay", "26"],
        env={"PYTHONHASHSEED": "7", "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True, cwd=ROOT)
    assert f", {digest_of(run_world(plan_of(26), is_traced=True))}\n" in told.stdout
