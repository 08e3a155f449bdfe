"""Servers that are not as they should be: a clear failure or a lawful stream, never a hang."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

import gateway.model as m
from adapters.zenflux.client import turn_stream
from gateway.errors import BackendFailed, GatewayError, Overloaded, RateLimited, ServerUnreachable, TimedOut
from gateway.ports.remote import DecodedItem, NewRemoteSession, RemoteAsk, RemoteTurnEnd
from tests.support.connection_faults import free_port
from tests.support.dialects.zenflux.cutting_proxy import (
    API,
    SHORT,
    ScriptedConnection,
    ScriptedServer,
    remote,
    scripted_server,
)
from tests.support.dialects.zenflux.facts import facts, lawful
from tests.support.gateway_server import until

HELLO = m.SendMessage(content="hi")
KEY = "a-key-that-nobody-should-see"


async def hear(server: ScriptedServer | str, **more: Any) -> list[DecodedItem]:
    """What is heard of one turn; lawful as far as it went, whatever became of it."""
    heard: list[DecodedItem] = []
    address = server if isinstance(server, str) else server.address
    async with remote(address, SHORT, **more) as there:
        try:
            async with aclosing(there.start_turn("conversation", HELLO)) as stream:
                async for one in stream:
                    heard += [one]
        finally:
            lawful(heard)
    return heard


def saying(*frames: Callable[[ScriptedConnection], Awaitable[None]]) -> Callable[[ScriptedConnection], Awaitable[None]]:
    """A script that takes the message, says these things, and then says nothing more."""
    async def script(talking: ScriptedConnection) -> None:
        if talking.server.connections > 1:
            await talking.refuse("METHOD_NOT_FOUND", "unknown method")
            return
        await talking.accept()
        for say in frames:
            await say(talking)
        await talking.until_gone()

    return script


def event(kind: str, data: Any = None, **more: Any) -> Callable[[ScriptedConnection], Awaitable[None]]:
    return lambda talking: talking.say(kind, data, **more)


def raw(text: str | bytes) -> Callable[[ScriptedConnection], Awaitable[None]]:
    async def say(talking: ScriptedConnection) -> None:
        if isinstance(text, bytes):
            await talking.ws.send_frame(text, web.WSMsgType.TEXT)
        else:
            await talking.ws.send_str(text)

    return say


def block(kind: str, index: int = 0, **block: Any) -> Callable[[ScriptedConnection], Awaitable[None]]:
    return event("content_start", {"index": index, "content_block": {"type": kind, **block}})


END = event("session_end", {"status": "completed"})


# -- nobody there, and nobody who answers -----------------------------------------------------------------------------

async def test_a_server_that_refuses_connections() -> None:
    address = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ServerUnreachable, match="cannot be reached"):
        await hear(address)
    async with remote(address, SHORT) as there:
        for asking in (there.about(), there.open(NewRemoteSession()), there.interrupt("conversation")):
            with pytest.raises(ServerUnreachable):
                await asking


@asynccontextmanager
async def raw_server(says: bytes) -> AsyncIterator[str]:
    """Says this to whoever comes, and then nothing."""
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(says)
        while await reader.read(1000):
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 101 Switching", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"])
async def test_a_server_that_hangs_before_it_has_answered(says: bytes) -> None:
    async with raw_server(says) as address:
        with pytest.raises((TimedOut, BackendFailed)):
            await hear(address)


@pytest.mark.parametrize("says", [
    b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
    b"\x00\xff\x00\xff\r\n\r\n",
], ids=["ssh", "no accept", "garbage"])
async def test_a_server_that_speaks_something_else(says: bytes) -> None:
    async with raw_server(says) as address:
        with pytest.raises((BackendFailed, TimedOut)):
            await hear(address)


async def test_a_server_that_takes_the_message_and_hangs() -> None:
    async def script(talking: ScriptedConnection) -> None:
        await talking.hear()
        await talking.until_gone()

    async with scripted_server(script) as server:
        with pytest.raises(GatewayError, match="sent nothing for"):
            await hear(server)


async def test_a_server_that_hangs_in_the_middle() -> None:
    async with scripted_server(saying(event("message_start"), block("text", text="half"))) as server:
        with pytest.raises(BackendFailed, match="sent nothing for"):
            await hear(server)


async def test_a_server_that_lives_and_says_nothing_is_left_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(talking: ScriptedConnection) -> None:
        await talking.accept()
        while True:
            await talking.say("tick", seq=0)
            await asyncio.sleep(0.05)

    async with scripted_server(script) as server, remote(server.address, _patient(total=0.5)) as there:
        with pytest.raises(TimedOut, match=r"longer than 0\.5 seconds in all"):
            await anext(there.start_turn("conversation", HELLO))


def _patient(**less: float) -> Any:
    return type(SHORT)(**{**SHORT.__dict__, **less})


# -- refusals ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("status", "kind"), [
    (401, BackendFailed), (404, BackendFailed), (409, BackendFailed), (429, RateLimited), (500, Overloaded),
    (307, BackendFailed), (200, BackendFailed),
])
async def test_a_handshake_that_is_refused(status: int, kind: type[GatewayError]) -> None:
    led = []

    async def refuse(request: web.Request) -> web.Response:
        led.append(request.path)
        headers = {"Location": f"{API}/elsewhere"} if status == 307 else {"Retry-After": "0"}
        return web.json_response({"code": status, "message": f"not with {KEY}"}, status=status, headers=headers)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", refuse)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        with pytest.raises(kind, match=str(status)) as raised:
            await hear(address, key=KEY)
        assert KEY not in raised.value.message
        assert f"{API}/elsewhere" not in led, "a redirection is not followed"
        async with remote(address, SHORT, key=KEY) as there:
            with pytest.raises(kind) as raised:
                await there.open(NewRemoteSession())
            assert KEY not in raised.value.message
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(("code", "kind"), [
    ("VALIDATION_ERROR", BackendFailed), ("CONVERSATION_NOT_FOUND", BackendFailed), ("SESSION_BUSY", BackendFailed),
    ("OVERLOADED", Overloaded),
])
async def test_a_message_that_is_refused(code: str, kind: type[GatewayError]) -> None:
    async def script(talking: ScriptedConnection) -> None:
        await talking.refuse(code, f"not with {KEY}")

    async with scripted_server(script) as server:
        with pytest.raises(kind, match=f"refused: {code}") as raised:
            await hear(server, key=KEY)
        assert KEY not in raised.value.message


async def test_a_refusal_that_comes_after_all() -> None:
    async def late(talking: ScriptedConnection) -> None:
        await talking.ws.send_json({"type": "res", "id": talking.request["id"], "ok": False,
                                    "error": {"code": "AGENT_NOT_FOUND", "message": "nobody"}})

    async with scripted_server(saying(event("session_start"), late)) as server:
        with pytest.raises(BackendFailed, match="AGENT_NOT_FOUND: nobody"):
            await hear(server)


async def test_the_key_is_sent_and_never_told() -> None:
    fault = event("error", {"error": {"type": "internal_error", "message": f"who gave me {KEY}?"}})
    end = event("session_end", {"status": "failed"})
    async with scripted_server(saying(block("text", text=f"the key is {KEY}"), fault, end)) as server:
        heard = await hear(server, key=KEY)
        assert set(server.headers) == {f"Bearer {KEY}"}
        assert KEY not in str(heard)
        assert isinstance(heard[-1], RemoteTurnEnd)
        assert heard[-1].fault is not None


async def test_an_answer_that_makes_no_sense() -> None:
    async with scripted_server(saying()) as server, remote(server.address, SHORT) as there:
        server.replies["POST", "/conversations"] = 200, {"name": "no id"}
        with pytest.raises(BackendFailed, match="which conversation"):
            await there.open(NewRemoteSession())


# -- frames that are wrong --------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("frame", "words"), [
    (raw('{"type": "event", "payl'), "not JSON"),
    (raw("hello"), "not JSON"),
    (raw(b"\xff\xfe{}"), "not a WebSocket frame"),
    (raw("[1, 2]"), "not an object"),
    (raw('{"type": "event", "event": "message_start", "seq": 1}'), "a message_start .* 'payload' should be an object"),
    (event("content_start", {"content_block": {"type": "text"}}), r"content_start .*'payload\.data\.index' is missing"),
    (event("content_start", {"index": 0}), r"a content_start .* 'payload\.data\.content_block\.type' is missing"),
    (event("content_start", [1]), r"a content_start .* 'payload\.data' should be an object"),
    (event("content_delta", {"index": "0", "delta": "x"}), r"'payload\.data\.index' should be a whole number"),
    (event("content_delta", {"index": 0, "delta": 5}), r"'payload\.data\.delta' should be a text"),
    (block("tool_use", id="call_1"), r"a content_start .* 'payload\.data\.content_block\.name' is missing"),
], ids=["half", "words", "utf8", "list", "no payload", "no index", "no type", "data", "index", "delta", "no name"])
async def test_a_frame_that_cannot_be(frame: Any, words: str) -> None:
    async with scripted_server(saying(event("message_start"), frame, END)) as server:
        with pytest.raises(BackendFailed, match=words):
            await hear(server)


@pytest.mark.parametrize("frame", [
    raw('{"type": "hello"}'), raw('{"type": "pong", "ts": 1}'), raw('{"type": "res", "id": "nobody", "ok": false}'),
    event("tick", seq=0), event("processing_status", {"stage": "thinking"}), event("unheard_of", {"index": 4}),
    event("message_delta", {"type": "unheard_of", "content": 3}), event("content_stop", {"index": 77}),
    event("message_delta", {}), event("conversation_delta", {"title": 3}), event("content_start", {
        "index": 9, "content_block": {"type": "cloud_progress", "percent": 3}}), event("message_stop"),
    event("content_start", {"index": 5, "content_block": {"type": "tool_result", "tool_use_id": "nobody's"}}),
    event("text", run="another run"), event("session_end", {"status": "failed"}, run="another run"),
    event("session_end", {"status": "failed"}, conversation_id="another conversation"),
])
async def test_a_frame_that_says_nothing_to_us(frame: Any) -> None:
    talk = [event("session_start"), frame, event("message_start"), lambda t: t.text("one"), frame,
            lambda t: t.text("two", 1), END]
    async with scripted_server(saying(*talk)) as server:
        [turn] = facts(await hear(server))
        assert turn.words() == "onetwo"
        assert turn.ended == RemoteTurnEnd()


async def test_events_after_the_end_are_not_heard() -> None:
    async with scripted_server(saying(lambda t: t.text("one"), END, lambda t: t.text("two", 1), END)) as server:
        heard = await hear(server)
        assert isinstance(heard[-1], RemoteTurnEnd)
        assert facts(heard)[0].words() == "one"


async def test_calls_that_are_not_as_they_should_be() -> None:
    talk = [
        block("tool_use", 0, id="same", name="a"), event("content_stop", {"index": 0}),
        block("tool_use", 1, id="same", name="b", input={"x": 1}), event("content_stop", {"index": 1}),
        block("tool_use", 2, id="torn", name="c"), event("content_delta", {"index": 2, "delta": '{"x": '}),
        event("content_stop", {"index": 2}),
        block("tool_result", 3, tool_use_id="nobody's", content="x"), event("content_stop", {"index": 3}),
        block("tool_result", 4, tool_use_id="same", content="first"), event("content_stop", {"index": 4}),
        block("tool_result", 5, tool_use_id="same", content="again"), event("content_stop", {"index": 5}),
        lambda t: t.text("done", 6), END,
    ]
    async with scripted_server(saying(*talk)) as server:
        [turn] = facts(await hear(server))
        names = [said[1:] for kind, said in turn.parts if kind == "tool_use"]
        assert names == [("a", {}), ("b", {"x": 1})], "a call that never became whole is nobody's to carry out"
        assert turn.results == {"same": ("first", False)}
        assert turn.words() == "done"


# -- servers that leave out what others say ---------------------------------------------------------------------------

@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_stream, "SILENCE_SECONDS", 0.05)


async def test_a_run_may_end_with_its_message(soon: None) -> None:
    """As the published server does it: nothing is said after message_stop."""
    async with scripted_server(
        saying(event("message_start"), lambda t: t.text("all"), event("message_stop"))
    ) as server:
        server.replies["GET", "/session/run"] = 200, {"session_id": "run", "active": False}
        [turn] = facts(await hear(server))
        assert (turn.words(), turn.ended) == ("all", RemoteTurnEnd())


async def test_a_run_may_end_with_its_error(soon: None) -> None:
    fault = event("error", {"error": {"type": "overloaded_error", "message": "too much"}})
    async with scripted_server(saying(event("message_start"), fault)) as server:
        [turn] = facts(await hear(server))
        assert turn.ended is not None
        assert (turn.ended.outcome, turn.ended.stop_reason) == (m.Outcome.FAILED, m.StopReason.ERROR)
        assert turn.ended.fault is not None
        assert (turn.ended.fault.code, turn.ended.fault.retryable) == (m.FaultCode.OVERLOADED, True)


async def test_a_run_may_be_stopped_and_say_no_more(soon: None) -> None:
    async with scripted_server(saying(event("session_stopped", {"reason": "timeout"}))) as server:
        [turn] = facts(await hear(server))
        assert turn.ended == RemoteTurnEnd(outcome=m.Outcome.INTERRUPTED, stop_reason=m.StopReason.TIMEOUT)


DOCUMENTED = {"request_id": "req_1", "tool_name": "rm", "description": "Remove it?", "options": ["approve", "reject"]}


@pytest.mark.parametrize(("ask", "answer", "call"), [
    (event("message_delta", {"type": "confirmation_request", "content": DOCUMENTED}),
     m.AnswerQuestion(request_id="", selections={"0": (1,)}),
     ("POST", "/human-confirmation/run", {"response": "reject"})),
    (event("message_delta", {"type": "hitl", "content": {"status": "pending", "title": "Who?"}}),
     m.AnswerQuestion(request_id="", custom={"0": "me"}), ("POST", "/human-confirmation/run", {"response": "me"})),
    (event("long_running_confirm", {"turn": 20, "message": "Go on?"}),
     m.ContinueTurn(request_id=""), ("POST", "/session/run/confirm_continue", None)),
    (event("long_running_confirm", {"turn": 20, "message": "Go on?"}),
     m.ContinueTurn(request_id="", proceed=False), ("POST", "/session/run/stop", None)),
    (event("rollback_options", {"task_id": "t", "options": ["undo", "keep"]}),
     m.RollBack(request_id="", option="keep"), ("POST", "/session/run/rollback", {"option": "keep"})),
    (event("rollback_options", {"task_id": "t", "options": ["undo", "keep"]}),
     m.Withdraw(request_id=""), ("POST", "/session/run/stop", None)),
], ids=["documented", "hitl", "continue", "stop", "rollback", "withdraw"])
async def test_a_server_that_keeps_no_list_of_what_waits(ask: Any, answer: Any, call: Any) -> None:
    """An ask is answered at the documented place, and the stream that stayed open is heard to its end."""
    answered = asyncio.Event()

    async def wait(talking: ScriptedConnection) -> None:
        await until(lambda: call in talking.server.requests)
        answered.set()

    talk = [event("message_start"), ask, wait, lambda t: t.text("done"), END]
    async with scripted_server(saying(*talk)) as server, remote(server.address) as there:
        server.replies[call[0], call[1]] = 200, {}
        async with aclosing(there.start_turn("conversation", HELLO)) as stream:
            heard = [one async for one in stream]
        [asked] = [one for one in heard if isinstance(one, RemoteAsk)]
        async with aclosing(there.answer("conversation", [(asked, answer)])) as stream:
            heard += [one async for one in stream]
        assert answered.is_set()
        assert facts(heard)[0].words() == "done"


async def test_a_denial_is_a_plain_no_to_those_who_may_not_know_more() -> None:
    calls = [block("tool_use", id="call_1", name="rm", input={}), event("content_stop", {"index": 0})]
    ask = event("message_delta", {"type": "confirmation_request", "content": DOCUMENTED})
    async with (
        scripted_server(saying(event("message_start"), *calls, ask)) as server,
        remote(server.address, SHORT) as there,
    ):
        server.replies["POST", "/human-confirmation/req_1"] = 200, {}
        async with aclosing(there.start_turn("conversation", HELLO)) as stream:
            heard = [one async for one in stream]
        asked = heard[-1]
        assert isinstance(asked, RemoteAsk)
        assert asked.ask.kind == "permission"
        no = m.DecidePermission(request_id="", granted=False, reason="yes, but later")
        with pytest.raises(GatewayError):
            await anext(there.answer("conversation", [(asked, no)]))
        assert ("POST", "/human-confirmation/req_1", {"response": "reject"}) in server.requests


# -- the published server ---------------------------------------------------------------------------------------------

FORM = event("message_delta", {"type": "hitl", "content": {"status": "pending", "title": "Who?"}})
ME = m.AnswerQuestion(request_id="", custom={"0": "me"})
ANSWERED = ("POST", "/human-confirmation/run", {"response": "me"})


async def all_of(stream: AsyncGenerator[DecodedItem, None]) -> list[DecodedItem]:
    async with aclosing(stream):
        return [one async for one in stream]


@pytest.mark.parametrize("tells_pending", [True, False])
async def test_an_answer_that_comes_before_its_question_is_registered(tells_pending: bool) -> None:
    """The published server tells its client of a form first, and takes answers to it a moment later."""
    async def register(talking: ScriptedConnection) -> None:
        async with asyncio.timeout(60):
            while ANSWERED not in talking.server.requests:  # noqa: ASYNC110  # the server keeps what it was asked
                await asyncio.sleep(0.01)
        await asyncio.sleep(1)
        talking.server.requests.clear()
        talking.server.replies["POST", "/human-confirmation/run"] = 200, {}
        talking.server.replies["GET", "/human-confirmation/pending"] = (
            200 if tells_pending else 404, [{"request_id": "run", "session_id": "run"}])
        async with asyncio.timeout(60):
            while ANSWERED not in talking.server.requests:  # noqa: ASYNC110  # the server keeps what it was asked
                await asyncio.sleep(0.01)

    async with scripted_server(
        saying(event("message_start"), FORM, register, lambda t: t.text("hello me"), END)
    ) as server:
        server.replies["GET", "/human-confirmation/pending"] = 200 if tells_pending else 404, []
        async with remote(server.address) as there:
            [*_, asked] = await all_of(there.start_turn("conversation", HELLO))
            assert isinstance(asked, RemoteAsk)
            heard = await all_of(there.answer("conversation", [(asked, ME)]))
            assert facts(heard)[0].words() == "hello me"
            assert server.requests.count(ANSWERED) == 1, "and it is told only once what it has taken"


async def test_a_run_that_nobody_answers_is_ended_there_too() -> None:
    async with scripted_server(saying(event("message_start"), FORM)) as server, remote(server.address) as there:
        server.replies["POST", "/session/run/stop"] = 200, {}
        await all_of(there.start_turn("conversation", HELLO))
        await there.interrupt("conversation")
        asked = [request for request in server.requests if request[0] != "GET"]
        assert asked == [("POST", "/session/run/stop", None), ("DELETE", "/human-confirmation/run", None)]


async def test_a_run_that_cannot_be_taken_up_is_ended_there_too() -> None:
    async with scripted_server(saying(event("message_start"), FORM)) as server:
        async with remote(server.address) as there:
            [*_, asked] = await all_of(there.start_turn("conversation", HELLO))
            assert isinstance(asked, RemoteAsk)
        async with remote(server.address) as again:  # the gateway was started anew
            with pytest.raises(BackendFailed):
                await all_of(again.answer("conversation", [(asked, ME)]))
            await again.interrupt("conversation")
        assert ("POST", "/session/run/stop", None) in server.requests


async def test_a_server_that_does_not_end_its_runs_is_known_after_the_first() -> None:
    async def script(talking: ScriptedConnection) -> None:
        await talking.accept()
        await talking.say("message_start")
        await talking.text("all")
        await talking.say("message_stop")
        await talking.until_gone()

    async with scripted_server(script) as server, remote(server.address) as there:
        server.replies["GET", "/session/run"] = 200, {"session_id": "run", "active": False}
        assert facts(await all_of(there.start_turn("conversation", HELLO)))[0].words() == "all"
        for _ in range(3):
            async with asyncio.timeout(turn_stream.SILENCE_SECONDS / 2):
                assert facts(await all_of(there.start_turn("conversation", HELLO)))[0].words() == "all"
        server.replies["GET", "/session/run"] = 200, {"session_id": "run", "active": True}
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):  # it goes on, however quiet it is
                await all_of(there.start_turn("conversation", HELLO))
