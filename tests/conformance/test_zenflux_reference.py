"""The correct ZenFlux server with other profiles; whole examinations: the proof `reference`, `test_variations`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from aiohttp import web

from conformance.faults.fault import load_faults
from conformance.faults.steps import AsyncStep, replace_steps
from conformance.faults.zenflux.server import ZenfluxServer
from conformance.kit.requirement import Level
from conformance.kit.suite import Suite
from conformance.kit.verdict import Outcome, Report, Verdict
from conformance.zenflux.profile import ZenfluxProfile
from tests.support.conformance.examinations import troubles

Examine = Callable[..., Awaitable[Report]]


async def test_an_empty_profile_makes_things_not_testable_and_nothing_wrong(examine_zenflux: Examine) -> None:
    report = await examine_zenflux(ZenfluxServer(), profile=ZenfluxProfile())
    assert report.of(Outcome.FAILED) == ()
    assert not any("stumbled" in (result.reason or "") for result in report.results)
    assert len(report.of(Outcome.NOT_TESTABLE)) > 80


async def test_a_profile_may_name_an_agent(examine_zenflux: Examine, zenflux: Suite) -> None:
    settings = zenflux.read_profile().model_copy(update={"agent": "reference"})
    report = await examine_zenflux(ZenfluxServer(), "ZF-WS-08", "ZF-HTTP-3.1-01", profile=settings)
    assert troubles(report) == []


async def test_a_profile_may_name_an_agent_nobody_has(examine_zenflux: Examine, zenflux: Suite) -> None:
    settings = zenflux.read_profile().model_copy(update={"agent": "nobody"})
    report = await examine_zenflux(ZenfluxServer(), "ZF-WS-01", profile=settings)
    assert report.verdict is Verdict.CONFORMS
    report = await examine_zenflux(ZenfluxServer(), "ZF-SEQ-08", profile=settings)
    assert report.verdict is Verdict.INCOMPLETE
    assert "does not know the agent 'nobody' of the profile" in report.results[0].remark


async def test_a_tick_is_not_waited_for_where_there_is_no_time(examine_zenflux: Examine, zenflux: Suite) -> None:
    settings = zenflux.read_profile()
    report = await examine_zenflux(ZenfluxServer(), "ZF-WS-18", profile=settings, within=1.0)
    assert "no 33 s to wait" in report.results[0].remark


async def test_no_heartbeat_in_the_profile_means_that_nobody_waits_for_one(
    examine_zenflux: Examine, zenflux: Suite
) -> None:
    settings = zenflux.read_profile().model_copy(update={"heartbeat": None})
    report = await examine_zenflux(ZenfluxServer(), "ZF-WS-18", profile=settings)
    assert [result.reason for result in report.results] == ["the profile has no entry `heartbeat`"]


async def test_what_was_expected_of_listed_messages_is_what_was_said(examine_zenflux: Examine) -> None:
    report = await examine_zenflux(load_faults("zenflux")["one-message"].server(), "ZF-HTTP-3.2-06")
    failed = [(result.expected, result.seen) for result in report.results if result.outcome is Outcome.FAILED]
    assert ("how often the user spoke: 2", "0") in failed


@dataclass
class WithoutManagement:
    """Has none of the calls that manage agents, tools, MCP servers and documents."""

    server: ZenfluxServer
    status: int

    async def answer(self, step: AsyncStep[Any], request: web.Request, handler: Any) -> Any:
        if request.path.startswith(("/api/v1/agents", "/api/v1/tools", "/api/v1/docs")):
            return self.server.front.refusal(self.status, "There is nothing here.")
        return await step(request, handler)


@pytest.mark.parametrize("status", [404, 501])
async def test_a_server_without_management_fails_its_rows_and_is_not_asked_for_more(
    examine_zenflux: Examine, zenflux: Suite, status: int
) -> None:
    sections = ("agents", "agent_servers", "tools", "mcp_servers", "documents")
    asked = {item.id: item.level for item in zenflux.catalogue.requirements if item.section in sections}
    server = ZenfluxServer()
    replace_steps(server, WithoutManagement(server, status))
    report = await examine_zenflux(server, *asked)
    failed = {item.requirement.id for item in report.of(Outcome.FAILED)}
    assert {asked[name] for name in failed} == {Level.MUST}
    assert {"ZF-HTTP-3.5-01", "ZF-HTTP-3.5-02", "ZF-HTTP-3.7-01", "ZF-HTTP-3.7-08", "ZF-HTTP-3.12-01"} <= failed
    assert report.of(Outcome.PASSED) == ()


class ContentsInStrings:
    """Keeps the content of a message as a string that holds the JSON of its blocks, as the published server does."""

    async def get_messages(self, step: AsyncStep[web.Response], request: web.Request) -> web.Response:
        body = orjson.loads((await step(request)).body)  # type: ignore[arg-type]
        for message in body["data"]["messages"]:
            if isinstance(message["content"], list):
                message["content"] = orjson.dumps(message["content"]).decode()
        return web.json_response(body)


@pytest.mark.parametrize(
    ("variations", "words"),
    [
        ([], "the content of a message is a list of blocks"),
        ([ContentsInStrings], "the content of a message is a string that holds a JSON array"),
    ],
)
async def test_the_report_says_which_reading_of_content_the_server_keeps(
    examine_zenflux: Examine, variations: list[Callable[[], object]], words: str
) -> None:
    server = ZenfluxServer()
    for variation in variations:
        replace_steps(server, variation())
    report = await examine_zenflux(server, "ZF-TYPE-06")
    assert report.verdict is Verdict.CONFORMS
    assert {item.requirement.id: item.readings for item in report.readings} == {"ZF-TYPE-06": (words,)}
