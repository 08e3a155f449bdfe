"""Somebody who asked in the wrong place, or was not let in, is told so in one line."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from conformance.kit.advice import STRANGER, advice
from conformance.kit.requirement import Level, Requirement
from conformance.kit.verdict import CaseResult, Finding, Outcome, Report

MUST = Requirement(id="AAP-X-01", level=Level.MUST, section="x", source="x", sentence="It is so, and not otherwise.")


def report(*statuses: int, outcome: Outcome = Outcome.FAILED) -> Report:
    exchange = "    0.005 > GET /x\n    0.020 < {} So it is\n          < 404 in a body"
    wire = "\n".join(map(exchange.format, statuses))
    result = CaseResult("a.case", "It is so.", (MUST.id,), outcome, 0.1, wire)
    findings, began = (Finding(MUST, (result,)),), datetime(2026, 1, 1, tzinfo=UTC)
    return Report("aap", "A protocol", "http://h:1/x", began, 1.0, findings, (result,))


@pytest.mark.parametrize(("found", "has_key", "told"), [
    (report(*[401] * 10, 200), False,
     "the server refused most requests (401 or 403); give its key with --key or in CONFORM_KEY"),
    (report(*[403] * 10, 200), True, "the server refused most requests (401 or 403); is it the right key?"),
    (report(*[404] * 10, 200), True,
     "the server answered most requests with 404; does a server of aap answer at http://h:1/x?"),
    (report(*[200] * 10), True, "nothing passed; does a server of aap answer at http://h:1/x?"),
])
def test_what_cannot_be_right_is_told(found: Report, has_key: bool, told: str) -> None:
    assert advice(found, has_key=has_key) == told


@pytest.mark.parametrize("found", [
    report(*[404] * 10, outcome=Outcome.PASSED),
    report(*[404] * 9),
    report(*[200] * 5, *[404] * 5, outcome=Outcome.PASSED),
])
def test_a_server_that_is_what_it_is_needs_no_advice(found: Report) -> None:
    assert advice(found, has_key=False) is None


def test_an_agent_that_nobody_described_may_be_what_fails() -> None:
    passed = CaseResult("b.case", "It is so.", (), Outcome.PASSED, 0.1, "")
    failing = report(*[200] * 10)
    mixed = replace(failing, results=(*failing.results, passed))
    assert advice(mixed, has_key=False, has_profile=False) == STRANGER
    assert advice(mixed, has_key=False, has_profile=True) is None
    assert advice(report(*[200] * 10, outcome=Outcome.PASSED), has_key=False, has_profile=False) is None
