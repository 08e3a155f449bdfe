"""Verdicts: the gravest outcome counts, and only the MUSTs decide."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from conformance.kit.requirement import Requirement
from conformance.kit.verdict import BLOCKED, CaseResult, Finding, Outcome, Report, Verdict

P, F, N, A, U = Outcome
B = BLOCKED


def finding(level: str, *outcomes: Outcome, section: str = "one", **more: str) -> Finding:
    item = Requirement(id="D-A-01", level=level, section=section, source="here", sentence="It must be so.", **more)  # type: ignore[arg-type]
    results = tuple(CaseResult("a.b", "s", ("D-A-01",), outcome, 0.5, "") for outcome in outcomes)
    return Finding(item, results)


def report(*findings: Finding) -> Report:
    return Report("demo", "Demo", "http://x", datetime.now(UTC), 1.0, findings, ())


@pytest.mark.parametrize(
    ("outcomes", "gravest"), [((P, P), P), ((P, N), N), ((N, F, P), F), ((F,), F), ((), N)]
)
def test_the_gravest_outcome_is_the_requirements_own(outcomes: tuple[Outcome, ...], gravest: Outcome) -> None:
    assert finding("must", *outcomes).outcome is gravest


@pytest.mark.parametrize(
    ("findings", "verdict", "code"),
    [
        ([finding("must", P), finding("should", F), finding("may", N)], Verdict.CONFORMS, 0),
        ([finding("must", P), finding("must", N)], Verdict.INCOMPLETE, 3),
        ([finding("must", N), finding("must", F)], Verdict.FAILS, 1),
    ],
)
def test_only_the_musts_decide(findings: list[Finding], verdict: Verdict, code: int) -> None:
    found = report(*findings)
    assert (found.verdict, found.exit_code) == (verdict, code)


def test_what_does_not_apply_decides_nothing() -> None:
    exempt = finding("must", not_applicable="It speaks of clients.")
    assert exempt.outcome is A
    assert report(finding("must", P), exempt).verdict is Verdict.CONFORMS


def test_what_is_not_offered_is_no_failure_and_no_gap() -> None:
    exempt = replace(finding("must", F), not_offered="the profile says so")
    assert (exempt.outcome, exempt.count, exempt.because) == (U, "not offered", ())
    assert report(finding("must", P), exempt).verdict is Verdict.CONFORMS


def test_outcomes_are_counted_by_level_and_section() -> None:
    found = report(finding("must", P), finding("must", F, section="two"), finding("should", N))
    none = dict.fromkeys((P, F, B, N, U, A), 0)
    assert found.by_level() == {"must": none | {P: 1, F: 1}, "should": none | {N: 1}}
    assert found.by_section() == {"one": none | {P: 1, N: 1}, "two": none | {F: 1}}
    assert len(found.of(F)) == 1
    mixed = report(finding("may", P), finding("should", P), finding("must", P))
    assert list(mixed.by_level()) == ["must", "should", "may"]


def test_grave_results_are_those_that_did_not_pass() -> None:
    found = finding("must", P, F, N)
    assert [result.outcome for result in found.grave] == [F, N]
    assert found.seconds == 1.5
