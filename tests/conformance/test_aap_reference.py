"""The correct AAP server one case at a time, with little to show, and with other profiles; see the proof `reference`
and `test_variations` for whole examinations."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from conformance.aap.profile import AapProfile
from conformance.faults.aap.server import AapServer
from conformance.faults.steps import Step, variant
from conformance.kit.verdict import Outcome, Report, Verdict
from tests.support.conformance.examinations import PATIENT, troubles

Examine = Callable[..., Awaitable[Report]]
KEY = "the-key-of-the-examiners"


async def test_cases_one_by_one_give_the_same(examine: Examine) -> None:
    """Some of them; `test_plugin` puts all of them one by one."""
    some = ("AAP-META-01", "AAP-SESS-10", "AAP-HIST-01", "AAP-TURN-04", "AAP-SSE-01", "AAP-TOOL-06")
    report = await examine(AapServer(key=KEY), *some, at_once=1, within=PATIENT)
    assert troubles(report) == []
    assert {item.requirement.id for item in report.of(Outcome.PASSED)} == set(some)


class OneAgent:
    """Has only the agent that declares nothing."""

    def agents(self, step: Step[list[dict[str, Any]]]) -> list[dict[str, Any]]:
        return step()[1:]


async def test_an_agent_that_can_do_little_is_incomplete_but_not_wrong(examine: Examine) -> None:
    report = await examine(variant(AapServer, OneAgent)())
    assert report.of(Outcome.FAILED) == ()
    assert (report.verdict, report.exit_code) == (Verdict.INCOMPLETE, 3)
    assert {item.requirement.id for item in report.of(Outcome.PASSED)} >= {"AAP-META-01", "AAP-SESS-02", "AAP-SESS-09"}


async def test_an_empty_profile_makes_things_not_testable_and_nothing_wrong(examine: Examine) -> None:
    report = await examine(AapServer(), profile=AapProfile())
    assert report.of(Outcome.FAILED) == ()
    assert not any("stumbled" in (result.reason or "") for result in report.results)
    assert len(report.of(Outcome.NOT_TESTABLE)) > 25


async def test_an_agent_nobody_has_is_not_testable(examine: Examine) -> None:
    report = await examine(AapServer(), "AAP-SESS-01", profile=AapProfile(agent="nobody"))
    assert "no agent named 'nobody'" in report.results[0].remark


async def test_the_profile_chooses_the_agent(examine: Examine) -> None:
    report = await examine(AapServer(), "AAP-SESS-08", profile=AapProfile(agent="plain"))
    assert "'plain' does not declare a secret option" in report.results[0].remark


class ContentsInStrings:
    """Keeps what the agent said as a string that holds the JSON of its blocks."""

    def history(self, step: Step[dict[str, Any]], session: object, kind: str) -> dict[str, Any]:
        return {kind: [self._written(message) for message in step(session, kind)[kind]]}

    def _written(self, message: dict[str, Any]) -> dict[str, Any]:
        is_told = message["role"] == "assistant" and isinstance(message["content"], list)
        return message | {"content": json.dumps(message["content"])} if is_told else message


@pytest.mark.parametrize(
    ("server", "readings"),
    [
        (AapServer, {}),
        (
            variant(AapServer, ContentsInStrings),
            {"AAP-HIST-03": ("a content that is a string which holds a JSON list of blocks is read as these blocks",)},
        ),
    ],
)
async def test_the_report_says_when_a_string_is_read_as_the_blocks_it_holds(
    examine: Examine, server: Callable[[], Any], readings: dict[str, tuple[str, ...]]
) -> None:
    report = await examine(server(), "AAP-HIST-03", within=PATIENT)
    assert report.verdict is Verdict.CONFORMS
    assert {item.requirement.id: item.readings for item in report.readings} == readings
