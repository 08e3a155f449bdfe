"""For each planted bug: how many worlds until the judge finds it, and what the judge says then."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from tests.prove.simulation.kept_plans import kept_plans
from tests.prove.simulation.plan import plan_of
from tests.prove.simulation.planted import PLANTED, planted
from tests.prove.simulation.scenarios import scenario
from tests.prove.simulation.workers import in_child
from tests.prove.simulation.world import run_world

PLANTS = "simulation/planted.py"


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


def table(found: Sequence[Found]) -> Iterator[str]:
    """For each bug the promise that it breaks, and how many worlds it took to find it."""
    width = max(len(one.name) for one in found)
    yield f"{'bug':{width}}  worlds  seed  promise"
    for one in sorted(found, key=lambda one: list(PLANTED).index(one.name)):
        place = f"{one.worlds:6}  {one.seed:4}" if one.seed is not None else f"{one.worlds:6}   NOT"
        yield f"{one.name:{width}}  {place}  {PLANTED[one.name].promise}"


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
            assert not _is_of_plant(broken[0]), f"{name} does not fit the gateway any more: {broken[0]}"
            return Found(name, worlds, plan.seed, _shown(broken[0]))
    return Found(name, worlds, None, "")


def _is_of_plant(broken: str) -> bool:
    """Whether an error was raised by a planted bug itself: that is no bug of the gateway that a judge has found."""
    return any(PLANTS in place for place in re.findall(r'^ *File "(.*)"', broken, re.MULTILINE)[-1:])


def _shown(broken: str) -> str:
    """The broken promise on a line; of an error the end, which says what was raised."""
    first, *_, last = *(lines := broken.strip().splitlines()), lines[-1].strip()
    return first[:200] if first == last else f"{first[:100]} … {last[:200]}"

