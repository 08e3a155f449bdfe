"""One departure of a ZenFlux server is one finding: what it keeps from being judged names it as the cause."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from conformance.faults.steps import AsyncStep, Step, replace_steps
from conformance.faults.zenflux.player import RunEvent, RunEvents
from conformance.faults.zenflux.server import ZenfluxServer
from conformance.faults.zenflux.state import Session
from conformance.faults.zenflux.variations import changed
from conformance.kit.case import Case
from conformance.kit.expect import Failed
from conformance.kit.requirement import Level
from conformance.kit.suite import Suite
from conformance.kit.verdict import Outcome, Report
from conformance.zenflux.prerequisites import guarded, prerequisites
from conformance.zenflux.rest_calls import owner_of

Examine = Callable[..., Awaitable[Report]]
PATIENCE = 15.0
LONGEST = 120.0


class NeverUpdated:
    """conversation_start has null as updated_at."""

    async def play(self, step: Step[RunEvents], session: Session) -> RunEvents:
        async for event in step(session):
            yield changed(event, updated_at=None) if event.type == "conversation_start" else event


class NeverOver:
    """No run says session_end."""

    async def play(self, step: Step[RunEvents], session: Session) -> RunEvents:
        async for event in step(session):
            if event.type != "session_end":
                yield event


class NumberedMessages:
    """The id of a message is a number."""

    def opened(self, step: Step[RunEvent], session: Session) -> RunEvent:
        event = step(session)
        message: dict[str, Any] = {**(event.message or {}), "id": 7}
        return RunEvent(event.type, event.data, message)


@pytest.mark.parametrize(
    ("flaw", "finding"), [(NeverUpdated, "ZF-EV-05"), (NeverOver, "ZF-SEQ-08"), (NumberedMessages, "ZF-EV-11")]
)
async def test_one_departure_is_one_finding(
    examine_zenflux: Examine, zenflux: Suite, flaw: Callable[[], object], finding: str
) -> None:
    sections = ("frames", "responses", "connection", "envelope", "lifecycle", "events", "messages", "blocks", "types")
    asked = [item.id for item in zenflux.catalogue.requirements if item.section in (*sections, "chat", "sessions")]
    server = ZenfluxServer()
    replace_steps(server, flaw())
    report = await examine_zenflux(server, *asked, within=PATIENCE, clears=False)
    assert {item.requirement.id for item in report.of(Outcome.FAILED)} == {finding}
    assert {cause.finding.requirement.id for cause in report.causes} == {finding}
    assert all(item.because == (finding,) for item in report.of(Outcome.NOT_TESTABLE) if item.because)
    assert report.seconds < LONGEST


class MutedRuns:
    """A server whose socket and streams tell a run no further than its last message_stop, as the published one does."""

    async def play(self, step: Step[RunEvents], session: Session) -> RunEvents:
        waiting: list[RunEvent] = []
        async for event in step(session):
            waiting.append(event)
            if event.type not in ("session_end", "session_stopped"):
                for told in waiting:
                    yield told
                waiting = []


class LostMessages:
    """message_start lacks its message."""

    def opened(self, step: Step[RunEvent], session: Session) -> RunEvent:
        event = step(session)
        return RunEvent(event.type, {}, None)


class UnlistedSessions:
    """GET /sessions never lists a session."""

    async def get_sessions(self, step: AsyncStep[web.Response], request: web.Request) -> web.Response:
        await step(request)
        return web.json_response({"code": 200, "message": "success", "data": {"total": 0, "sessions": []}})


PUBLISHED = {
    NeverUpdated: {"ZF-EV-05"},
    MutedRuns: {"ZF-SEQ-08", "ZF-EV-02"},
    LostMessages: {"ZF-EV-11"},
    UnlistedSessions: {"ZF-HTTP-3.1-07"},
}
"""The departures of the published server, each with the requirements whose sentences it breaks."""


async def test_the_departures_of_the_published_server_are_its_only_findings(
    examine_zenflux: Examine, zenflux: Suite
) -> None:
    sections = ("frames", "responses", "connection", "envelope", "lifecycle", "events", "messages", "blocks", "types")
    asked = [item for item in zenflux.catalogue.requirements if item.section in (*sections, "chat", "sessions")]
    server = ZenfluxServer()
    for flaw in PUBLISHED:
        replace_steps(server, flaw())
    musts = [item.id for item in asked if item.level is Level.MUST]
    report = await examine_zenflux(server, *musts, within=PATIENCE, clears=False)
    assert {item.requirement.id for item in report.of(Outcome.FAILED)} == set().union(*PUBLISHED.values())
    assert {cause.finding.requirement.id for cause in report.causes} == set().union(*PUBLISHED.values())
    assert report.seconds < LONGEST


@pytest.mark.parametrize(
    ("method", "path", "owner"),
    [
        ("GET", "/conversations/search?q=x", "ZF-HTTP-3.2-07"),
        ("GET", "/conversations/7", "ZF-HTTP-3.2-03"),
        ("GET", "/docs/content/a/b.md", "ZF-HTTP-3.12-02"),
        ("POST", "/agents/7/mcp/one", "ZF-HTTP-3.5-12"),
        ("GET", "/agents/7/mcp/available", "ZF-HTTP-3.5-15"),
        ("GET", "/health/live", "ZF-HTTP-3.13-02"),
        ("GET", "/realtime/sessions", None),
    ],
)
def test_a_call_is_known_by_its_method_and_path(method: str, path: str, owner: str | None) -> None:
    assert owner_of(method, path) == owner


def test_what_builds_on_what_is_in_the_catalogue(zenflux: Suite) -> None:
    needed = {name for item in zenflux.catalogue.requirements for name in prerequisites(item.id)}
    assert needed <= zenflux.catalogue.ids
    assert prerequisites("ZF-MCP-06.out") == ("ZF-HTTP-3.7-08",)
    assert prerequisites("ZF-MCP-01.err") == ("ZF-HTTP-3.5-11",)


class Observer:
    """Stands in for an examination: observes each stimulus anew."""

    async def once(self, key: str, make: Callable[[Any], Awaitable[Any]]) -> Any:
        return await make(self)


@pytest.mark.parametrize(("is_broken", "owner"), [(True, "ZF-HTTP-3.5-03"), (False, None)])
async def test_a_failure_is_charged_to_what_it_builds_on(is_broken: bool, owner: str | None) -> None:
    async def shown(exam: Any) -> None:
        if is_broken:
            raise Failed("an agent", "nothing")

    async def shaped(exam: Any) -> None:
        raise Failed("an agent with a name", "nothing")

    cases = (Case("a", ("ZF-HTTP-3.5-03",), "A.", shown), Case("b", ("ZF-AG-03.out",), "B.", shaped))
    with pytest.raises(Failed) as failure:
        await guarded(cases)[1].check(Observer())
    assert failure.value.owner == owner
