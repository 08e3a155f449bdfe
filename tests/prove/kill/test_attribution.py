"""A fixed sample of faults, and a few mutants: what fails on a server with one flaw is what the flaw breaks."""

import pytest

from conformance.faults.kill.attribution import read_bounds
from conformance.faults.kill.attribution_run import Choice, attribute, attribute_flaws
from conformance.faults.kill.clock import run_jumping
from conformance.faults.kill.examiner import PATIENT
from conformance.faults.kill.flaw import Flaw
from conformance.faults.kill.setups import SETUPS

FAULTS_TRIED = 15
MUTANTS = {
    "aap": (
        Flaw("bare", "sse", owners=("AAP-SSE-01",)),
        Flaw("double", "sse tool_call", owners=("AAP-SSE-04",)),
        Flaw("lose", "sse text_delta", owners=("AAP-SSE-02",)),
        Flaw("status", "GET /sessions/{id} 200", "500", owners=("AAP-SESS-07",)),
    ),
    "blade": (
        Flaw("lose", "io chat:end", owners=("BL-FLOW-01",)),
        Flaw("lose", "io turn:patch(add_tool_call)", owners=("BL-FLOW-06",)),
        Flaw("lose", "io turn:patch(tool_result)", owners=("BL-FLOW-06",)),
        Flaw("late", "io turn:patch(add_tool_call)", owners=("BL-FLOW-01", "BL-FLOW-06")),
    ),
}
"""Damage to what a correct server says, and the requirement whose sentence it breaks."""


@pytest.mark.parametrize("dialect", SETUPS)
def test_the_failures_of_a_sample_of_faults_are_attributed(dialect: str) -> None:
    found = run_jumping(attribute(dialect, Choice(sample=FAULTS_TRIED), lambda *given: None))
    assert len(found.effects) == FAULTS_TRIED
    assert read_bounds().complaints([found]) == []


@pytest.mark.parametrize("dialect", MUTANTS)
def test_a_few_mutants_fail_the_requirement_that_they_break(dialect: str) -> None:
    found = run_jumping(attribute_flaws(dialect, MUTANTS[dialect], PATIENT, lambda *given: None))
    assert {effect.flaw: effect.failed for effect in found.effects} == {
        flaw.name: frozenset(flaw.owners) for flaw in MUTANTS[dialect]
    }
