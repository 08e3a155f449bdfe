"""Turns: read from streams and from bodies, with the questions the cases ask of them."""

from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from conformance.aap.examination import SCHEMAS
from conformance.aap.turn import Turn, TurnReader
from conformance.kit.departures import Departures
from conformance.kit.expect import Failed, NotTestable
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
                return await TurnReader(SCHEMAS, client.departures).streamed(stream, "delta")

        run.departures = client.departures  # type: ignore[attr-defined]
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
    ("raw", "owner", "words"),
    [
        (frames(("text_delta", "oops")), "AAP-SSE-02", "the data of the event `text_delta` to be JSON"),
        (frames(("text_delta", "[]")), "AAP-SSE-02", "an object"),
        (frames(("text_delta", '{"text": "a"}')), "AAP-SSE-02", "to fit the schema `event.text_delta`"),
        (frames(("tool_call", '{"toolCallId": "c", "name": "x", "input": "{}"}')), "AAP-SSE-04", "`event.tool_call`"),
    ],
)
async def test_an_event_that_is_wrong_is_noted_and_keeps_the_turn_from_being_read(
    read: Read, raw: bytes, owner: str, words: str
) -> None:
    turn = await read(raw + frames(("turn_stop", '{"stopReason": "end_turn"}')))
    assert turn.stop == "end_turn"
    assert [item.owner for item in read.departures.noted] == [owner]  # type: ignore[attr-defined]
    with pytest.raises(Failed, match=words) as failure:
        _ = turn.exchange
    assert failure.value.owner == owner


async def test_a_reason_that_is_none_is_noted_and_the_turn_can_be_read(read: Read) -> None:
    turn = await read(frames(("text_delta", '{"delta": "a"}'), ("turn_stop", '{"stopReason": "bored"}')))
    assert turn.exchange.said == (("text", "a"),)
    with pytest.raises(Failed, match="the stop reason") as failure:
        _ = turn.stop
    assert failure.value.owner == "AAP-SSE-06"


async def test_what_calls_itself_something_else_is_noted_and_read_as_a_stream(read: Read) -> None:
    turn = await read(frames(("turn_stop", '{"stopReason": "refusal"}')), "text/plain")
    assert turn.stop == "refusal"
    (noted,) = read.departures.noted  # type: ignore[attr-defined]
    assert (noted.owner, noted.seen) == ("AAP-SSE-01", "text/plain")


async def test_what_follows_the_stop_is_no_part_of_the_turn(read: Read) -> None:
    late = ("tool_result", '{"toolCallId": "late", "content": "x"}')
    turn = await read(frames(("turn_stop", '{"stopReason": "end_turn"}'), late))
    assert turn.names == ["turn_stop", "tool_result"]
    assert turn.exchange.results == {}


async def test_a_stream_without_a_stop_has_no_reason(read: Read) -> None:
    turn = await read(frames(("turn_start", "{}"), ("text_delta", '{"delta": "a"}'), ("text_delta", '{"delta": "b"}')))
    with pytest.raises(Failed, match=r'to end with turn_stop; seen: \["turn_start","text_delta"\]') as failure:
        _ = turn.stop
    assert failure.value.owner == "AAP-SSE-01"
    assert [item.owner for item in read.departures.noted] == ["AAP-SSE-01"]  # type: ignore[attr-defined]


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
    for attempt, words, owner in (
        (lambda: turn.stopped("end_turn"), "to stop with end_turn", "AAP-SSE-07"),
        (lambda: turn.stopped("refusal", owner="AAP-SSE-06"), "to stop with refusal", "AAP-SSE-06"),
        (turn.spoke, "let the agent say something", "AAP-TURN-01"),
        (lambda: turn.call("clock", "AAP-SESS-03"), "call the tool `clock`, as the profile promises", "AAP-SESS-03"),
    ):
        with pytest.raises(Failed, match=words) as failure:
            attempt()
        assert failure.value.owner == owner
    with pytest.raises(NotTestable, match="call the tool `clock`"):
        turn.call("clock")


def test_a_turn_that_fails_says_nothing_of_other_reasons() -> None:
    with pytest.raises(NotTestable, match="failed, though the profile promises"):
        body(stopReason="error").stopped("end_turn")


def whole(raw: bytes, status: int = 200, due: str = "AAP-TURN-01") -> tuple[Turn, list[str]]:
    departures = Departures()
    reply = Reply("POST /turns", status, {"Content-Type": "application/json"}, raw)
    return TurnReader(SCHEMAS, departures).whole(reply, due), [item.owner for item in departures.noted]


def test_a_whole_turn_departs_from_who_owns_its_parts() -> None:
    assert whole(b'{"stopReason": "refusal", "messages": []}')[0].stop == "refusal"
    assert whole(b"{}")[1] == ["AAP-NONE-01"]
    assert whole(b'{"stopReason": "bored", "messages": []}')[1] == ["AAP-SSE-06"]
    strange = b'{"stopReason": "end_turn", "messages": [{"role": "assistant", "content": [{"type": "poem"}]}]}'
    assert whole(strange)[1] == ["AAP-TOOL-05"]


@pytest.mark.parametrize(
    ("status", "due", "owner"),
    [
        (500, "AAP-TURN-01", "AAP-TURN-01"),
        (400, "AAP-TOOL-02", "AAP-TOOL-02"),
        (409, "AAP-TOOL-02", "AAP-TURN-04"),
    ],
)
def test_a_turn_that_is_not_taken_is_blamed_on_who_promises_it(status: int, due: str, owner: str) -> None:
    with pytest.raises(Failed, match=f"answered with 200; seen: {status}") as failure:
        whole(b"", status, due)
    assert failure.value.owner == owner


def test_a_body_that_is_not_json_cannot_be_read() -> None:
    with pytest.raises(Failed) as failure:
        whole(b"nope")
    assert failure.value.owner == "AAP-NONE-01"
