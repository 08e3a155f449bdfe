"""No false alarms: how they are looked for. Slow servers, and the variations of every dialect: `test_variations`.

Again and again, and with each variation alone: `make prove ARGS="--only false_alarms"`.
"""

from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from conformance.faults.cas.server import CasServer
from conformance.faults.false_alarms import FalseAlarmSearch, Round, find_false_alarms
from conformance.faults.kill.setups import KEY, SETUPS
from conformance.faults.local_server import served
from conformance.kit.suite import load_suite


async def rounds_of(search: FalseAlarmSearch) -> list[Round]:
    return [item async for item in search.rounds()]


async def test_nothing_is_held_against_correct_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    suite = load_suite("aap")
    some = replace(suite, cases=suite.cases[::5])
    monkeypatch.setattr("conformance.faults.false_alarms.load_suite", lambda dialect: some)
    search = FalseAlarmSearch("aap", runs=1, jitter=0.02, within=30.0, with_variations=False, at_once=16)
    rounds = await rounds_of(search)
    assert [item.name for item in rounds] == ["run 1", "run with up to 20 ms of delay"]
    assert [f"{item.name}: {words}" for item in rounds for words in item.alarms] == []
    assert rounds[0].seconds < rounds[1].seconds


@pytest.mark.parametrize("dialect", SETUPS)
def test_every_dialect_has_variations(dialect: str) -> None:
    names = [variation.name for variation in FalseAlarmSearch(dialect).variations()]
    assert len(set(names)) == len(names) >= 5


def test_a_server_of_ones_own_has_no_variations() -> None:
    assert list(FalseAlarmSearch("cas", url="http://127.0.0.1:9").variations()) == []


async def test_what_is_held_against_the_server_at_an_address_is_told() -> None:
    async with served(CasServer(key="another key")) as url:
        (only,) = await rounds_of(FalseAlarmSearch("cas", url=url, key=KEY, within=1.0))
    assert only.name == "run 1"
    assert any(words.startswith("sessions.a_new_session_has_every_field (CAS-SESS-01): ") for words in only.alarms)


def test_a_dialect_nobody_speaks_is_told() -> None:
    app = typer.Typer()
    app.command()(find_false_alarms)
    done = CliRunner().invoke(app, ["klingon"])
    assert done.exit_code == 2
    assert f"there is no dialect 'klingon'; there are: {', '.join(SETUPS)}" in done.output
