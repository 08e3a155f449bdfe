"""Clients are judged rightly: a correct one passes everything, a wrong one fails what it is wrong about.

A third of the wrong ones; all: `make prove ARGS="--only faults"`.
"""

from pathlib import Path

import pytest

from conformance.clients.client_base import Wrong, read_wrongs
from conformance.clients.judgement import mismatches
from conformance.clients.runner import NOTHING_DONE
from conformance.clients.situation import Cue
from conformance.clients.suite import client_dialects, load_client_suite
from conformance.kit.baseline import read_baseline
from conformance.kit.requirement import Level
from conformance.kit.verdict import Outcome, Verdict
from tests.support.conformance import client_drivers
from tests.support.conformance.client_drivers import (
    HOME,
    KEY,
    assert_failed,
    driver,
    examine,
    kept,
    remote_driver,
    wrong_clients,
)
from tests.support.conformance.wrong_servers import SAMPLED

DIALECTS = client_dialects()
BASELINES = Path(client_drivers.__file__).parent / "client_baselines"


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


@pytest.mark.parametrize(("dialect", "row"), wrong_clients()[::SAMPLED])
def test_a_wrong_client_fails(dialect: str, row: Wrong) -> None:
    assert_failed(dialect, row)


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
