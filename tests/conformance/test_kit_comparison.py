"""Two reports, compared: what got better or worse, what only one of them asked, and files that are no reports."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from conformance.command import conform
from conformance.faults.aap.server import AapServer
from conformance.faults.fault import load_faults
from conformance.kit.reports import jsonfile
from conformance.kit.reports.comparison import GROUPS, Comparison, compare, summary
from conformance.kit.requirement import Requirement
from conformance.kit.verdict import CaseResult, Finding, Outcome, Report

P, F, N = Outcome.PASSED, Outcome.FAILED, Outcome.NOT_TESTABLE
Examine = Callable[..., Awaitable[Report]]


def shown_in_the_docs() -> str:
    """What docs/conformance.md says that a comparison prints."""
    page = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text()
    return page.partition("$ dragoman conform --diff yesterday.json today.json\n")[2].partition("```")[0]


def finding(name: str, outcome: Outcome, level: str = "must") -> Finding:
    told = {"expected": "cheese", "seen": "rock\nand dust"} if outcome is F else {"reason": "no rocket"}
    case = CaseResult(f"moon.{name}", "A case.", (name,), outcome, 0.1, "", **told)
    item = Requirement(id=name, level=level, section="light", source="moon", sentence=f"The sentence of {name}.")  # type: ignore[arg-type]
    return Finding(item, (case,))


def report(*findings: Finding) -> Report:
    results = tuple(result for item in findings for result in item.results)
    return Report("moon", "Moon", "http://moon", datetime(2026, 1, 2, tzinfo=UTC), 1.5, findings, results, "2026-11")


def between(old: Report, new: Report) -> Comparison:
    return compare(summary(old), summary(new))


def groups(comparison: Comparison) -> set[str]:
    return {group for group in GROUPS if comparison.of(group)}


@pytest.mark.parametrize(
    ("before", "after", "group"),
    [
        (P, F, "worse"), (N, F, "worse"), (P, N, "worse"),
        (F, P, "better"), (N, P, "better"),
        (F, N, "neither better nor worse"),
        (P, P, None), (F, F, None), (N, N, None),
    ],
)
def test_what_becomes_of_an_outcome(before: Outcome, after: Outcome, group: str | None) -> None:
    found = between(report(finding("M-A-01", before)), report(finding("M-A-01", after)))
    assert groups(found) == ({group} if group else set())
    assert found.has_worse is (group == "worse")
    assert ("nothing changed" in found.lines()) is (group is None)


def test_what_only_one_report_asked_is_neither_better_nor_worse() -> None:
    found = between(report(finding("M-A-01", P)), report(finding("M-A-02", F)))
    assert groups(found) == {"new", "gone"} and not found.has_worse
    assert list(found.lines()) == [
        "new: 1",
        "  M-A-02 (must): failed",
        "    The sentence of M-A-02.",
        "    expected cheese; seen: rock",
        "gone: 1",
        "  M-A-01 (must): passed",
        "    The sentence of M-A-01.",
        "no requirement that both reports asked got worse: the verdict is another for what was asked",
        "verdict: conforms, then fails (0 worse, 0 better, 1 new, 1 gone)",
    ]


def test_another_level_and_another_outcome_are_both_told() -> None:
    found = between(report(finding("M-A-01", P, "should")), report(finding("M-A-01", F)))
    assert groups(found) == {"worse", "another level"}
    assert "  M-A-01 (should, then must): passed, then failed" in found.lines()


def test_musts_come_first() -> None:
    old = report(finding("M-A-01", P, "may"), finding("M-A-02", P, "should"), finding("M-A-03", P))
    new = report(finding("M-A-01", F, "may"), finding("M-A-02", F, "should"), finding("M-A-03", F))
    assert [change.latest.id for change in between(old, new).of("worse")] == ["M-A-03", "M-A-02", "M-A-01"]


def test_other_servers_and_other_sets_are_said() -> None:
    old = report(finding("M-A-01", P))
    assert list(between(old, old).lines()) == [
        "nothing changed", "verdict: still conforms (0 worse, 0 better, 0 new, 0 gone)"]
    new = replace(old, url="http://mars", requirements=None)
    assert list(between(old, new).lines())[:2] == [
        "two servers: http://moon, then http://mars", "two sets of requirements: 2026-11, then unreleased"]


# -- at the command line ----------------------------------------------------------------------------------------------

def run(*arguments: str | Path) -> Result:
    app = typer.Typer()
    app.command()(conform)
    return CliRunner().invoke(app, [str(word) for word in arguments])


def written(path: Path, found: Report | dict[str, Any]) -> Path:
    path.write_text(jsonfile.text(found) if isinstance(found, Report) else json.dumps(found))
    return path


async def test_the_reports_of_two_examinations_are_compared(examine: Examine, tmp_path: Path) -> None:
    right = await examine(AapServer(), "AAP-META-01", "AAP-META-02")
    wrong = await examine(load_faults("aap")["version-as-text"].server(), "AAP-META-01", "AAP-META-02")
    good, bad = written(tmp_path / "good.json", right), written(tmp_path / "bad.json", wrong)
    worse = run("--diff", good, bad)
    assert worse.exit_code == 1, worse.output
    assert "worse: 1\n  AAP-META-01 (must): passed, then failed\n" in worse.output
    assert f"then {wrong.url}\n" in worse.output and "verdict: conforms, then fails" in worse.output
    assert shown_in_the_docs() in worse.output
    better = run("aap", "--diff", bad, good)
    assert better.exit_code == 0 and "better: 1\n" in better.output
    same = run("--diff", bad, bad)
    assert same.exit_code == 0 and same.output.startswith("nothing changed\nverdict: still fails")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file or directory"),
        ("not json", "is no report: it is not JSON: "),
        ("\xff", "is no report: it is not JSON: "),
        ("[]", 'is no report: `--report json` begins with "schema": "dragoman-conformance-report"'),
        ('{"schema": "something else"}', "is no report: "),
        ('{"schema": "dragoman-conformance-report", "version": 2}', "is a report of version 2; only 1 can be read"),
        ('{"schema": "dragoman-conformance-report", "version": 1}',
         'is no sound report: the report: "dialect" is a required property'),
    ],
)
@pytest.mark.parametrize("is_new", [False, True])
def test_a_file_that_is_no_report_gives_two_and_is_named(
    tmp_path: Path, content: str | None, words: str, is_new: bool
) -> None:
    good, bad = written(tmp_path / "good.json", report(finding("M-A-01", P))), tmp_path / "bad.json"
    if content is not None:
        bad.write_bytes(content.encode("latin-1"))
    result = run("--diff", *((good, bad) if is_new else (bad, good)))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"{bad}: {words}")
    assert result.stdout == ""


def test_a_report_that_was_damaged_is_told_with_the_place(tmp_path: Path) -> None:
    body = jsonfile.body(report(finding("M-A-01", P)))
    good = written(tmp_path / "good.json", body)
    body["requirements"][0]["outcome"] = "splendid"
    bad = written(tmp_path / "bad.json", body)
    result = run("--diff", good, bad)
    assert result.exit_code == 2
    assert result.stderr.startswith(f'{bad}: is no sound report: requirements/0/outcome: "splendid" is not one of ')


def test_reports_of_two_dialects_are_not_compared(tmp_path: Path) -> None:
    moon = written(tmp_path / "moon.json", report(finding("M-A-01", P)))
    mars = written(tmp_path / "mars.json", replace(report(finding("M-A-01", P)), dialect="mars"))
    result = run("--diff", moon, mars)
    assert (result.exit_code, result.stderr) == (2, f"{mars}: is a report of mars, not of moon\n")
    named = run("mars", "--diff", moon, mars)
    assert (named.exit_code, named.stderr) == (2, f"{moon}: is a report of moon, not of mars\n")


@pytest.mark.parametrize(
    "others", [("aap", "http://127.0.0.1:1"), ("--watch",), ("--report", "json"), ("--transcript", "a.har")])
def test_a_comparison_examines_nothing(tmp_path: Path, others: tuple[str, ...]) -> None:
    moon = written(tmp_path / "moon.json", report(finding("M-A-01", P)))
    result = run(*others, "--diff", moon, moon)
    assert result.exit_code == 2
    assert "--diff compares two files and examines nothing" in result.stderr


def test_without_a_dialect_there_is_nothing_to_examine() -> None:
    result = run()
    assert result.exit_code == 2
    assert "dragoman conform DIALECT URL" in result.stderr
