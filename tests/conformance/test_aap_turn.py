"""Turns: read from streams and from bodies, with the questions the cases ask of them."""

from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from conformance.aap.examination import SCHEMAS
from conformance.aap.turn import Turn, streamed_turn, whole_turn
from conformance.kit.expect import Failed
from conformance.kit.http import HttpClient, Reply
from conformance.kit.transcript import Transcript

CALL = {"toolCallId": "c1", "name": "calc", "input": {}}
Read = Callable[..., Awaitable[Turn]]


@pytest.fixture
async def read() -> AsyncIterator[Read]:
    """Serve some bytes as an event stream and read them as a turn."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": request.query.get("as", "text/event-stream")})
        await response.prepare(request)
        await response.write(bytes.fromhex(request.query["raw"]))
        return response

    app = web.Application()
    app.router.add_get("/", answer)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        client = HttpClient(session, str(server.make_url("")).rstrip("/"), Transcript(), timeout=1)

        async def run(raw: bytes, kind: str = "text/event-stream") -> Turn:
            async with client.stream("GET", "/", query={"raw": raw.hex(), "as": kind}) as stream:
                return await streamed_turn(stream, "delta", SCHEMAS)

        yield run


def frames(*pairs: tuple[str, str]) -> bytes:
    return "".join(f"event: {name}\ndata: {body}\n\n" for name, body in pairs).encode()


async def test_a_stream_is_read_past_its_stop(read: Read) -> None:
    stop = ("turn_stop", '{"stopReason": "end_turn"}')
    turn = await read(frames(("turn_start", "{}"), ("text_delta", '{"delta": "a"}'), stop, stop))
    assert [name for name, _ in turn.events] == ["turn_start", "text_delta", "turn_stop", "turn_stop"]
    assert turn.stop == "end_turn"
    assert turn.exchange.said == (("text", "a"),)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (frames(("text_delta", "oops")), "the data of the event `text_delta` to be JSON"),
        (frames(("text_delta", "[]")), "to be an object"),
        (frames(("text_delta", '{"text": "a"}')), "to fit the schema `event.text_delta`"),
        (frames(("turn_stop", '{"stopReason": "bored"}')), "to fit the schema `event.turn_stop`"),
        (frames(("tool_call", '{"toolCallId": "c", "name": "x", "input": "{}"}')), "`event.tool_call`"),
    ],
)
async def test_an_event_that_is_wrong_is_a_failure(read: Read, raw: bytes, words: str) -> None:
    with pytest.raises(Failed, match=words):
        await read(raw)


async def test_what_is_no_event_stream_is_a_failure(read: Read) -> None:
    with pytest.raises(Failed, match="to be answered with 200 text/event-stream; seen: text/plain 200 hello"):
        await read(b"hello", "text/plain")


async def test_a_stream_without_a_stop_has_no_reason(read: Read) -> None:
    turn = await read(frames(("turn_start", "{}"), ("text_delta", '{"delta": "a"}'), ("text_delta", '{"delta": "b"}')))
    with pytest.raises(Failed, match=r'to end with turn_stop; seen: \["turn_start","text_delta"\]'):
        _ = turn.stop


def body(**members: object) -> Turn:
    return Turn("none", "POST /turns", body={"stopReason": "tool_use", "messages": [], **members})


def test_calls_without_a_result_are_open() -> None:
    calls = [{"type": "tool_use", **CALL}, {"type": "tool_use", **CALL, "toolCallId": "c2"}]
    result = {"role": "tool", "toolCallId": "c1", "content": "2"}
    turn = body(messages=[{"role": "assistant", "content": calls}, result])
    assert [call["toolCallId"] for call in turn.calls] == ["c1", "c2"]
    assert [call["toolCallId"] for call in turn.open_calls] == ["c2"]
    assert turn.call("calc") == CALL


def test_what_is_expected_of_a_turn_is_said() -> None:
    turn = body()
    assert turn.stopped("tool_use", "error") is turn
    for attempt, words in (
        (lambda: turn.stopped("end_turn"), "to stop with end_turn"),
        (turn.spoke, "let the agent say something"),
        (lambda: turn.call("clock"), "call the tool `clock`, as the profile promises"),
    ):
        with pytest.raises(Failed, match=words):
            attempt()


def test_a_whole_turn_must_fit_its_schema() -> None:
    def reply(raw: bytes, status: int = 200) -> Reply:
        return Reply("POST /turns", status, {}, raw)

    assert whole_turn(reply(b'{"stopReason": "refusal", "messages": []}'), SCHEMAS).stop == "refusal"
    for raw in (b"{}", b'{"stopReason": "end_turn", "messages": [{"role": "user", "content": ""}]}', b"nope"):
        with pytest.raises(Failed):
            whole_turn(reply(raw), SCHEMAS)
    with pytest.raises(Failed, match="answered with 200; seen: 500"):
        whole_turn(reply(b"", 500), SCHEMAS)
