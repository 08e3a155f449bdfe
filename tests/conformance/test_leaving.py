"""The suite leaves a wrong server as it found it (a right one: `test_reference`), and destroys nothing unasked."""

from typing import Any

import aiohttp
import pytest

from conformance.faults.fault import load_faults
from conformance.faults.serving import served
from conformance.kit.runner import Runner
from conformance.kit.suite import Target, load_suite
from conformance.kit.verdict import Outcome, Report
from tests.support.conformance.examinations import KEY, SERVERS, examine_at, made, suited
from tests.support.conformance.foreign_resources import Lists, OtherUser

FAULTS = {dialect: load_faults(dialect) for dialect in ("aap", "cas", "blade", "zenflux")}


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
    """Whose conversations a ZenFlux server has; it lists them to their owners only."""
    return {item.user_id for item in getattr(server, "conversations", {}).values()}


LAX = {
    "aap": ("created-with-200", "any-agent-will-do", "unknown-tools-taken", "select-takes-anything", "clashes-taken"),
    "cas": ("any-agent-taken", "config-optional", "any-name-taken", "empty-uploads-taken", "endless-metadata"),
    "blade": ("any-task", "any-kind-of-memory", "long-memory", "memory-kept-with-200", "key-without-time"),
    "zenflux": ("message-not-needed", "any-agent", "always-new", "no-payload", "other-session"),
}


@pytest.mark.parametrize(("dialect", "name"), [(dialect, name) for dialect, names in LAX.items() for name in names])
async def test_a_server_is_left_as_it_was_found_even_if_it_takes_what_it_should_refuse(dialect: str, name: str) -> None:
    fault = FAULTS[dialect][name]
    server = made(dialect, fault.server)
    before, after, report = await before_and_after(dialect, server, *fault.requirements)
    assert report.of(Outcome.FAILED)
    assert after == before
    assert owners(server) <= {"somebody-else"}


@pytest.mark.parametrize("dialect", ["blade", "zenflux"])
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


@pytest.mark.parametrize("dialect", ["aap", "cas"])
def test_these_examiners_touch_only_what_they_made(dialect: str) -> None:
    assert [case.name for case in load_suite(dialect).cases if case.destructive] == []
