"""A clean run, and a fixed sample of the kill matrix: what breaks a MUST is killed or explained, what is allowed is
never failed."""

from collections import Counter

import pytest

from conformance.faults.kill.case_runner import case_runner_of
from conformance.faults.kill.flaw import Expectation
from conformance.faults.kill.plan import Plan
from conformance.faults.kill.setups import SETUPS
from conformance.faults.kill.workers import RunOptions, run_here

SAMPLE = 300


@pytest.mark.parametrize("dialect", SETUPS)
async def test_a_sample_of_flaws_is_noticed(dialect: str) -> None:
    (matrix,) = await run_here(RunOptions((dialect,), sample=SAMPLE))
    _shows_what_there_is(matrix.plan)
    tried = matrix.plan.chosen
    assert matrix.complaints() == []
    assert len(tried) == SAMPLE
    assert len(matrix.broken) == len(matrix.plan.expecting(Expectation.BREAKS))
    assert matrix.share >= 0.97
    assert {"field", "event", "answer"} <= set(Counter(flaw.family for flaw in tried))


def _shows_what_there_is(plan: Plan) -> None:
    """The clean run has passed, and there is enough to damage."""
    assert len(plan.traffic.seconds) == len(case_runner_of(plan.dialect).cases)
    assert sum(flaw.expectation is not Expectation.FREE for flaw in plan.flaws) >= 300
    assert {flaw.family for flaw in plan.flaws} >= {"field", "event", "answer"}
