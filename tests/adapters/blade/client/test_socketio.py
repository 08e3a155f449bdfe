"""Servers that are dead, hang, lie or refuse: each a failure in clear words, or a lawful stream; never a hang."""

import asyncio
import logging
from typing import Any

import pytest
from aiohttp import web

import gateway.model as m
from adapters.blade.client import turn_stream
from gateway.errors import (
    BackendFailed,
    ConnectionLost,
    GatewayError,
    Overloaded,
    RateLimited,
    ServerUnreachable,
    TimedOut,
)
from gateway.ports.remote import NewRemoteSession, RemoteTurnEnd, Timeouts
from tests.support.connection_faults import free_port
from tests.support.dialects.blade.facts import CheckedDecoder
from tests.support.dialects.blade.remote_conversation import HASTE, PATIENCE, remote, talk
from tests.support.dialects.blade.scripted_server import (
    OPEN,
    SESSION,
    ConnectedClient,
    Script,
    scripted_server,
    send_bytes,
    silent_server,
)
from tests.support.dialects.blade.scripted_server import refusing as refusing_server

KEY = "sk-blade-v2-very-secret"
WORDS = {"type": "text", "content": "Hello.", "text_delta": "Hello."}


async def greeted(guest: ConnectedClient) -> None:
    """Say hello, without numbers and acknowledgements, as older servers do."""
    await guest.asked("session:subscribe", "chat:send")
    await guest.say("chat:start")
    await guest.say("turn:start", turn_id="t1", role="assistant", status="streaming")
    await guest.say("turn:patch", turn_id="t1", patch_type="add_content", data=WORDS)


async def polite(guest: ConnectedClient) -> None:
    await greeted(guest)
    await guest.say("turn:end", turn_id="t1", role="assistant", status="completed")
    await guest.say("chat:end", status="completed", finish_reason="completed", result=None)
    await guest.linger()


async def hear(script: Script, patience: Timeouts = PATIENCE) -> CheckedDecoder:
    async with scripted_server(script) as served, remote(served.address, KEY, patience) as server:
        return await talk(server, SESSION, "hello")


async def fail(script: Script, kind: type[GatewayError], words: str, patience: Timeouts = PATIENCE) -> None:
    with pytest.raises(kind, match=words) as failure:
        await hear(script, patience)
    assert KEY not in failure.value.message


# -- who says little --------------------------------------------------------------------------------------------------

async def test_a_server_of_few_words_is_heard() -> None:
    ear = await hear(polite)
    assert ear.facts.messages == {"root": [[("text", "Hello.")]]}
    assert ear.facts.ends == [(m.Outcome.COMPLETED, m.StopReason.END_TURN, None, None)]


async def test_the_key_goes_where_the_dialect_wants_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with scripted_server(polite) as served, remote(served.address, KEY) as server:
        await talk(server, await server.open(NewRemoteSession()), "hello")
        [guest] = served.guests
        assert guest.auth == {"token": KEY}
        [(_, made, headers), (_, socket, bare)] = served.asked
        assert (made, socket) == ("/api/sessions", "/socket.io/")
        assert headers["Authorization"] == f"Bearer {KEY}"
        assert KEY not in str(bare), "nothing but the CONNECT packet has it"
    assert KEY not in caplog.text


async def test_pings_are_answered() -> None:
    async def pinging(guest: ConnectedClient) -> None:
        await greeted(guest)
        await guest.raw("2probe")
        assert (await guest.socket.receive()).data == "3probe"
        await guest.say("chat:end", status="completed")
        await guest.linger()

    assert (await hear(pinging)).is_over


# -- who is not there -------------------------------------------------------------------------------------------------

async def test_nobody_is_there() -> None:
    async with remote(f"http://127.0.0.1:{free_port()}", KEY, PATIENCE) as server:
        for refused in (server.open(NewRemoteSession()), server.about(), server.interrupt(SESSION)):
            with pytest.raises(ServerUnreachable, match="cannot be reached"):
                await refused
        with pytest.raises(ServerUnreachable, match="cannot be reached"):
            await talk(server, SESSION, "hello")


async def test_a_server_that_says_nothing_at_all() -> None:
    async with silent_server() as address, remote(address, KEY, HASTE) as server:
        for hanging in (server.open(NewRemoteSession()), server.interrupt(SESSION)):
            with pytest.raises(TimedOut, match=r"sent nothing for|did not answer in time"):
                await hanging
        with pytest.raises(TimedOut, match=r"sent nothing for|did not answer in time"):
            await talk(server, SESSION, "hello")


@refusing_server
async def silent(guest: ConnectedClient) -> None:
    await guest.linger()


async def deaf(guest: ConnectedClient) -> None:
    await guest.linger()


async def stuck(guest: ConnectedClient) -> None:
    await greeted(guest)
    await guest.linger()


async def only_pings(guest: ConnectedClient) -> None:
    while True:
        await guest.raw("2")
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("script", [silent, deaf, stuck, only_pings])
async def test_a_server_that_hangs(script: Script) -> None:
    await fail(script, TimedOut, r"did not answer in time|sent nothing", HASTE)


# -- who breaks the rules ---------------------------------------------------------------------------------------------

def saying(*packets: str | bytes) -> Script:
    async def script(guest: ConnectedClient) -> None:
        await greeted(guest)
        for packet in packets:
            await (send_bytes(guest, packet) if isinstance(packet, bytes) else guest.raw(packet))
        await guest.linger()

    return script


@pytest.mark.parametrize(("packet", "words"), [
    ('42["turn:patch",{"session_id":"sess_1","data"', "not JSON"),
    ('42{"turn:patch":1}', "not a list"),
    ("42[]", "without a name"),
    ("42[7,{}]", "without a name"),
    ("42", "not JSON"),
    ('42["turn:patch",[1]]', "should be an object"),
    ('42["turn:patch",null]', "should be an object"),
    ('42["chat:end","completed"]', "should be an object"),
    ('42["turn:patch",{"turn_id":"t1","patch_type":"add_content","data":"x"}]', "'data' should be an object"),
    ('42["turn:patch",{"patch_type":"add_content","data":{}}]', "without a name"),
    ('42["turn:patch",{"turn_id":"t1","patch_type":"add_tool_call","data":{}}]', "'data.id' is missing"),
    ('42["turn:end",{"turn_id":"t1","blocks":"x"}]', "'blocks' should be a list"),
    ('42["turn:end",{"turn_id":"t1","tool_calls":[1]}]', "'tool_calls.0' should be an object"),
    ('42["chat:end",{"status":"splendid"}]', "splendid"),
    ('42["chat:end",{"status":"paused"}]', "asked nothing"),
    (b"42[\"\xff\xfe\",{}]", "violates the WebSocket protocol"),
])
async def test_a_server_that_sends_nonsense(packet: str | bytes, words: str) -> None:
    await fail(saying(packet), BackendFailed, words)


async def test_what_nobody_knows_is_passed_over() -> None:
    end = '42["chat:end",{"session_id":"sess_1","status":"completed"}]'
    strange = ("hello", "", "9", "6", "4", "45-[]", '42/other,["turn:end",{}]', '42["asr:ready",7]', '4399["?"]',
               '42["turn:end",{"session_id":"another","turn_id":"t9","role":"assistant"}]')
    ear = await hear(saying(*strange, end))
    assert ear.facts.messages == {"root": [[("text", "Hello.")]]}


async def test_nothing_follows_the_end() -> None:
    end = '42["chat:end",{"session_id":"sess_1","status":"completed"}]'
    more = '42["turn:start",{"session_id":"sess_1","turn_id":"t2","role":"assistant"}]'
    ear = await hear(saying(end, more, end))
    assert isinstance(ear.said[-1], RemoteTurnEnd)
    assert len(ear.facts.ends) == 1


async def test_a_fault_without_an_end_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_stream, "END_AFTER_FAULT_SECONDS", 0.1)
    ear = await hear(saying('42["system:error",{"session_id":"sess_1","message":"It broke.","code":"rate_limited"}]'))
    [(outcome, stop, fault, _)] = ear.facts.ends
    assert (outcome, stop, fault.code, fault.message) == ("failed", "error", "rate_limited", "It broke.")


# -- who refuses ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("status", "kind"), [
    (401, BackendFailed), (404, BackendFailed), (409, BackendFailed), (429, RateLimited), (500, Overloaded),
])
async def test_a_server_that_refuses(status: int, kind: type[GatewayError]) -> None:
    async with scripted_server(polite) as served, remote(served.address, KEY) as server:
        served.answer = lambda request: web.json_response({"detail": f"no {KEY}"}, status=status)
        for refused in (server.open(NewRemoteSession()), talk(server, SESSION, "hello"), server.interrupt(SESSION)):
            with pytest.raises(kind, match=str(status)) as failure:
                await refused
            assert KEY not in failure.value.message


async def test_a_server_that_points_elsewhere_is_not_followed() -> None:
    async with (
        scripted_server(polite) as other,
        scripted_server(polite) as served,
        remote(served.address, KEY) as server,
    ):
        served.answer = lambda request: web.Response(status=307, headers={"Location": other.address + request.path_qs})
        for led in (
            server.open(NewRemoteSession()),
            talk(server, SESSION, "hello"),
            server.interrupt(SESSION),
            server.about(),
        ):
            with pytest.raises(BackendFailed, match="with a redirect"):
                await led
        assert other.asked == []


async def test_a_key_that_is_refused_is_not_repeated() -> None:
    @refusing_server
    async def strict(guest: ConnectedClient) -> None:
        await guest.raw(f'44{{"message":"{KEY} is nobody"}}')

    await fail(strict, BackendFailed, r"refused the connection: \*\*\* is nobody")


def refusing(**ack: Any) -> Script:
    async def script(guest: ConnectedClient) -> None:
        await guest.ack(await guest.asked("session:subscribe", "chat:send"), status="error", **ack)
        await guest.linger()

    return script


@pytest.mark.parametrize(("code", "kind"), [
    ("session_busy", BackendFailed), ("rate_limited", RateLimited), ("overloaded", Overloaded), (7, BackendFailed),
])
async def test_a_message_that_is_refused(code: Any, kind: type[GatewayError]) -> None:
    await fail(refusing(code=code, message=f"not now, {KEY}"), kind, r"refused: not now, \*\*\*")


async def test_what_was_told_in_confidence_does_not_come_back() -> None:
    async def gossip(guest: ConnectedClient) -> None:
        await greeted(guest)
        await guest.say("system:error", message=f"neither {KEY} nor hush-hush will do", code="access_denied")
        await guest.say("chat:end", status="failed")
        await guest.linger()

    settings = m.Settings(secrets={"token": "hush-hush"})
    async with scripted_server(gossip, refusing(message="hush-hush?")) as served, remote(served.address, KEY) as server:
        [(_, _, fault, _)] = (await talk(server, SESSION, "hello", settings=settings)).facts.ends
        assert (fault.code, fault.message) == ("forbidden", "neither *** nor *** will do")
        with pytest.raises(BackendFailed, match=r"refused: \*\*\*\?"):
            await talk(server, SESSION, "hello", settings=settings)


async def test_a_refusal_without_an_acknowledgement() -> None:
    async def script(guest: ConnectedClient) -> None:
        await guest.asked("session:subscribe", "chat:send")
        await guest.raw('42["system:error",{"message":"Access denied","code":"access_denied"}]')
        await guest.linger()

    await fail(script, BackendFailed, "refused: Access denied")


async def test_a_server_that_is_no_server_of_sessions() -> None:
    async with scripted_server(polite) as served, remote(served.address, KEY) as server:
        for body in (b"<html>", b"[]", b"{}"):
            served.answer = lambda request, body=body: web.Response(body=body)  # type: ignore[misc]
            with pytest.raises(BackendFailed, match=r"not JSON|did not say which"):
                await server.open(NewRemoteSession())


# -- lines that break -------------------------------------------------------------------------------------------------

async def hangs_up(guest: ConnectedClient) -> None:
    await greeted(guest)


async def test_without_numbers_the_turns_are_fetched() -> None:
    """What was missed is told, what was heard is not told again, and the end is the session's."""
    async with scripted_server(hangs_up, deaf) as served, remote(served.address, KEY) as server:
        served.turns = [
            {"turn_id": "t0", "sequence": 0, "role": "user", "status": "completed"},
            {"turn_id": "t1", "sequence": 1, "role": "assistant", "status": "completed",
             "blocks": [{"type": "text", "content": "Hello. And goodbye."}],
             "usage": {"input_tokens": 3, "output_tokens": 4}},
        ]
        ear = await talk(server, await server.open(NewRemoteSession()), "hello")
    assert ear.facts.messages == {"root": [[("text", "Hello. And goodbye.")]]}
    assert ear.facts.usage["root"].output_tokens == 4
    assert ear.facts.ends == [(m.Outcome.COMPLETED, m.StopReason.END_TURN, None, None)]


async def test_a_chat_that_goes_on_is_followed_further() -> None:
    async def goes_on(guest: ConnectedClient) -> None:
        more = {"type": "text", "content": "Hello. And", "text_delta": " And"}
        await guest.asked("session:subscribe")
        await guest.say("turn:patch", turn_id="t1", patch_type="add_content", data=more)
        await guest.say("chat:end", status="interrupted")
        await guest.linger()

    async with scripted_server(hangs_up, goes_on) as served, remote(served.address, KEY) as server:
        served.status = "running"
        served.turns = [
            {"turn_id": "t1", "sequence": 1, "role": "assistant", "status": "streaming",
             "blocks": [{"type": "text", "content": "Hello."}]},
        ]
        ear = await talk(server, await server.open(NewRemoteSession()), "hello")
    assert ear.facts.messages == {"root": [[("text", "Hello. And")]]}
    assert ear.facts.ends == [(m.Outcome.INTERRUPTED, m.StopReason.INTERRUPTED, None, None)]


async def test_an_answer_whose_effect_was_missed_is_fetched_with_the_turn_that_asked() -> None:
    asking = {"id": "tc_1", "tool_name": "AskUserQuestion", "arguments": '{"questions": [{"question": "Which?"}]}'}

    async def asks(guest: ConnectedClient) -> None:
        await guest.asked("session:subscribe", "chat:send")
        await guest.say("chat:start")
        await guest.say("turn:start", turn_id="t1", sequence=1, role="assistant", status="streaming")
        call = {**asking, "status": "awaiting_answer"}
        await guest.say("turn:patch", turn_id="t1", patch_type="add_tool_call", data=call)
        await guest.say("turn:end", turn_id="t1", sequence=1, role="assistant", status="paused")
        await guest.say("chat:end", status="completed")
        await guest.linger()

    async def is_cut(guest: ConnectedClient) -> None:
        await guest.asked("session:subscribe", "chat:send")
        await guest.say("chat:start")

    async with scripted_server(asks, is_cut, deaf) as served, remote(served.address, KEY) as server:
        served.turns = [
            {"turn_id": "t1", "sequence": 1, "role": "assistant", "status": "completed",
             "tool_calls": [{**asking, "status": "done", "result": "this"}]},
            {"turn_id": "t2", "sequence": 2, "role": "user", "status": "completed"},
            {"turn_id": "t3", "sequence": 3, "role": "assistant", "status": "completed",
             "blocks": [{"type": "text", "content": "Very well."}]},
        ]
        ear = await talk(server, await server.open(NewRemoteSession()), "hello")
    assert ear.facts.results == {"tc_1": ("this", False, None)}
    assert ear.facts.messages["root"][-1] == [("text", "Very well.")]


async def test_a_chat_of_which_nothing_was_heard_is_told_from_its_start() -> None:
    """Events of chats before it, which somebody else may have had, are not of it."""
    async def taken(guest: ConnectedClient) -> None:
        await guest.ack(await guest.asked("session:subscribe", "chat:send"), status="ok", chat_run_id="run_2")

    async def again(guest: ConnectedClient) -> None:
        name, body, _ = await guest.hear()
        assert (name, body["after_sequence"]) == ("session:subscribe", 0)
        told = [("chat:start", {"chat_run_id": "run_1"}), ("chat:end", {"chat_run_id": "run_1", "status": "failed"}),
                ("chat:start", {"chat_run_id": "run_2"}), ("turn:start", {"turn_id": "t1", "role": "assistant"}),
                ("chat:end", {"chat_run_id": "run_2", "status": "completed"})]
        for number, (event, facts) in enumerate(told, 1):
            await guest.say(event, stream_sequence=number, **facts)
        await guest.linger()

    async with scripted_server(taken, again) as served, remote(served.address, KEY) as server:
        ear = await talk(server, await server.open(NewRemoteSession()), "hello")
    assert [end[0] for end in ear.facts.ends] == [m.Outcome.COMPLETED]


async def test_a_chat_that_is_not_told_again_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    async def taken(guest: ConnectedClient) -> None:
        await guest.ack(await guest.asked("session:subscribe", "chat:send"), status="ok", chat_run_id="run_2")

    monkeypatch.setattr(turn_stream, "REPLAY_SECONDS", 0.1)
    async with scripted_server(taken, deaf) as served, remote(served.address, KEY) as server:
        served.turns = [{"turn_id": "t1", "sequence": 1, "role": "assistant", "status": "completed",
                         "blocks": [{"type": "text", "content": "Hello."}]}]
        ear = await talk(server, await server.open(NewRemoteSession()), "hello")
    assert ear.facts.messages == {"root": [[("text", "Hello.")]]}


async def test_events_that_were_heard_are_not_heard_again() -> None:
    async def one(guest: ConnectedClient) -> None:
        await guest.asked("session:subscribe", "chat:send")
        await guest.say("chat:start", stream_sequence=1)
        await guest.say("turn:start", stream_sequence=2, turn_id="t1", sequence=5, role="assistant")
        await guest.say("turn:patch", stream_sequence=3, turn_id="t1", patch_type="add_content", data=WORDS)

    async def other(guest: ConnectedClient) -> None:
        name, body, _ = await guest.hear()
        assert (name, body["after_sequence"]) == ("session:subscribe", 3)
        more = {"type": "text", "content": "Hello. Again.", "text_delta": " Again."}
        for number, data in ((3, WORDS), (4, more), (4, more)):
            await guest.say("turn:patch", stream_sequence=number, turn_id="t1", patch_type="add_content", data=data)
        await guest.say("chat:end", stream_sequence=5, status="completed")
        await guest.linger()

    async with scripted_server(one, other) as served, remote(served.address, KEY) as server:
        ear = await talk(server, SESSION, "hello")
    assert ear.facts.messages == {"root": [[("text", "Hello. Again.")]]}


async def test_what_may_have_been_taken_is_not_sent_twice() -> None:
    """Of a session that this client did not open it is not known how far it was."""
    async def gone(guest: ConnectedClient) -> None:
        await guest.asked("session:subscribe", "chat:send")

    async with scripted_server(gone) as served, remote(served.address, KEY) as server:
        with pytest.raises(ConnectionLost, match="broke"):
            await talk(server, SESSION, "hello")
        assert len(served.guests) == 1


async def test_what_was_not_taken_is_sent_again() -> None:
    async def gone(guest: ConnectedClient) -> None:
        await guest.asked("session:subscribe", "chat:send")

    async with scripted_server(gone, polite) as served, remote(served.address, KEY) as server:
        assert (await talk(server, await server.open(NewRemoteSession()), "hello")).is_over
        assert len(served.guests) == 2


async def test_a_line_that_never_holds_is_given_up() -> None:
    async def gone(guest: ConnectedClient) -> None:
        pass

    async with scripted_server(gone) as served, remote(served.address, KEY) as server:
        with pytest.raises(ConnectionLost, match="broke"):
            await talk(server, await server.open(NewRemoteSession()), "hello")
        assert len(served.guests) == PATIENCE.attempts


def test_the_impostor_greets_as_servers_do() -> None:
    assert OPEN.startswith("0{")
