"""A fixed sample of faults and of mutants: what fails on a server with one flaw is what the flaw breaks."""

import pytest
import yaml

from conformance.faults.kill.attribution import read_bounds
from conformance.faults.kill.attribution_run import Choice, attribute, attribute_flaws
from conformance.faults.kill.clock import run_jumping
from conformance.faults.kill.examiner import PATIENT
from conformance.faults.kill.flaw import Flaw
from conformance.faults.kill.setups import SETUPS
from tests.support.dialect_parts import document

FAULTS_TRIED = 5


def mutants(dialect: str) -> list[Flaw]:
    """Damage to what a correct server says, and the requirement whose sentence it breaks."""
    rows = yaml.safe_load(document(dialect, "kill_sample.yaml").read_text("utf-8"))["attributed"]
    return [Flaw(kind, place, path, owners=(owner,)) for kind, place, path, owner in rows]


@pytest.mark.parametrize("dialect", SETUPS)
def test_the_failures_of_a_sample_of_faults_are_attributed(dialect: str) -> None:
    found = run_jumping(attribute(dialect, Choice(sample=FAULTS_TRIED), lambda *given: None))
    assert len(found.effects) == FAULTS_TRIED
    assert read_bounds().complaints([found]) == []


@pytest.mark.parametrize("dialect", SETUPS)
def test_mutants_fail_the_requirement_that_they_break_and_no_other(dialect: str) -> None:
    flaws = mutants(dialect)
    found = run_jumping(attribute_flaws(dialect, flaws, PATIENT, lambda *given: None))
    assert {effect.flaw: effect.failed for effect in found.effects} == {
        flaw.name: frozenset(flaw.owners) for flaw in flaws
    }
