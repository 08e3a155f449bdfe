"""What a CAS case is given: an agent, an environment, sessions to talk in, and a clean place afterwards."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from conformance.cas.conversation import check_event
from conformance.cas.examination import CasExamination
from conformance.cas.profile import CasProfile
from conformance.faults.cas.server import CasServer
from conformance.faults.local_server import served
from conformance.faults.refusal import Refusal
from conformance.faults.steps import variant
from conformance.kit.expect import Failed, NotTestable
from conformance.kit.suite import Suite, Target
from conformance.kit.transcript import Transcript


@pytest.fixture
def server() -> CasServer:
    return CasServer()


@pytest.fixture
async def exam(cas: Suite, server: CasServer) -> AsyncIterator[CasExamination]:
    async with (
        served(server) as url,
        cas.examination(Target(url, None, 1.0), cas.read_profile(), Transcript()) as examination,
    ):
        yield examination


async def test_agent_and_environment_are_made_once(exam: CasExamination, server: CasServer) -> None:
    for _ in range(2):
        await exam.open()
    assert len(server.state.agents) == len(server.state.things["environments"]) == 1
    assert len(server.state.sessions) == 2


async def test_a_session_is_talked_in(exam: CasExamination) -> None:
    talk = await exam.open()
    run = await talk.say("Hello")
    assert (run.text, run.stop) == ("You said: Hello", "end_turn")
    assert [event["id"] for event in await talk.events()] == [event["id"] for event in run.events]
    assert (await talk.info())["status"] == "idle"
    assert (await talk.attempt({"events": []})).status == 400


async def test_a_refused_session_is_blamed_on_who_promises_it(exam: CasExamination) -> None:
    with pytest.raises(Failed, match="to be answered with 201") as failure:
        await exam.open(agent="agent_nobody")
    assert failure.value.owner == "CAS-SESS-04"


async def test_a_session_with_more_that_is_refused_is_not_testable_unless_it_is_what_is_examined(
    exam: CasExamination,
) -> None:
    with pytest.raises(NotTestable, match="could not prepare a session"):
        await exam.open(agent="agent_nobody", title="More")
    with pytest.raises(Failed, match="to be answered with 201") as failure:
        await exam.admit(agent="agent_nobody", title="More")
    assert failure.value.owner is None


async def test_what_does_not_fit_is_noted_under_who_owns_it(exam: CasExamination) -> None:
    told = {"type": "session.status_idle", "id": "evt_1", "session_id": "sess_1", "created_at": "2026-01-01T00:00:00Z"}
    check_event(exam, {**told, "processed_at": None, "status": "idle"}, "an event")
    check_event(exam, {**told, "type": "agent.thinking", "thinking": "x", "id": "other"}, "an event")
    assert [item.owner for item in exam.http.departures.noted] == ["CAS-EV-13", "CAS-EV-01", "CAS-GEN-06"]


async def test_a_stream_that_should_be_refused_does_not_make_us_wait(exam: CasExamination) -> None:
    talk = await exam.open()
    with pytest.raises(Failed, match="not to open a stream"):
        await exam.ask("GET", f"{talk.path}/events/stream")


async def test_a_model_can_be_named(exam: CasExamination) -> None:
    assert await exam.model() == "reference"
    exam.profile = CasProfile(model="mine")
    assert await exam.model() == "mine"


async def test_everything_is_cleared_away(cas: Suite, server: CasServer) -> None:
    async with served(server) as url:
        async with cas.examination(Target(url, None, 1.0), cas.read_profile(), Transcript()) as exam:
            await exam.open(resources=[{"file_id": (await exam.new_file())["id"]}])
            assert not server.is_clean
        assert server.is_clean


async def test_what_cannot_be_deleted_is_archived(cas: Suite) -> None:
    class Stubborn:
        async def delete_agent(self, step: object, request: web.Request) -> web.StreamResponse:
            raise Refusal(409, "It is needed.")

    server = variant(CasServer, Stubborn)()
    async with served(server) as url:
        async with cas.examination(Target(url, None, 1.0), cas.read_profile(), Transcript()) as exam:
            await exam.open()
        (agent,) = server.state.agents.values()
    assert agent[-1]["archived_at"] is not None
