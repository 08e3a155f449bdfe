"""Clients are judged rightly: a correct one passes everything, a wrong one fails what it is wrong about."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import conformance.clients
from conformance.clients.actor import Wrong, read_wrongs
from conformance.clients.judgement import mismatches
from conformance.clients.runner import NOTHING_DONE
from conformance.clients.situation import Cue
from conformance.clients.suite import client_dialects, load_client_suite
from conformance.kit.baseline import read_baseline
from conformance.kit.requirement import Level
from conformance.kit.verdict import Outcome, Verdict
from tests.support.conformance import client_drivers
from tests.support.conformance.client_drivers import KEY, examine, kept, remote_driver

HOME = Path(conformance.clients.__file__).parent
DIALECTS = client_dialects()
BASELINES = Path(client_drivers.__file__).parent / "client_baselines"


def wrong_clients() -> Iterator[object]:
    for dialect in DIALECTS:
        for row in read_wrongs(HOME / dialect):
            yield pytest.param(dialect, row, id=f"{row.requirement}-{row.name}")


def driver(dialect: str, wrong: str | None = None):  # type: ignore[no-untyped-def]
    drive = import_module(f"conformance.clients.{dialect}.client").drive
    return lambda cue: drive(cue, wrong)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_requirements_judgements_and_situations_fit(dialect: str) -> None:
    suite = load_client_suite(dialect)
    assert mismatches(suite.catalogue, suite.judgements, [item.name for item in suite.situations]) == []
    assert len({item.name for item in suite.situations}) == len(suite.situations)
    named = {name for item in suite.judgements for name in item.situations}
    assert {item.name for item in suite.situations} == named, "a situation that decides nothing need not be played"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_must_quotes_the_protocol(dialect: str) -> None:
    for item in load_client_suite(dialect).catalogue.requirements:
        assert (item.seed is not None) == (item.level is Level.MUST), item.id
        assert not item.is_quote_chinese or item.english, item.id


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_requirement_has_a_client_that_fails_it(dialect: str) -> None:
    rows = read_wrongs(HOME / dialect)
    assert {row.requirement for row in rows} == load_client_suite(dialect).catalogue.ids


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_correct_client_passes(dialect: str) -> None:
    report = examine(dialect, driver(dialect))
    assert kept(report, lambda outcome: outcome != Outcome.PASSED) == {}
    assert report.verdict is Verdict.CONFORMS


@pytest.mark.parametrize(("dialect", "row"), list(wrong_clients()))
def test_a_wrong_client_fails(dialect: str, row: Wrong) -> None:
    report = examine(dialect, driver(dialect, row.name), [row.requirement])
    assert [item.outcome for item in report.findings] == [Outcome.FAILED], kept(report, lambda outcome: True)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_client_that_does_nothing_cannot_be_tested(dialect: str) -> None:
    async def idle(cue: Cue) -> None:
        return

    report = examine(dialect, idle)
    assert {item.outcome for item in report.findings} == {Outcome.NOT_TESTABLE}
    assert {result.reason for result in report.results} == {NOTHING_DONE}
    assert report.verdict is Verdict.INCOMPLETE


@pytest.mark.parametrize("dialect", DIALECTS)
def test_our_own_client_passes(dialect: str) -> None:
    """But for the departures that its baseline names, and those are real."""
    report = examine(dialect, remote_driver(dialect))
    file = BASELINES / f"{dialect}.yaml"
    if file.exists():
        report = read_baseline(file, load_client_suite(dialect)).held_against(report)
        assert report.standing is not None
        assert report.standing.complaints == ()
    known = report.standing.known if report.standing else {}
    found = kept(report, lambda outcome: outcome not in (Outcome.PASSED, Outcome.NOT_APPLICABLE))
    assert {name: words for name, words in found.items() if name not in known} == {}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_key_is_in_no_transcript(dialect: str) -> None:
    report = examine(dialect, driver(dialect))
    assert not [result.name for result in report.results if KEY in result.transcript]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_client_that_left_is_not_waited_for(dialect: str) -> None:
    hour = 3600.0
    assert examine(dialect, driver(dialect), timeout=hour).seconds < hour
