"""A fixed sample of faults and mutants: what fails on a server with one flaw is what the flaw breaks, within bounds."""

import pytest

from conformance.faults.kill.attribution import read_bounds
from conformance.faults.kill.attribution_run import Choice, attribute, attribute_mutants
from conformance.faults.kill.setups import SETUPS

FAULTS_TRIED, MUTANTS_TRIED = 40, 12


@pytest.mark.parametrize("dialect", SETUPS)
async def test_the_failures_of_a_sample_of_flaws_are_attributed(dialect: str) -> None:
    found = [
        await attribute(dialect, Choice(sample=FAULTS_TRIED), lambda *given: None),
        await attribute_mutants(dialect, Choice(sample=MUTANTS_TRIED), lambda *given: None),
    ]
    assert [len(item.effects) for item in found] == [FAULTS_TRIED, MUTANTS_TRIED]
    assert read_bounds().complaints(found) == []
