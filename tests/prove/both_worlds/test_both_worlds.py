"""The same plan in both worlds: what happens in the real one happens in simulated ones, and what always happens there
happens in the real one. A day is a matter of luck, so each side is looked for in several of the other's days.
"""

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.prove.both_worlds.observations import observations
from tests.prove.both_worlds.real_world import real_day
from tests.prove.simulation.plan import Plan
from tests.prove.simulation.scenarios import FAULTS, scenario
from tests.prove.simulation.workers import run_apart, run_many
from tests.prove.simulation.world import run_world

BATCH, MOST_WORLDS = 12, 156
"""How many simulated days are compared, and how many at most until all is seen that the real ones have shown."""
MOST_DAYS = 3
"""How many real days are there at most, until all is seen that every simulated one has shown."""
CALM = "calm"
WORKERS = 2


class Days:
    """What was observed on several days of one world."""

    def __init__(self) -> None:
        self.every: list[frozenset[str]] = []

    @property
    def ever(self) -> frozenset[str]:
        return frozenset().union(*self.every)

    @property
    def always(self) -> frozenset[str]:
        return self.every[0].intersection(*self.every)


def plan_of_both(name: str, seed: int) -> Plan:
    """The scenario as both worlds can have it, without schedules: in real time nobody waits for the next minute."""
    if name == CALM:
        return replace(scenario("kill", seed), keepers=0, faults=())
    return replace(scenario(name, seed), keepers=0)


def simulated_day(plan: Plan) -> tuple[frozenset[str], list[str]]:
    """What was observed in the world of this plan, and what was broken."""
    outcome = run_world(plan)
    return observations(outcome.history), outcome.broken


def simulate(name: str, days: Days) -> None:
    """Some more simulated days, in processes of their own: clocks and randomness of this one stay as they are."""
    first = len(days.every) + 1
    plans = [plan_of_both(name, seed) for seed in range(first, first + BATCH)]
    for observed, broken in run_many(partial(run_apart, simulated_day), plans, WORKERS):
        assert broken == [], f"{name}, simulated"
        days.every.append(observed)


def live(name: str, days: Days, folder: Path) -> None:
    """One more real day."""
    number = len(days.every) + 1
    (folder / str(number)).mkdir()
    day = asyncio.run(real_day(folder / str(number), plan_of_both(name, number)))
    assert day.broken == [], f"in the real world: {name}"
    days.every.append(observations(day.history))


@pytest.mark.parametrize("name", FAULTS)
def test_clients_observe_the_same_in_both_worlds(name: str, tmp_path: Path) -> None:
    worlds, days = Days(), Days()
    simulate(name, worlds)
    while len(days.every) < MOST_DAYS and not (days.every and worlds.always <= days.ever):
        live(name, days, tmp_path)
    while not days.ever <= worlds.ever and len(worlds.every) < MOST_WORLDS:
        simulate(name, worlds)
    print(f"\n{name}: {len(days.ever)} kinds of observations on {len(days.every)} real days, {len(worlds.ever)} on "
          f"{len(worlds.every)} simulated ones; only on some of these:", *sorted(worlds.ever - days.ever), sep="\n  ")
    assert sorted(days.ever - worlds.ever) == [], "seen in the real world, and on no simulated day"
    assert sorted(worlds.always - days.ever) == [], "seen on every simulated day, and on no real one"


@pytest.mark.parametrize(("name", "shown"), [
    ("kill", "turn: failed interrupted"), ("stop", "stream: aap torn"), ("redis", "answer: GET /replay/* 503"),
])
def test_a_calm_day_does_not_show_what_a_bad_one_shows(name: str, shown: str) -> None:
    """Else the comparison could not tell one from the other."""
    calm, bad = Days(), Days()
    simulate(CALM, calm)
    simulate(name, bad)
    assert shown in bad.ever - calm.ever
