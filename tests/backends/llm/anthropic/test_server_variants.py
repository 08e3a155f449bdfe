"""Servers that speak the Messages API after their own fashion; what a client is told is the same."""

import pytest

import gateway.model as m
from gateway.errors import BackendFailed
from tests.backends.llm.anthropic.test_decoder import Read
from tests.support.backends.messages_api import PING, begins, end, ends, event, start, text, tool
from tests.support.backends.model_services import talked
from tests.support.client.byte_server import stream

TOLD = start() + b"".join(text(0, "Good ", "day.")) + end(output_tokens=7)
COST = m.Usage(input_tokens=10, output_tokens=7)


@pytest.mark.parametrize(("told", "usage"), [
    (TOLD + b"data: [DONE]\n\n", COST),
    (TOLD.partition(b"event: message_stop")[0] + b"data: [DONE]\n\n", COST),
    (TOLD.replace(b"\n", b"\r\n"), COST),
    (b": ping\n\ndata:\n\n" + PING + TOLD.replace(b"event: content_block_stop", b"data:\n\nevent: content_block_stop"),
     COST),
    (b"\n".join(line for line in TOLD.split(b"\n") if not line.startswith(b"event:")), COST),
    (event("message_start", message={"id": "m", "role": "assistant", "content": []}) + TOLD.partition(b"\n\n")[2],
     m.Usage(output_tokens=7)),
    (start(input_tokens=0) + b"".join(text(0, "Good ", "day.")) + end(output_tokens=7, input_tokens=10), COST),
    (start() + b"".join(text(0, "Good ", "day.")[:-1]) + end(output_tokens=7), COST),
    (start() + b"".join(text(0, "Good ", "day.")[1:]) + end(output_tokens=7), COST),
], ids=["an end as elsewhere", "an end as elsewhere alone", "other lines", "events without words", "no names",
        "no cost at first", "all the cost at last", "a block that is not ended", "a block that is not begun"])
async def test_words_are_heard_whoever_says_them(told: bytes, usage: m.Usage) -> None:
    read = Read(told)
    assert (read.blocks, read.reading.usage, read.reading.stop) == (
        [("text", "Good day.")], usage, m.StopReason.END_TURN)
    turn, server = await talked("anthropic", [stream(told)])
    assert (turn.text, turn.stops, len(server.asked)) == ("Good day.", [m.StopReason.END_TURN], 1)


def test_calls_are_heard_though_the_reason_says_otherwise() -> None:
    read = Read(start() + b"".join(tool(0, "a", "look", '{"n": 1}')) + end("end_turn"))
    assert (read.blocks, read.reading.has_calls) == ([("tool_use", {"n": 1})], True)


def test_a_call_without_an_id_is_given_one() -> None:
    read = Read(start() + begins(0, type="tool_use", name="look", input={}) + ends(0) + end("tool_use"))
    assert [bool(call.call_id) for call in read.assembler.writer.calls] == [True]


@pytest.mark.parametrize(("told", "words"), [
    (start() + b"".join(text(0, "So")), "ended before it was whole"), (start(), "ended before it was whole"),
    (PING, "ended before it was whole"), (start() + b"data: [DONE]\n\n", "cannot be read"),
])
async def test_an_answer_without_an_end_is_none(told: bytes, words: str) -> None:
    with pytest.raises(BackendFailed, match=words):
        await talked("anthropic", [stream(told)])
