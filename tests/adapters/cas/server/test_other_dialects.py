"""One log, two readings: what AAP's client does is seen by CAS's as it happens, and the other way round."""

import asyncio

import pytest

from tests.support.dialects.aap.client import Client as AapClient
from tests.support.dialects.cas.client import MINE, Client, confirm, result, toolset, types
from tests.support.dialects.cas.reader import kept

AAP_MINE = {"name": "mine", "description": "A tool of the client.", "parameters": MINE["input_schema"]}


@pytest.fixture
def aap(cas: Client) -> AapClient:
    return AapClient(cas.served)


async def test_a_session_made_over_aap_is_one_of_cas(cas: Client, aap: AapClient) -> None:
    session = await aap.session()
    shown = await cas.ok("GET", f"/sessions/{session}")
    assert (await cas.ok("GET", "/sessions"))["data"] == [shown]
    assert (shown["agent_id"], shown["agent"]["name"]) == ("agent_demo", "demo")
    assert (await cas.ok("GET", f"/environments/{shown['environment_id']}"))["id"] == "env_default"
    assert (await cas.new(environment=None, environment_id="env_default"))["environment_id"] == "env_default"
    assert (shown["environment_variables"], shown["resources"], shown["metadata"]) == ({}, [], {})
    told = await cas.turn(session, "hello from CAS")
    assert "You said: hello from CAS" in str(told)
    assert [message["role"] for message in await aap.history(session)] == ["user", "assistant"]


async def test_a_session_made_over_cas_is_one_of_aap(cas: Client, aap: AapClient) -> None:
    session = await cas.session(metadata={"a": "b"}, environment_variables="A=1")
    status, listed = await aap.call("GET", "/sessions")
    assert (status, [one["sessionId"] for one in listed["sessions"]]) == (200, [session])
    heard = await aap.turn(session, "hello from AAP")
    assert heard.text == "You said: hello from AAP"
    events = await cas.every(session)
    assert events[0]["content"] == [{"type": "text", "text": "hello from AAP"}]
    await cas.ok("POST", f"/sessions/{session}/archive")
    turn = {"messages": [{"role": "user", "content": "x"}]}
    assert (await aap.call("POST", f"/sessions/{session}/turns", turn))[0] == 409


async def test_a_turn_of_aap_streams_live_to_cas(cas: Client, aap: AapClient) -> None:
    session = await aap.session()
    async with cas.listening(session, "event_deltas[]=agent.message") as stream:
        turn = asyncio.create_task(aap.turn(session, "/slow 20 hello"))
        await stream.until("event_delta", times=3)
        assert not turn.done(), "CAS hears it while it is being said"
        await stream.until("session.status_idle")
        told = "".join(frame.text for frame in stream.frames if frame.type == "agent.message")
        assert (await turn).text == told
    assert kept(stream.frames) == await cas.every(session)


async def test_a_turn_of_cas_can_be_answered_over_aap(cas: Client, aap: AapClient) -> None:
    session = await cas.session(toolset(calc="ask"), MINE)
    async with cas.listening(session) as stream:
        await cas.sent(session, "/parallel")
        [*_, idle] = await stream.until("session.status_idle")
        blocked = idle.body["stop_reason"]["event_ids"]
        assert len(blocked) == 2
        asks = cas.served.gateway.table.get(session).view.asks
        calls = {ask.ask.call.name: ask.call_id for ask in asks.values()}  # type: ignore[union-attr]
        heard = await aap.turn(
            session, {"role": "tool", "toolCallId": calls["mine"], "content": "sunny"},
            {"role": "tool_permission", "toolCallId": calls["calc"], "granted": False, "reason": "no"},
        )
        assert heard.stop == "end_turn"
        told = kept(await stream.until("session.status_idle"))
    assert types(told)[:2] == ["user.custom_tool_result", "user.tool_confirmation"]
    assert {told[0]["custom_tool_use_id"], told[1]["tool_use_id"]} == set(blocked)
    assert (told[1]["result"], told[1]["deny_message"]) == ("deny", "no")
    assert (await cas.send(session, confirm(blocked[0])))[0] in (400, 409)


async def test_a_turn_of_aap_can_be_answered_over_cas(cas: Client, aap: AapClient) -> None:
    session = await aap.session(agent={"tools": [{"name": "calc"}]}, tools=[AAP_MINE])
    heard = await aap.turn(session, "/parallel")
    assert heard.stop == "tool_use"
    idle = (await cas.every(session))[-1]
    names = {event["id"]: event for event in await cas.every(session)}
    answers = [confirm(one) if names[one]["type"] == "agent.tool_use" else result(one, "rain")
               for one in idle["stop_reason"]["event_ids"]]
    after = await cas.turn(session, *answers)
    assert after[-1]["stop_reason"] == {"type": "end_turn"}
    roles = [message["role"] for message in await aap.history(session)]
    assert roles.count("tool") == 2


@pytest.mark.parametrize("words", ["/ask", "/continue", "/rollback", "/fork-ask"])
async def test_whatever_is_asked_over_aap_can_be_settled_over_cas(cas: Client, aap: AapClient, words: str) -> None:
    session = await aap.session()
    assert (await aap.turn(session, words)).stop == "tool_use"
    events = await cas.every(session)
    [event_id] = events[-1]["stop_reason"]["event_ids"]
    [asked] = [event for event in events if event["id"] == event_id]
    answer = confirm(event_id) if asked["type"] == "agent.tool_use" else result(event_id, "Red")
    assert (await cas.turn(session, answer))[-1]["stop_reason"] == {"type": "end_turn"}
