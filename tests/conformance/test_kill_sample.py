"""A fixed sample of the kill matrix: what breaks a MUST is killed or explained, what is allowed is never failed."""

from collections import Counter

import pytest

from conformance.faults.kill.flaw import Expectation
from conformance.faults.kill.workers import Wish, run_here

AT_TARGET = ("aap", "blade", "cas", "zenflux")
SAMPLE = 300


@pytest.mark.timeout(300)
@pytest.mark.parametrize("dialect", AT_TARGET)
async def test_a_sample_of_flaws_is_noticed(dialect: str) -> None:
    (matrix,) = await run_here(Wish((dialect,), sample=SAMPLE))
    tried = matrix.plan.chosen
    assert matrix.complaints() == []
    assert len(tried) == SAMPLE
    assert len(matrix.broken) == len(matrix.plan.expecting(Expectation.BREAKS))
    assert matrix.share >= 0.97
    assert {"field", "event", "answer"} <= set(Counter(flaw.family for flaw in tried))
