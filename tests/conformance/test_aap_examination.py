"""What a case is given: agents, sessions, and a clean place afterwards."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from conformance.aap.examination import AapExamination, enabled
from conformance.aap.profile import AapProfile, Options
from conformance.faults.aap.server import AapServer
from conformance.faults.local_server import served
from conformance.kit.expect import Failed, NotTestable
from conformance.kit.suite import Suite, Target
from conformance.kit.transcript import Transcript


@pytest.fixture
def server() -> AapServer:
    return AapServer()


@pytest.fixture
async def exam(aap: Suite, server: AapServer) -> AsyncIterator[AapExamination]:
    async with (
        served(server) as url,
        aap.examination(Target(url, None, 1.0), aap.read_profile(), Transcript()) as examination,
    ):
        yield examination


async def test_the_first_agent_is_examined_unless_another_is_named(exam: AapExamination) -> None:
    assert (await exam.agent()).name == "able"
    exam.profile = AapProfile(agent="plain")
    assert (await exam.agent()).name == "plain"
    exam.profile = AapProfile(agent="nobody")
    with pytest.raises(NotTestable, match="no agent named 'nobody'"):
        await exam.agent()


async def test_a_session_is_talked_in(exam: AapExamination) -> None:
    talk = await exam.open(tools={"calc": True})
    turn = await talk.say("Hello", "message")
    assert turn.exchange.said == (("text", "You said: Hello"),)
    assert [message["role"] for message in await talk.history()] == ["user", "assistant"]
    assert (await talk.info())["agent"]["tools"] == [{"name": "calc", "trust": True}]
    assert (await talk.attempt({"messages": []})).status == 400


async def test_what_the_agent_does_not_declare_cannot_be_opened(exam: AapExamination) -> None:
    plain = (await exam.agents())[1]
    with pytest.raises(NotTestable, match="does not declare the tool 'clock'"):
        await exam.open(agent=plain, tools={"clock": True})
    with pytest.raises(NotTestable, match=r"does not declare application\.tools"):
        await exam.open(agent=plain, client_tools=[exam.profile.client_spec])


async def test_a_refused_session_is_blamed_on_what_was_asked_for(exam: AapExamination) -> None:
    wrong: dict[str, Any] = {"agent_config": {"options": {"no": "such"}}}
    with pytest.raises(Failed, match="to be answered with 201") as failure:
        await exam.open(**wrong)
    assert failure.value.owner == "AAP-SESS-04"


async def test_where_several_things_were_asked_for_nobody_knows(exam: AapExamination) -> None:
    wrong: dict[str, Any] = {"agent_config": {"options": {"no": "such"}}, "messages": [{"role": "user", "content": ""}]}
    with pytest.raises(NotTestable, match="could not prepare a session"):
        await exam.open(**wrong)


async def test_sessions_are_cleared_away(aap: Suite, server: AapServer) -> None:
    async with served(server) as url:
        async with aap.examination(Target(url, None, 1.0), aap.read_profile(), Transcript()) as exam:
            for _ in range(3):
                await exam.open()
            assert len(server.state.sessions) == 3
        assert server.state.sessions == {}


async def test_values_come_from_the_profile_or_differ_from_the_default(exam: AapExamination) -> None:
    text, select = {"type": "text", "name": "tone", "default": "x"}, {"type": "select", "name": "l", "default": "a"}
    assert exam.value(text) != exam.value(text)
    assert exam.value(select | {"options": ["a", "b"]}) == "b"
    assert exam.value(select | {"options": ["a"]}) == "a"
    exam.profile = AapProfile(options=Options(values={"tone": "kind"}))
    assert exam.value(text) == "kind"


def test_trust_is_only_said_where_it_is_given() -> None:
    assert enabled({"a": True, "b": False}) == [{"name": "a", "trust": True}, {"name": "b"}]
