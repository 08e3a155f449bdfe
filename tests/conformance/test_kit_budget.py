"""An examination spends what it may, on what decides most, and says what it has left out."""

from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from conformance.command import conform
from conformance.faults.local_server import served
from conformance.kit.budget import Budget, most_telling_first, parse_budget
from conformance.kit.reports import FILES, writer
from conformance.kit.runner import Runner
from conformance.kit.suite import Target, load_suite
from conformance.kit.verdict import LEFT_OUT, Outcome, Report, Verdict
from tests.support.conformance.examination_facts import EXAMINED, KEY
from tests.support.conformance.examinations import SERVERS, suited

MAY_SPEND = 3


async def examined(dialect: str, budget: Budget, count: int) -> Report:
    """The first cases of a dialect, one at a time, before a right server."""
    server, suite = SERVERS[dialect](), load_suite(dialect)
    settings = suited(dialect, server)
    suite = replace(suite, cases=tuple(most_telling_first(suite.cases, suite.catalogue.requirements))[:count])
    ids = {name for case in suite.cases for name in case.requirements}
    wanted = [item for item in suite.catalogue.requirements if item.id in ids]
    async with served(server) as url:
        return await Runner(suite, Target(url, KEY, 5.0, budget=budget), settings, 1).run(wanted)


@pytest.mark.parametrize("dialect", EXAMINED)
async def test_no_case_is_begun_once_the_turns_are_spent(dialect: str) -> None:
    report = await examined(dialect, Budget(turns=MAY_SPEND), 30)
    asked = [item.outcome is not Outcome.NOT_TESTABLE for item in report.results]
    assert True in asked and False in asked
    assert asked == sorted(asked, reverse=True)
    before = [item.transcript for item in report.results if item.transcript][:-1]
    assert sum(sent(dialect, words) for words in before) < MAY_SPEND
    assert report.verdict is Verdict.INCOMPLETE
    assert report.exit_code == 3


def sent(dialect: str, transcript: str) -> int:
    """How many messages a transcript shows that let the agent work; an entry goes on where a line has no time."""
    entries: list[str] = []
    for line in transcript.splitlines():
        if line[:9].strip():
            entries.append(line[12:] if line[10:11] == ">" else "")
        elif entries:
            entries[-1] += "\n" + line[12:]
    return sum(load_suite(dialect).turn.search(entry) is not None for entry in entries)


async def test_what_is_left_out_is_told_in_every_report() -> None:
    report = await examined("aap", Budget(turns=MAY_SPEND), 30)
    assert report.left_out
    for kind in FILES:
        if kind != "badge":
            assert LEFT_OUT in writer(kind)(report), kind
    assert "incomplete" in writer("badge")(report)


def test_time_is_spent_too() -> None:
    assert Budget(turns=5, seconds=600).spent(4, 599.9) is None
    assert Budget(turns=5, seconds=600).spent(4, 600.0) == f"{LEFT_OUT} (600 of 600 seconds spent)"


def test_musts_come_first_and_then_what_decides_most() -> None:
    suite = load_suite("aap")
    levels = {item.id: item.level for item in suite.catalogue.requirements}
    ordered = most_telling_first(suite.cases, suite.catalogue.requirements)
    musts = [[levels[name].value for name in case.requirements].count("must") for case in ordered]
    assert musts == sorted(musts, reverse=True)
    assert sorted(case.name for case in ordered) == sorted(case.name for case in suite.cases)


def test_a_budget_is_read() -> None:
    assert parse_budget("turns=200,seconds=600") == Budget(200, 600)
    assert parse_budget("seconds=5") == Budget(None, 5)


@pytest.mark.parametrize("words", ["", "turn=3", "turns", "turns=0", "turns=-1", "turns=x", "turns=1,turns=2", "200"])
def test_wrong_words_are_usage_errors_that_name_the_right_ones(words: str) -> None:
    app = typer.Typer()
    app.command()(conform)
    done = CliRunner().invoke(app, ["aap", "http://127.0.0.1:9", "--budget", words])
    assert done.exit_code == 2
    assert "turns=200,seconds=600" in done.output
