"""Upstreams that refuse, hang, lie and babble: whoever asks them, the turn fails with the right fault, or goes on."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import structlog
import trustme

import gateway.model as m
from gateway.backends.kinds import BackendContext, kind_of
from gateway.errors import BackendFailed, GatewayError, TimedOut
from gateway.ports import Backend
from tests.support.backends import agui_server as agui_driving
from tests.support.backends import messages_api as fake_messages
from tests.support.backends import model_services as fake
from tests.support.backends.agui_server import encoded
from tests.support.backends.turn_driver import play
from tests.support.client.byte_server import Answer, Server, hangs, head, raw, serving, stream
from tests.support.client.byte_server import chunk as packet
from tests.support.client.byte_server import says as answers_with


class Upstream(NamedTuple):
    """How a service of one kind says things; a whole answer is the beginning, words and calls, and the end."""

    begin: bytes
    word: Callable[[str], bytes]
    call: Callable[[int, str, str], bytes]
    """The number of a call, its id, and its arguments."""
    end: Callable[[str], bytes]
    settings: dict[str, Any]


def _message(number: int, *pieces: str) -> bytes:
    return b"".join(fake_messages.text(number, *pieces))


UPSTREAMS = {
    "openai": Upstream(
        begin=fake.chunk({"role": "assistant", "content": ""}), word=lambda text: fake.chunk({"content": text}),
        call=lambda number, id, arguments: fake.chunk(fake.call(number, id, "look", arguments)),
        end=lambda reason: fake.chunk(finish=reason or "stop") + fake.DONE, settings={"model": "m", "attempts": 1}),
    "anthropic": Upstream(
        begin=fake_messages.start(), word=lambda text: _message(9, text),
        call=lambda number, id, arguments: b"".join(fake_messages.tool(number, id, "look", arguments)),
        end=lambda reason: fake_messages.end(reason or "end_turn"), settings={"model": "m", "attempts": 1}),
    "agui": Upstream(
        begin=encoded(agui_driving.START), word=lambda text: encoded(*agui_driving.text(text)),
        call=lambda number, id, arguments: encoded(*agui_driving.call(id, "look", *filter(None, [arguments]))),
        end=lambda reason: encoded(agui_driving.END if not reason else f'data: {{"type": "RUN_FINISHED", "threadId": '
                                   f'"t", "runId": "r", "outcome": {{"type": "{reason}"}}}}\n\n'),
        settings={"attempts": 1}),
}


@pytest.fixture(params=UPSTREAMS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def backend(kind: str, url: str, **settings: Any) -> AsyncIterator[Backend]:
    given = {"url": url, **UPSTREAMS[kind].settings, "first_byte_seconds": 20, "idle_seconds": 20, **settings}
    made = kind_of(kind, Path()).make(given, BackendContext(Path())).backend
    try:
        yield made
    finally:
        await made.close()


async def talked(kind: str, *answers: Answer, **settings: Any) -> agui_driving.Turn:
    async with serving(*answers) as server, backend(kind, server.url, **settings) as made:
        async with asyncio.timeout(30):
            turn = agui_driving.Turn("Hi")
            await play(made, turn)
            return turn


async def failed(kind: str, url: str, **settings: Any) -> tuple[GatewayError, str]:
    """Why the turn failed, and what was said before."""
    turn = agui_driving.Turn("Hi")
    async with backend(kind, url, **settings) as made:
        with pytest.raises(GatewayError) as caught:
            async with asyncio.timeout(30):
                await play(made, turn)
    return caught.value, "".join(event.delta for event in turn.all(m.BlockDelta))


async def failing(kind: str, answer: Answer, **settings: Any) -> tuple[GatewayError, str]:
    async with serving(answer) as server:
        return await failed(kind, server.url, **settings)


# -- nobody, or somebody else -----------------------------------------------------------------------------------------

async def test_nobody_is_there(kind: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        error, _ = await failed(kind, f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert "cannot be reached" in error.message
    assert (error.fault.code, error.fault.retryable) == (m.FaultCode.BACKEND, True)


async def test_a_redirect_to_another_host_is_not_followed(kind: str) -> None:
    async with serving(stream(UPSTREAMS[kind].begin, UPSTREAMS[kind].end(""))) as other:
        error, _ = await failing(kind, answers_with(b"", 307, Location=other.url))
        assert (other.asked, other.connections) == ([], 0)
    assert "with a redirect, which is not followed" in error.message
    assert error.fault.code is m.FaultCode.BACKEND


async def test_a_certificate_that_does_not_verify(kind: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    async with serving(stream(UPSTREAMS[kind].begin, UPSTREAMS[kind].end("")), tls=context) as server:
        error, _ = await failed(kind, server.url)
        assert server.asked == []
    assert "its certificate does not verify" in error.message
    assert (error.fault.code, error.fault.retryable) == (m.FaultCode.BACKEND, False)


# -- silence ----------------------------------------------------------------------------------------------------------

async def test_one_that_hangs_before_its_first_byte(kind: str) -> None:
    error, _ = await failing(kind, hangs(Server()), first_byte_seconds=0.1)
    assert type(error) is TimedOut and error.fault.code is m.FaultCode.TIMEOUT


async def test_one_that_hangs_in_the_middle(kind: str) -> None:
    spoken = packet(UPSTREAMS[kind].begin + UPSTREAMS[kind].word("So far"))
    error, words = await failing(kind, hangs(Server(), head(), spoken), idle_seconds=0.1)
    assert type(error) is TimedOut and error.fault.code is m.FaultCode.TIMEOUT
    assert words == "So far"


async def test_one_that_hangs_up_in_the_middle(kind: str) -> None:
    spoken = packet(UPSTREAMS[kind].begin + UPSTREAMS[kind].word("So far"))
    error, _ = await failing(kind, raw(head(), spoken))
    assert "broke" in error.message
    assert (error.fault.code, error.fault.retryable) == (m.FaultCode.BACKEND, True)


async def test_one_that_ends_without_an_end(kind: str) -> None:
    error, words = await failing(kind, stream(UPSTREAMS[kind].begin, UPSTREAMS[kind].word("So far")))
    assert isinstance(error, BackendFailed) and words == "So far"
    assert "ended before it was whole" in error.message or "stopped without finishing" in error.message


# -- nonsense ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("nonsense", "words"), [
    (b'data: {"type": "text", "choices": [{"del\n\n', "cannot be read"), (b"data: nonsense\n\n", "cannot be read"),
    (b"data: []\n\n", "cannot be read"), (b"data: 7\n\n", "cannot be read"),
    (b"data: " + b"[" * 100_000 + b"\n\n", "cannot be read"),
    (b'data: {"type": "x", "text": "\xc3\x28"}\n\n', "not UTF-8"), (b"\xff\xfe\n\n", "not UTF-8"),
], ids=["half a JSON", "no JSON", "a list", "a number", "a deep one", "no UTF-8", "no UTF-8 at all"])
async def test_what_cannot_be_read(kind: str, nonsense: bytes, words: str) -> None:
    answer = stream(UPSTREAMS[kind].begin + UPSTREAMS[kind].word("So far"), nonsense, UPSTREAMS[kind].end(""))
    error, _ = await failing(kind, answer)
    assert words in error.message
    assert (error.fault.code, error.fault.retryable) == (m.FaultCode.BACKEND, False)


async def test_a_line_of_a_hundred_megabytes(kind: str) -> None:
    sent = 0

    async def answer(writer: asyncio.StreamWriter, asked: Any) -> None:
        nonlocal sent
        writer.write(head() + packet(UPSTREAMS[kind].begin + b"data: "))
        for _ in range(100):
            writer.write(packet(b"x" * 1_000_000))
            await writer.drain()
            sent += 1

    error, _ = await failing(kind, answer)
    assert "an event of more than" in error.message and error.fault.code is m.FaultCode.BACKEND
    assert sent < 100, "nobody listens to the end"


async def test_a_page_in_the_place_of_a_stream(kind: str) -> None:
    error, _ = await failing(kind, answers_with(b"<html>Welcome!</html>", kind="text/html"))
    assert "answered with text/html, not with a stream of events" in error.message


# -- what is odd, and no reason to fail -------------------------------------------------------------------------------

async def test_events_after_the_end_are_nothing(kind: str) -> None:
    told = UPSTREAMS[kind]
    whole = told.begin + told.word("All.") + told.end("")
    turn = await talked(kind, stream(whole + told.begin + told.word("More!") + b"data: nonsense\n\n" + told.end("")))
    assert (turn.text, turn.stops) == ("All.", [m.StopReason.END_TURN])


async def test_a_reason_nobody_knows_is_an_end_and_a_line_in_the_journal(kind: str) -> None:
    told = UPSTREAMS[kind]
    with structlog.testing.capture_logs() as lines:
        turn = await talked(kind, stream(told.begin + told.word("All.") + told.end("moonrise")))
    assert (turn.text, turn.stops) == ("All.", [m.StopReason.END_TURN])
    assert [line["reason"] for line in lines if "unknown" in line["event"]] == ["moonrise"]


async def test_characters_that_were_cut_in_two_are_signs(kind: str) -> None:
    told = UPSTREAMS[kind]
    words = told.word("Hi HALF").replace(b"HALF", rb"\ud83d") + told.word("HALF!").replace(b"HALF", rb"\ude00")
    turn = await talked(kind, stream(told.begin + words + told.end("")))
    assert turn.text == "Hi \ufffd\ufffd!"


CALLING = {"openai": "tool_calls", "anthropic": "tool_use", "agui": ""}


def made(turn: agui_driving.Turn) -> list[Any]:
    return [event for event in turn.all(m.BlockEnded) if event.call is not None]


async def calling(kind: str, *calls: tuple[int, str, str]) -> agui_driving.Turn:
    """A turn in which these calls are made, of a tool that nobody has, and then a word is said."""
    told = UPSTREAMS[kind]
    first = told.begin + b"".join(told.call(*call) for call in calls) + told.end(CALLING[kind])
    return await talked(kind, stream(first), stream(told.begin + told.word("Well.") + told.end("")))


async def test_a_call_without_arguments(kind: str) -> None:
    turn = await calling(kind, (0, "a", ""))
    assert [(event.call.input, event.torn) for event in made(turn)] == [({}, False)]


async def test_two_calls_with_one_id(kind: str) -> None:
    turn = await calling(kind, (0, "a", '{"n": 1}'), (1, "a", '{"n": 2}'))
    assert [event.call.input for event in made(turn)] == [{"n": 1}, {"n": 2}]
    assert len({event.call.call_id for event in made(turn)}) == len(turn.results) == 2


@pytest.mark.parametrize("arguments", ['{"half": ', "words", "[1]", '"text"', "7"])
async def test_arguments_that_are_no_json_object_are_torn_and_not_carried_out(kind: str, arguments: str) -> None:
    turn = await calling(kind, (0, "a", arguments))
    assert [event.torn for event in made(turn)] == [True]
    assert turn.results == [], "nobody carries it out"
