"""Servers in the field do not all keep to the documents; what a client is told is the same."""

from typing import Any

import orjson
import pytest

import gateway.model as m
from gateway.errors import BackendFailed, GatewayError, Overloaded, RateLimited, TimedOut
from tests.backends.llm.openai.test_decoder import Read
from tests.support.backends.chat_completions_variants import CALLS, STOP, WORDS, StreamCase, lean
from tests.support.backends.model_services import DONE, KEY, backend_at, call, chunk, made, says, talked, turn_of
from tests.support.client.byte_server import Answer, serving, stream
from tests.support.client.byte_server import says as answers_with


def heard(tale: StreamCase) -> None:
    read = Read(tale.stream)
    blocks = [(kind, text) for kind, text in read.blocks if kind != "tool_use"]
    assert blocks == [(kind, text) for kind, text in (("thinking", tale.thoughts), ("text", tale.words)) if text]
    made = [event.call for event in read.events if isinstance(event, m.BlockEnded) and event.call]
    assert [(one.name, one.input) for one in made] == tale.calls
    assert len({one.call_id for one in made}) == len(made) and all(one.call_id for one in made)
    assert (read.reading.stop, read.reading.usage, read.reading.is_complete) == (tale.stop, tale.usage, True)
    assert read.reading.has_calls is bool(tale.calls)


@pytest.mark.parametrize("name", WORDS)
def test_words_are_heard_whoever_says_them(name: str) -> None:
    heard(WORDS[name])


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_heard_whoever_makes_them(name: str) -> None:
    heard(CALLS[name])


@pytest.mark.parametrize("name", CALLS)
async def test_calls_are_carried_out_once(name: str) -> None:
    turn, server = await talked("openai", [stream(CALLS[name].stream), says("Done.")])
    assert (turn.text, len(server.asked)) == ("Done.", 2)
    assert sorted(turn.results) == sorted(f"There is no tool {tool}" for tool, _ in CALLS[name].calls)
    assert turn.stops == [m.StopReason.TOOL_USE, m.StopReason.END_TURN]


@pytest.mark.parametrize("name", WORDS)
async def test_turns_end_whoever_speaks(name: str) -> None:
    turn, server = await talked("openai", [stream(WORDS[name].stream)])
    assert (turn.text, turn.stops, len(server.asked)) == (WORDS[name].words, [WORDS[name].stop], 1)


# -- what goes wrong, in their own way --------------------------------------------------------------------------------

def wrong(error: Any, **rest: Any) -> bytes:
    return b"data: " + orjson.dumps({"error": error, **rest}) + b"\n\n"


SPOKEN = chunk({"content": "So "})


@pytest.mark.parametrize(("told", "kind", "words"), [
    (SPOKEN + wrong({"code": 502, "message": "Provider disconnected"}, id="gen-1", object="chat.completion.chunk",
                    choices=[{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]),
     Overloaded, "Provider disconnected"),
    (SPOKEN + lean({"index": 0, "delta": {"content": ""}, "finish_reason": "error",
                    "error": {"code": 429, "message": "Slow down"}}) + DONE, RateLimited, "Slow down"),
    (SPOKEN + lean({"index": 0, "delta": {}, "finish_reason": "error"}) + DONE, BackendFailed, "no reason was given"),
    (wrong({"message": "quota exceeded"}) + DONE, BackendFailed, "quota exceeded"),
    (SPOKEN + wrong({"object": "error", "message": "Engine died", "type": "InternalServerError", "code": 500}) + DONE,
     Overloaded, "Engine died"),
    (SPOKEN + b"event: error\n" + wrong({"message": "Compute error."}, message="Compute error."), BackendFailed,
     r"Compute error\."),
    (SPOKEN + wrong("Model is too busy", error_type="overloaded"), BackendFailed, "Model is too busy"),
    (SPOKEN + wrong({"message": "took too long", "code": 504}), TimedOut, "took too long"),
    (b'error: {"code":400,"message":"the request exceeds the available context size"}\n\n' + DONE, BackendFailed,
     "ended its answer before it had begun it"),
    (DONE, BackendFailed, "ended its answer before it had begun it"),
    (chunk(choices=[]) + DONE, BackendFailed, "ended its answer before it had begun it"),
], ids=["OpenRouter", "OpenRouter, in the choice", "nothing but a reason", "an error and an end", "vLLM", "LM Studio",
        "TGI", "a timeout", "llama.cpp of 2025", "an end alone", "no choices and an end"])
async def test_an_error_in_the_stream_fails_the_turn(told: bytes, kind: type[GatewayError], words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        await talked("openai", [stream(told)])
    assert type(caught.value) is kind


@pytest.mark.parametrize(("answer", "words"), [
    (answers_with(b'{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options",'
                  b'"include_usage"],"msg":"Extra inputs are not permitted"}]}}', 422), "stream_options"),
    (answers_with(b'{"error":{"message":"Unsupported parameter: \'max_tokens\' is not supported with this model. Use '
                  b'\'max_completion_tokens\' instead."}}', 400), "'max_completion_tokens' instead"),
    (answers_with(b'{"error":"model not found"}', 404), "404: model not found"),
    (answers_with(b'{"id":"1","object":"chat.completion","choices":[]}'), "not with a stream of events"),
    (answers_with(b"<html><title>502</title></html>", 502, "text/html"), "answered 502"),
])
async def test_what_a_server_does_not_take_is_told_in_its_words(answer: Answer, words: str) -> None:
    with pytest.raises(GatewayError) as caught:
        await talked("openai", [answer])
    assert words in caught.value.message


async def test_fields_that_a_server_does_not_take_are_left_out_or_exchanged() -> None:
    _, server = await talked("openai", [says("ok")], max_tokens=None, extra={
        "stream_options": None, "max_completion_tokens": 50})
    assert server.asked[0].json == {
        "model": "m", "stream": True, "max_completion_tokens": 50, "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(("url", "field"), [
    ("https://api.openai.com/v1", "max_completion_tokens"), ("http://127.0.0.1:1/v1", "max_tokens")])
async def test_how_long_an_answer_may_be_is_said_as_the_server_has_it(url: str, field: str) -> None:
    backend = made("openai", url, max_tokens=50)
    async with serving(says("ok")) as server, backend_at("openai", server) as other:
        backend._upstream = other._upstream
        async for _ in backend.run(turn_of()):
            pass
    assert [server.asked[0].json.get(name) for name in ("max_tokens", "max_completion_tokens")] == [
        50 if field == name else None for name in ("max_tokens", "max_completion_tokens")]


async def test_the_version_in_an_address_goes_along() -> None:
    async with serving(says("ok")) as server:
        backend = made("openai", f"{server.url}/openai/deployments/d?api-version=2024-10-21", key=None,
                       headers={"api-key": KEY})
        async for _ in backend.run(turn_of()):
            pass
        await backend.close()
    assert server.asked[0].path == "/openai/deployments/d/chat/completions?api-version=2024-10-21"
    assert server.asked[0].headers["api-key"] == KEY


async def test_two_calls_of_one_tool_with_one_input_are_two() -> None:
    twice = chunk(call(0, "a", "look", "{}")), chunk(call(1, "b", "look", "{}"))
    turn, _ = await talked("openai", [stream(*twice, STOP, DONE), says("Done.")])
    assert len(turn.results) == 2
