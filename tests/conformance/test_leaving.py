"""The suite leaves a wrong server as it found it (a right one: the proof `reference`), and destroys nothing unasked."""

from typing import Any

import aiohttp
import pytest

from conformance.faults.kill.setups import setup_of
from conformance.faults.local_server import served
from conformance.kit.runner import Runner
from conformance.kit.suite import Target, load_suite
from conformance.kit.verdict import Outcome, Report
from tests.support.conformance.examination_facts import EXAMINED, examination_facts
from tests.support.conformance.examinations import KEY, SERVERS, examine_at, made, suited
from tests.support.conformance.foreign_resources import Lists, OtherUser


async def before_and_after(dialect: str, server: Any, *ids: str) -> tuple[Lists, Lists, Report]:
    """All that is listed before and after an examination."""
    profile = suited(dialect, server)
    async with served(server) as url, aiohttp.ClientSession() as session:
        somebody = OtherUser(dialect, url, session)
        await somebody.make()
        before = await somebody.lists()
        report = await examine_at(dialect, url, profile, *ids, within=5.0, at_once=8)
        return before, await somebody.lists(), report


def owners(server: Any) -> set[str]:
    """Whose conversations a server has, if it lists them to their owners only."""
    return {item.user_id for item in getattr(getattr(server, "state", server), "conversations", {}).values()}


LAX = [(name, fault) for name in EXAMINED for fault in examination_facts(name).lax]


@pytest.mark.parametrize(("dialect", "name"), LAX)
async def test_a_server_is_left_as_it_was_found_even_if_it_takes_what_it_should_refuse(dialect: str, name: str) -> None:
    fault = setup_of(dialect).faults[name]
    server = made(dialect, fault.server)
    before, after, report = await before_and_after(dialect, server, *fault.requirements)
    assert report.of(Outcome.FAILED)
    assert after == before
    assert owners(server) <= {"somebody-else"}


@pytest.mark.parametrize("dialect", [name for name in EXAMINED if examination_facts(name).has_destructive_cases])
async def test_nothing_destructive_is_asked_unless_it_is_allowed(dialect: str) -> None:
    suite = load_suite(dialect)
    destructive = [case for case in suite.cases if case.destructive]
    named = {name for case in destructive for name in case.requirements}
    wanted = [item for item in suite.catalogue.requirements if item.id in named]
    server = SERVERS[dialect]()
    async with served(server) as url:
        report = await Runner(suite, Target(url, KEY, 5.0), suited(dialect, server)).run(wanted)
    reasons = {result.name: result.reason or "" for result in report.results}
    assert len(destructive) > 1
    assert all("--allow-destructive" in reasons[case.name] for case in destructive)
    assert {item.requirement.id for item in report.of(Outcome.NOT_TESTABLE)} == {item.id for item in wanted}


@pytest.mark.parametrize("dialect", [name for name in EXAMINED if not examination_facts(name).has_destructive_cases])
def test_these_examiners_touch_only_what_they_made(dialect: str) -> None:
    assert [case.name for case in load_suite(dialect).cases if case.destructive] == []
