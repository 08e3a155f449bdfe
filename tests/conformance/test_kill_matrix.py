"""When a run of the kill matrix is good, and what it says when it is not."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from conformance.faults.kill import report
from conformance.faults.kill.case_runner import CaseRunner, case_runner_of
from conformance.faults.kill.clean_run import NotClean, run_cleanly
from conformance.faults.kill.examiner import FlawCases, FlawExaminer, FlawResult, RecentKillers, bundle_cases, bundles
from conformance.faults.kill.flaw import Expectation, Flaw
from conformance.faults.kill.matrix import Matrix
from conformance.faults.kill.orders import read_orders
from conformance.faults.kill.paths import Walk
from conformance.faults.kill.plan import Plan
from conformance.faults.kill.setups import SETUPS
from conformance.faults.kill.survivors import Explanation, Survivors, read_survivors
from conformance.faults.kill.traffic import Traffic

BROKEN = [Flaw("drop", "GET /meta 200", name, Expectation.BREAKS, "a schema") for name in ("a", "b", "c")]


def matrix(*results: FlawResult, is_whole: bool = False) -> Matrix:
    plan = Plan("aap", Traffic(Walk()), BROKEN, BROKEN, [], [], [])
    found = Matrix(plan, is_whole=is_whole)
    found.add(results, ())
    return found


def killed(name: str) -> FlawResult:
    return FlawResult(f"drop GET /meta 200 {name}", "meta.case", "expected this; seen: that", ("AAP-META-01",), 1)


def test_the_share_is_of_what_breaks_and_was_tried() -> None:
    found = matrix(killed("a"), FlawResult("drop GET /meta 200 b", tried=3))
    assert found.share == 0.5
    assert [result.name for result in found.survivors] == ["drop GET /meta 200 b"]
    assert found.kills["AAP-META-01"] == ["drop GET /meta 200 a"]
    assert found.table()["AAP-META-01"]["field"] == 1


def test_an_unexplained_survivor_is_a_complaint() -> None:
    complaints = matrix(FlawResult("drop GET /meta 200 b")).complaints()
    assert "drop GET /meta 200 b survives, and nothing says why" in complaints
    assert not any("why" in complaint for complaint in matrix(killed("a")).complaints())


def test_a_whole_run_needs_the_share_and_a_kill_for_every_must() -> None:
    complaints = matrix(killed("a"), FlawResult("drop GET /meta 200 b"), is_whole=True).complaints()
    assert "only 50.0% of the flaws that break a MUST are killed, not 97%" in complaints
    assert "AAP-META-02 kills nothing" in complaints
    assert "AAP-META-01 kills nothing" not in complaints
    assert "AAP-ERR-01 kills nothing" not in complaints


def test_false_alarms_and_hand_made_faults_that_escape_are_complaints() -> None:
    found = matrix(killed("a"), FlawResult("hand one-id-for-all"))
    found.add((), [FlawResult("crlf sse", "some.case", "it minds")])
    complaints = found.complaints()[:2]
    assert complaints == ["false alarm: crlf sse: it minds", "hand one-id-for-all is not caught by its cases"]


REASON = "a reason that a user would accept"
UNEXPLAINED = "drop b survives, and nothing says why"


@pytest.mark.parametrize(
    ("flaw", "complaint"),
    [
        ("drop b", []),
        ("drop *", []),
        ("drop a", ["survivors.yaml explains 'drop a', but it no longer survives", UNEXPLAINED]),
        ("null *", ["survivors.yaml explains 'null *', but there is no such flaw", UNEXPLAINED]),
        ("drop c", [UNEXPLAINED]),
    ],
)
def test_explanations_must_apply(flaw: str, complaint: list[str]) -> None:
    found = Survivors(survivors=(Explanation(flaw=flaw, why=REASON),))
    seen = found.complaints(["drop a", "drop b", "drop c"], ["drop a", "drop b"], ["drop b"])
    assert sorted(seen) == sorted(complaint)


@pytest.mark.parametrize("dialect", SETUPS)
def test_the_survivors_of_every_dialect_can_be_read(dialect: str) -> None:
    assert all(item.why for item in read_survivors(dialect).survivors)


def test_the_matrix_is_told_and_written(tmp_path: Path) -> None:
    found = matrix(killed("a"), FlawResult("drop GET /meta 200 b", tried=3, untestable=("x: y",)))
    console = Console(record=True, width=200)
    report.print_matrices(console, [found])
    report.print_flaws(console, [found])
    said = console.export_text()
    assert "50.0%" in said
    assert "survives: drop GET /meta 200 b (3 cases, struck 0 times, 1 could not be put)" in said
    assert "killed by meta.case: expected this; seen: that" in said
    report.write(tmp_path, [found])
    page = (tmp_path / "kill.md").read_text()
    assert "| AAP-META-01 | 1 |" in page
    assert "`drop GET /meta 200 b` survives: unexplained" in page
    told = json.loads((tmp_path / "kill-aap.json").read_bytes())
    assert told["kills"]["AAP-META-01"] == ["drop GET /meta 200 a"]
    assert told["flaws"][0]["killed_by"] == "meta.case"


# -- examining ---------------------------------------------------------------------------------------------------------


async def test_a_case_that_fails_before_anything_is_damaged_is_told() -> None:
    name, case_runner = "history.only_the_asked_type_is_given", CaseRunner("aap")
    wrong = case_runner.setup.faults["both-histories-at-once"]
    case_runner.setup = replace(case_runner.setup, server_type=wrong.server)
    case_runner.cases = {name: case_runner.cases[name]}
    with pytest.raises(NotClean, match=f"aap: {name} does not pass on the correct server: expected"):
        await run_cleanly(case_runner, read_orders("aap").walk, 30.0, 1)


async def test_cases_are_put_to_a_flaw_until_one_fails() -> None:
    examiner = FlawExaminer(case_runner_of("aap"), read_orders("aap"))
    flaw = Flaw("alter", "GET /meta 200", "version")
    cases = ("meta.agents_are_described", "meta.meta_is_version_three", "meta.tools_are_described")
    result = await examiner.examine(FlawCases(flaw, cases))
    assert (result.killer, result.tried, result.strikes) == ("meta.meta_is_version_three", 2, 2)
    assert result.requirements == ("AAP-META-01",)
    again = await examiner.examine(FlawCases(flaw, cases))
    assert again.tried == 1


async def test_a_case_that_cannot_be_put_is_no_kill() -> None:
    examiner = FlawExaminer(case_runner_of("aap"), read_orders("aap"))
    flaw = Flaw("drop", "GET /meta 200", "agents.each.capabilities.stream")
    result = await examiner.examine(FlawCases(flaw, ("streaming.delta_mode_speaks_in_deltas",)))
    assert not result.is_killed
    assert len(result.untestable) == 1


async def test_cases_are_put_to_a_fault_until_its_musts_have_failed() -> None:
    result = await FlawExaminer(case_runner_of("aap"), read_orders("aap")).examine_fault("both-histories-at-once")
    assert (result.killer, result.requirements) == ("history.only_the_asked_type_is_given", ("AAP-HIST-01",))


async def test_what_must_be_tolerated_is_named_when_it_is_not() -> None:
    examiner = FlawExaminer(case_runner_of("aap"), read_orders("aap"))
    harmless, harmful = Flaw("extra", "GET /meta 200", ""), Flaw("drop", "GET /meta 200", "version")
    assert await examiner.alarms([harmless], "meta.meta_is_version_three") == []
    alarms = await examiner.alarms([harmless, harmful], "meta.meta_is_version_three")
    assert [alarm.name for alarm in alarms] == ["drop GET /meta 200 version"]


def test_the_most_telling_cases_are_asked_first() -> None:
    quick, thorough = "streaming.results_follow_their_calls", "modes.every_mode_tells_the_same"
    judge = "tools.a_trusted_tool_runs_inline"
    traffic = Traffic(Walk(), seconds={quick: 0.1, thorough: 0.3, judge: 0.2})
    for path in ("", "text"):
        traffic.visitors["sse text", path] |= {quick, thorough, judge}
    traffic.judges["sse text"].add(judge)
    examiner = FlawExaminer(case_runner_of("aap"), read_orders("aap").model_copy(update={"watchers": (thorough,)}))
    assert examiner.cases_for(traffic, Flaw("drop", "sse text", "text")).cases == (judge, quick, thorough)
    for flaw in (Flaw("alter", "sse text", "text"), Flaw("lose", "sse text"), Flaw("double", "sse text")):
        assert examiner.cases_for(traffic, flaw).cases == (thorough, quick, judge)


@pytest.mark.parametrize("dialect", SETUPS)
def test_watchers_are_cases_that_decide_a_must(dialect: str) -> None:
    case_runner = case_runner_of(dialect)
    assert read_orders(dialect).watchers
    assert [name for name in read_orders(dialect).watchers if not case_runner.binds(case_runner.cases[name])] == []


def test_the_last_killer_is_asked_first() -> None:
    memory = RecentKillers()
    memory.note(Flaw("drop", "sse a", "x"), "late")
    assert memory.ordered(FlawCases(Flaw("null", "sse a", "y"), ("early", "late"))) == ["late", "early"]
    assert memory.ordered(FlawCases(Flaw("drop", "sse b", "y"), ("early", "late"))) == ["late", "early"]
    assert memory.ordered(FlawCases(Flaw("null", "io b", "y"), ("early", "late"))) == ["early", "late"]
    assert memory.ordered(FlawCases(Flaw("drop", "sse a", "x"), ("early",))) == ["early"]


def test_tolerable_fields_are_tried_together_and_framings_alone() -> None:
    fields = [Flaw("extra", "sse a", path) for path in ("x", "y")]
    framing = Flaw("crlf", "sse")
    traffic = Traffic(Walk())
    traffic.visitors["sse a", "x"].add("one")
    traffic.visitors["sse a", "y"] |= {"one", "two"}
    groups = bundles([*fields, framing])
    assert groups == {"fields": fields, "crlf sse": [framing]}
    assert bundle_cases(traffic, groups["fields"]) == {"one": fields, "two": fields[1:]}


# -- the command -------------------------------------------------------------------------------------------------------


def run(*arguments: str) -> tuple[int, str]:
    import typer

    from conformance.faults.kill.command import kill

    app = typer.Typer()
    app.command()(kill)
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    return result.exit_code, result.output


def test_an_unknown_dialect_is_named() -> None:
    code, said = run("klingon")
    assert code == 2
    assert f"there is no dialect 'klingon'; there are: {', '.join(SETUPS)}" in said


def test_orders_that_cannot_be_read_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "orders.yaml"
    path.write_text("sequences: [{on: 'sse *'}]\n")
    monkeypatch.setattr("conformance.faults.kill.orders.orders_path", lambda dialect: path)
    code, said = run("aap")
    assert code == 2
    assert f"{path}" in said.replace("\n", "")
    assert "sequences.0.places" in said


def test_a_few_flaws_are_shown_with_their_killers(tmp_path: Path) -> None:
    code, said = run("aap", "--flaw", "drop GET /meta 200 version", "--out", str(tmp_path), "--processes", "1")
    assert code == 0
    assert "killed by meta.meta_is_version_three" in said
    assert (tmp_path / "kill-aap.json").exists()


def test_flaws_are_listed_without_an_examination(monkeypatch: pytest.MonkeyPatch) -> None:
    case_runner = case_runner_of("aap")
    streams = {name: case for name, case in case_runner.cases.items() if name.startswith("streaming.")}
    monkeypatch.setattr(case_runner, "cases", streams)
    code, said = run("aap", "--list", "--flaw", "* sse turn_stop*")
    assert code == 0
    assert "aap breaks    lose sse turn_stop" in said
    assert "killed" not in said
