"""A fixed sample of faults: what fails on a server with one flaw is what the flaw breaks, within bounds."""

import pytest

from conformance.faults.kill.attribution import read_bounds
from conformance.faults.kill.attribution_run import Choice, attribute
from conformance.faults.kill.clock import run_jumping
from conformance.faults.kill.setups import SETUPS

FAULTS_TRIED = 15


@pytest.mark.parametrize("dialect", SETUPS)
def test_the_failures_of_a_sample_of_faults_are_attributed(dialect: str) -> None:
    found = run_jumping(attribute(dialect, Choice(sample=FAULTS_TRIED), lambda *given: None))
    assert len(found.effects) == FAULTS_TRIED
    assert read_bounds().complaints([found]) == []
