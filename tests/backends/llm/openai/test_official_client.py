"""OpenAI's own client as judge: of what our fake service tells, of how we read it, and of what we ask."""

from contextlib import suppress
from typing import Any

import openai
import orjson
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.shared import ErrorObject

import gateway.model as m
from gateway.backends.llm.openai.decoder import STOP_REASONS
from gateway.errors import BackendFailed, GatewayError, Overloaded, RateLimited
from tests.backends.llm.openai.test_decoder import Read
from tests.support.backends.model_replies import CHAT, UNKNOWN
from tests.support.backends.model_services import DONE, KEY, breaks, chunk, complaint, refuses, says, talked, turn_of
from tests.support.backends.official_models import data_of, kept, validation_problems
from tests.support.client.byte_server import Answer, Server, serving, stream

ASKING: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


def client(server: Server) -> AsyncOpenAI:
    """One that holds every chunk to its shape; it speaks no TLS, so it need not read the machine's certificates."""
    return AsyncOpenAI(api_key=KEY, base_url=server.url, max_retries=0, _strict_response_validation=True,
                       http_client=openai.DefaultAsyncHttpxClient(verify=False))


async def streamed(*chunks: bytes) -> list[ChatCompletionChunk]:
    async with serving(stream(*chunks, DONE)) as server, client(server) as judge:
        return [one async for one in await judge.chat.completions.create(**ASKING, stream=True)]


async def summed_up(*chunks: bytes) -> Any:
    async with (serving(stream(*chunks, DONE)) as server, client(server) as judge,
                judge.chat.completions.stream(**ASKING) as reading):
        with suppress(openai.LengthFinishReasonError, openai.ContentFilterFinishReasonError):
            await reading.until_done()
        return reading.current_completion_snapshot


@pytest.mark.parametrize("name", CHAT)
async def test_every_tale_is_in_the_words_of_the_protocol(name: str) -> None:
    unknown = {
        place for data in data_of(b"".join(CHAT[name])) for place in validation_problems(ChatCompletionChunk, data)
    }
    assert unknown == UNKNOWN.get(name, set())
    assert len(await streamed(*CHAT[name])) == len(CHAT[name])


@pytest.mark.parametrize("wrong", [
    {"id": 1}, {"object": "chunk"}, {"choices": [{"delta": {}}]}, {"choices": None}, {"created": "today"},
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"id": "a"}]}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "done"}]}, {"usage": {"prompt_tokens": 1}},
])
async def test_the_judge_notices_what_is_wrong(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        validation_problems(ChatCompletionChunk, next(data_of(chunk(**wrong))))
    with pytest.raises(openai.APIResponseValidationError):
        await streamed(chunk(**wrong))


def test_the_judge_names_what_it_does_not_know() -> None:
    assert validation_problems(ChatCompletionChunk, next(data_of(chunk({"contents": "x"}, id="1", colour="red")))) == [
        "choices.delta.contents", "colour"]


@pytest.mark.parametrize("name", CHAT)
async def test_the_judge_and_we_read_the_same(name: str) -> None:
    whole, ours = await summed_up(*CHAT[name]), Read(b"".join([*CHAT[name], DONE]))
    [choice] = whole.choices
    message, extra = choice.message, choice.message.model_extra or {}
    words = {"thinking": extra.get("reasoning_content") or extra.get("reasoning"),
             "text": f"{message.content or ''}{message.refusal or ''}"}
    assert [block for block in ours.blocks if block[0] != "tool_use"] == [
        (kind, text) for kind, text in words.items() if text]
    assert [(call.call_id, call.name, call.input) for call in ours.assembler.writer.calls] == [
        (call.id, call.function.name, orjson.loads(call.function.arguments)) for call in message.tool_calls or ()]
    assert ours.reading.stop is (m.StopReason.REFUSAL if message.refusal else STOP_REASONS[choice.finish_reason])
    if whole.usage is not None:
        spent, before = ours.reading.usage, whole.usage.prompt_tokens_details
        assert spent.input_tokens + spent.cache_read_tokens + spent.cache_write_tokens == whole.usage.prompt_tokens
        assert (spent.output_tokens, spent.cache_read_tokens, spent.cache_write_tokens, spent.thinking_tokens) == (
            whole.usage.completion_tokens, before.cached_tokens, before.cache_write_tokens or 0,
            whole.usage.completion_tokens_details.reasoning_tokens)


# -- what goes wrong --------------------------------------------------------------------------------------------------

REFUSALS = [
    (400, "invalid_request_error", None, openai.BadRequestError, BackendFailed),
    (401, "invalid_request_error", "invalid_api_key", openai.AuthenticationError, BackendFailed),
    (404, "invalid_request_error", "model_not_found", openai.NotFoundError, BackendFailed),
    (429, "requests", "rate_limit_exceeded", openai.RateLimitError, RateLimited),
    (429, "insufficient_quota", "insufficient_quota", openai.RateLimitError, RateLimited),
    (500, "server_error", None, openai.InternalServerError, Overloaded),
    (503, "service_unavailable_error", None, openai.InternalServerError, Overloaded),
]


@pytest.mark.parametrize(("status", "kind", "code", "theirs", "ours"), REFUSALS)
async def test_a_refusal_is_one_to_the_judge_and_to_us(
    status: int, kind: str, code: str | None, theirs: type[openai.APIStatusError], ours: type[GatewayError],
) -> None:
    answer: Answer = refuses(status, "It cannot be.", kind, code, Retry_After="3")
    assert validation_problems(ErrorObject, orjson.dumps(complaint("It cannot be.", kind, code)["error"])) == []
    async with serving(answer) as server, client(server) as judge:
        with pytest.raises(theirs) as told:
            await judge.chat.completions.create(**ASKING, stream=True)
    assert (told.value.type, told.value.code) == (kind, code)
    with pytest.raises(ours, match="It cannot be") as caught:
        await talked("openai", [answer])
    assert type(caught.value) is ours
    assert caught.value.fault.details == {"upstream_status": status, "retry_after": 3}


@pytest.mark.parametrize(("kind", "code", "ours"), [
    ("server_error", None, Overloaded), ("rate_limit_error", "rate_limit_exceeded", RateLimited),
    ("invalid_request_error", "context_length_exceeded", BackendFailed),
])
async def test_an_answer_that_breaks_is_one_to_the_judge_and_to_us(
    kind: str, code: str | None, ours: type[GatewayError],
) -> None:
    broken = chunk({"content": "So "}), breaks("It broke.", kind, code)
    with pytest.raises(openai.APIError, match=r"It broke\.") as told:
        await streamed(*broken)
    assert told.value.type == kind
    with pytest.raises(ours, match=r"aborted its response: It broke\.") as caught:
        await talked("openai", [stream(*broken, DONE)])
    assert type(caught.value) is ours


# -- what we ask ------------------------------------------------------------------------------------------------------

async def test_what_we_ask_is_in_the_words_of_the_protocol() -> None:
    made = m.ToolCall(call_id="c1", name="get.it", input={"a": 1})
    history = [
        m.HistoryEntry(role=m.Role.SYSTEM, content="A summary.", seq=0, at=0.0),
        m.HistoryEntry(role=m.Role.USER, content="Get it", seq=1, at=0.0),
        m.HistoryEntry(
            role=m.Role.ASSISTANT, content=(m.TextPart(text="Yes."), m.ToolUsePart(call=made)), seq=2, at=0.0
        ),
        m.HistoryEntry(role=m.Role.TOOL, content="found", call_id="c1", seq=3, at=0.0),
    ]
    parts = m.TextPart(text="Look:"), m.ImagePart(url="https://example.org/cat.png")
    turn = turn_of(parts, history=history, output_schema={"type": "object"}, settings=m.Settings(
        system="Be brief.", client_tools=(m.ToolSpec(name="look.around", description="Looks."),)))
    _, server = await talked("openai", [says("{}")], turn, tools=["calc"], max_tokens=50, extra={"temperature": 0.5})
    [asked] = server.asked
    assert kept(CompletionCreateParamsStreaming, asked.json) == asked.json
    assert {message["role"] for message in asked.json["messages"]} == {"system", "user", "assistant", "tool"}
    with pytest.raises(ValueError, match="validation error"):
        kept(CompletionCreateParamsStreaming, {**asked.json, "messages": [{"role": "tool", "content": "x"}]})
    assert kept(CompletionCreateParamsStreaming, asked.json | {"colour": "red"}) == asked.json
