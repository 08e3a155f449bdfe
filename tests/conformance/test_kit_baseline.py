"""Baselines: what is known does not count, what passes or expires does, and every mistake is told with its line."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from conformance.kit.baseline import Baseline, Entry, read_baseline
from conformance.kit.documents import DocumentError
from conformance.kit.requirement import Requirement
from conformance.kit.suite import Suite
from conformance.kit.verdict import CaseResult, Finding, Outcome, Report, Verdict

P, F, N = Outcome.PASSED, Outcome.FAILED, Outcome.NOT_TESTABLE
TODAY, TOMORROW, YESTERDAY = date(2026, 11, 2), date(2026, 11, 3), date(2026, 11, 1)


def finding(name: str, *outcomes: Outcome, level: str = "must") -> Finding:
    item = Requirement(id=name, level=level, section="one", source="here", sentence="It must be so.")  # type: ignore[arg-type]
    cases = tuple(CaseResult(f"{name}.{place}", "s", (name,), it, 0.1, "") for place, it in enumerate(outcomes))
    return Finding(item, cases)


def judged(*findings: Finding, entries: list[dict[str, object]], today: date = TODAY) -> Report:
    results = tuple(result for item in findings for result in item.results)
    report = Report("demo", "Demo", "http://x", datetime.now(UTC), 1.0, findings, results)
    written = tuple(Entry.model_validate({"reason": "It is being mended.", "expires": TOMORROW} | it) for it in entries)
    places = tuple(f"known.yaml:{number}" for number, _ in enumerate(written, 1))
    return Baseline(written, places).held_against(report, today)


def test_a_known_failure_does_not_fail_the_run_and_the_verdict_stays_honest() -> None:
    report = judged(finding("D-A-01", F), finding("D-A-02", P), entries=[{"requirement": "D-A-01"}])
    assert (report.verdict, report.exit_code) == (Verdict.FAILS, 0)
    assert report.standing is not None
    assert dict(report.standing.known) == {"D-A-01": "It is being mended."}


def test_another_failure_fails_the_run() -> None:
    assert judged(finding("D-A-01", F), finding("D-A-02", F), entries=[{"requirement": "D-A-01"}]).exit_code == 1


def test_an_entry_that_passes_fails_the_run() -> None:
    report = judged(finding("D-A-01", P), entries=[{"requirement": "D-A-01"}])
    assert (report.verdict, report.exit_code) == (Verdict.CONFORMS, 1)
    assert report.standing is not None
    assert report.standing.complaints == ("known.yaml:1: D-A-01 passes; take it out of the baseline",)


def test_an_entry_that_passes_fails_the_run_at_any_level() -> None:
    assert judged(finding("D-A-01", P, level="may"), entries=[{"requirement": "D-A-01"}]).exit_code == 1


@pytest.mark.parametrize(("expires", "code"), [(TOMORROW, 0), (TODAY, 0), (YESTERDAY, 1)])
def test_an_entry_holds_up_to_its_last_day(expires: date, code: int) -> None:
    report = judged(finding("D-A-01", F), entries=[{"requirement": "D-A-01", "expires": expires}])
    assert report.exit_code == code
    assert report.standing is not None
    assert bool(report.standing.complaints) == bool(code)


def test_an_entry_that_has_expired_counts_even_where_it_was_not_asked() -> None:
    report = judged(finding("D-A-01", P), entries=[{"requirement": "D-A-02", "expires": YESTERDAY}])
    assert report.exit_code == 1


def test_an_entry_that_was_not_asked_about_is_left_alone() -> None:
    assert judged(finding("D-A-01", P), entries=[{"requirement": "D-A-02"}]).exit_code == 0


def test_a_case_can_be_known_instead() -> None:
    one = [{"case": "D-A-01.0"}]
    assert judged(finding("D-A-01", F, P), entries=one).exit_code == 0
    assert judged(finding("D-A-01", F, F), entries=one).exit_code == 1
    assert judged(finding("D-A-01", P, F), entries=one).exit_code == 1


def test_what_cannot_be_tested_is_known_only_if_the_entry_says_so() -> None:
    assert judged(finding("D-A-01", N), entries=[{"requirement": "D-A-01"}]).exit_code == 3
    untested = {"requirement": "D-A-01", "outcome": "not testable"}
    report = judged(finding("D-A-01", N), entries=[untested])
    assert (report.verdict, report.exit_code) == (Verdict.INCOMPLETE, 0)
    assert judged(finding("D-A-01", F), entries=[untested]).exit_code == 1


def written(folder: Path, body: str) -> Path:
    path = folder / "known.yaml"
    path.write_text(body)
    return path


SOUND = """\
dialect: aap
known_failures:
  - requirement: AAP-SSE-04
    reason: The parser is being rewritten.
    expires: 2031-01-31
  - case: meta.meta_is_version_three
    reason: Version 4 is being tried out.
    expires: 2031-01-31
"""


def test_a_sound_baseline_is_read(tmp_path: Path, aap: Suite) -> None:
    baseline = read_baseline(path := written(tmp_path, SOUND), aap)
    assert [entry.name for entry in baseline.entries] == ["AAP-SSE-04", "meta.meta_is_version_three"]
    assert baseline.places == (f"{path}:3", f"{path}:6")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("AAP-SSE-04", "AAP-SEE-04"), ":3: there is no requirement 'AAP-SEE-04'; do you mean 'AAP-SSE-04'?"),
        (("three", "four"), ":6: there is no case 'meta.meta_is_version_four'; do you mean"),
        (("meta.meta_is_version_three", "x"), ":6: there is no case 'x'"),
        (("dialect: aap", "dialect: cas"), ":1: dialect: it is a baseline of cas, and aap is examined"),
        (("case: meta.meta_is_version_three", "requirement: AAP-SSE-04"), ":6: AAP-SSE-04 is listed more than once"),
        (("    expires: 2031-01-31\n  - case", "  - case"), ":3: known_failures.0.expires: is missing"),
        (("2031-01-31", "soon"), ":5: known_failures.0.expires: must be a date, as 2031-01-31, not 'soon'"),
        (("The parser is being rewritten.", "later"),
         ":4: known_failures.0.reason: must have at least 10 characters, not 'later'"),
        (("  - case", "    case: x.y\n  - case"), ":3: known_failures.0: say either"),
        (("reason: Version", "why: Version"), ":7: known_failures.1.why: there is no such entry"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, aap: Suite, change: tuple[str, str], told: str) -> None:
    path = written(tmp_path, SOUND.replace(*change, 1))
    with pytest.raises(DocumentError) as caught:
        read_baseline(path, aap)
    assert f"{path}{told}" in str(caught.value)
