"""The shortest bad day: faults and clients are taken out of a plan as long as some promise is still broken."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.prove.simulation.plan import Plan
from tests.prove.simulation.world import Outcome, run_world

SHORTEST = 2.0
"""Seconds that every day has."""


def shrunk(plan: Plan, tell: Callable[[str], None], run: Callable[[Plan], Outcome] = run_world) -> Outcome:
    """The outcome of the smallest plan that was found and still breaks a promise."""
    outcome = run(plan)
    tell(f"{len(plan.faults)} faults, {len(plan.clients)} clients: {len(outcome.broken)} broken")
    is_smaller = bool(outcome.broken)
    while is_smaller:
        is_smaller = False
        for smaller in smaller_plans(outcome.plan):
            tried = run(smaller)
            if tried.broken:
                tell(f"{len(smaller.faults)} faults, {len(smaller.clients)} clients, {smaller.turns} turns: "
                     f"{tried.broken[0][:100]}")
                outcome, is_smaller = tried, True
                break
    return outcome


def smaller_plans(plan: Plan) -> Iterator[Plan]:
    """Plans with one thing less, the largest steps first."""
    if len(plan.clients) > 1:
        half = len(plan.clients) // 2
        yield replace(plan, clients=plan.clients[:half])
        yield replace(plan, clients=plan.clients[half:])
    for place in range(len(plan.faults)):
        yield plan.without_fault(place)
    if plan.watched:
        yield replace(plan, watched=0)
    if plan.users:
        yield replace(plan, users=plan.users - 1)
    if plan.keepers:
        yield replace(plan, keepers=plan.keepers - 1)
    if plan.seconds > SHORTEST:
        yield replace(plan, seconds=plan.seconds / 2)
    if plan.turns > 1:
        yield replace(plan, turns=plan.turns // 2)
    if len(plan.clients) > 1:
        for place in range(len(plan.clients)):
            yield plan.without_client(place)
