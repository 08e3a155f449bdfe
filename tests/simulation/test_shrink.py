"""The shortest bad day: what has nothing to do with a broken promise is taken out of the plan."""

from dataclasses import replace

from tests.prove.simulation.plan import Fault, Plan, plan_of
from tests.prove.simulation.shrink import shrunk
from tests.prove.simulation.world import Outcome

KILL = Fault(3.0, "kill", 1, 2.0)
LONG = replace(
    plan_of(1), faults=(Fault(1.0, "pause", 0, 1.0), Fault(2.0, "clock", 2, 5.0), KILL, Fault(4.0, "stop", 0, 1.0)),
    watched=2)


def outcome_of(plan: Plan) -> Outcome:
    """A world that is bad if a server is killed while client 6 talks."""
    return Outcome(plan, broken=["lost"] if KILL in plan.faults and 6 in plan.clients else [])


def test_only_what_breaks_the_promise_is_left() -> None:
    told = list[str]()
    outcome = shrunk(LONG, told.append, outcome_of)
    assert outcome.broken == ["lost"]
    left = outcome.plan
    assert (left.faults, left.clients, left.watched, left.users, left.turns) == ((KILL,), (6,), 0, 0, 1)
    assert len(told) > 3


def test_a_plan_that_breaks_nothing_is_left_as_it_is() -> None:
    calm = replace(LONG, faults=())
    assert shrunk(calm, lambda line: None, outcome_of).plan is calm
