"""For each planted bug: how many worlds until the judge finds it, and what the judge says then."""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from tests.prove.simulation.kept_plans import kept_plans
from tests.prove.simulation.plan import plan_of
from tests.prove.simulation.planted import PLANTED, planted
from tests.prove.simulation.scenarios import scenario
from tests.prove.simulation.workers import in_child
from tests.prove.simulation.world import run_world


class Found(NamedTuple):
    """What became of a planted bug; `seed` is None if no world has shown it."""

    name: str
    worlds: int
    seed: int | None
    verdict: str

    def __str__(self) -> str:
        place = f"found after {self.worlds} worlds, by seed {self.seed}: {self.verdict}" if self.seed is not None else (
            f"NOT found in {self.worlds} worlds")
        return f"{self.name}: {place}"


def find(name: str, seeds: Iterable[int]) -> Found:
    """Run worlds with this bug until one of them breaks a promise."""
    worlds, bug = 0, PLANTED[name]
    made = plan_of if bug.scenario is None else partial(scenario, bug.scenario)
    for plan in (*(kept.plan for kept in kept_plans() if kept.bug == name), *map(made, seeds)):
        if bug.log not in (None, plan.log):
            continue
        worlds += 1
        with planted(name):
            broken = in_child(lambda plan=plan: run_world(plan).broken)
        if broken:
            return Found(name, worlds, plan.seed, broken[0][:200].replace("\n", " "))
    return Found(name, worlds, None, "")

