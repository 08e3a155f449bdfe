"""Anthropic's own client as judge: of what our fake service tells, of how we read it, and of what we ask."""

from typing import Any

import anthropic
import orjson
import pytest
from anthropic import AsyncAnthropic
from anthropic.types import ErrorResponse, RawMessageStreamEvent
from anthropic.types.message_create_params import MessageCreateParamsStreaming

import gateway.model as m
from gateway.backends.llm.anthropic.decoder import STOP_REASONS
from gateway.backends.llm.anthropic.request import REDACTED_PREFIX
from gateway.errors import BackendFailed, GatewayError, Overloaded, RateLimited, TimedOut
from tests.backends.llm.anthropic.test_decoder import Read
from tests.support.backends.messages_api import breaks, event, found, message, redacted, refuses, start, text, thinking
from tests.support.backends.messages_api import tool as called
from tests.support.backends.model_replies import MESSAGES
from tests.support.backends.model_services import KEY, talked, turn_of
from tests.support.backends.official_models import data_of, kept, validation_problems
from tests.support.client.byte_server import Answer, Server, serving, stream

ASKING: dict[str, Any] = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}]}
PINGS = b'{"type":"ping"}'
"""Pings are in the documents, and not among the client's models."""


def client(server: Server) -> AsyncAnthropic:
    """One that holds every event to its shape; it speaks no TLS, so it need not read the machine's certificates."""
    return AsyncAnthropic(api_key=KEY, base_url=server.url, max_retries=0, _strict_response_validation=True,
                          http_client=anthropic.DefaultAsyncHttpxClient(verify=False))


async def summed_up(*pieces: bytes) -> Any:
    async with (serving(stream(*pieces)) as server, client(server) as judge,
                judge.messages.stream(**ASKING) as reading):
        return await reading.get_final_message()


@pytest.mark.parametrize("name", MESSAGES)
async def test_every_tale_is_in_the_words_of_the_protocol(name: str) -> None:
    told = [data for data in data_of(MESSAGES[name]) if data != PINGS]
    assert [place for data in told for place in validation_problems(RawMessageStreamEvent, data)] == []
    async with serving(stream(MESSAGES[name])) as server, client(server) as judge:
        heard = [one async for one in await judge.messages.create(**ASKING, stream=True)]
    assert [one.type for one in heard] == [orjson.loads(data)["type"] for data in told]


@pytest.mark.parametrize("wrong", [
    event("message_start", message={}), event("content_block_start", index=0, content_block={"type": "text"}),
    event("content_block_delta", index="0", delta={"type": "text_delta", "text": "x"}),
    event("content_block_delta", index=0, delta={"type": "text_delta", "texts": "x"}),
    event("message_delta", delta={"stop_reason": "done", "stop_sequence": None}, usage={"output_tokens": 1}),
    event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={}),
])
async def test_the_judge_notices_what_is_wrong(wrong: bytes) -> None:
    with pytest.raises(ValueError, match="validation error"):
        validation_problems(RawMessageStreamEvent, next(data_of(wrong)))


def test_the_judge_names_what_it_does_not_know() -> None:
    odd = event("content_block_delta", index=0, delta={"type": "text_delta", "text": "x", "mood": "good"}, colour=1)
    assert validation_problems(RawMessageStreamEvent, next(data_of(odd))) == ["delta.mood", "colour"]


@pytest.mark.parametrize("name", MESSAGES)
async def test_the_judge_and_we_read_the_same(name: str) -> None:
    whole, ours = await summed_up(MESSAGES[name]), Read(MESSAGES[name])
    assert ours.blocks == [said for block in whole.content if (said := _as_ours(block)) is not None]
    assert [(call.call_id, call.name) for call in ours.assembler.writer.calls] == [
        (block.id, block.name) for block in whole.content if block.type.endswith("tool_use")]
    assert (ours.reading.stop, ours.reading.wants_continuation) == (
        STOP_REASONS[whole.stop_reason],
        whole.stop_reason == "pause_turn",
    )
    spent, cost = ours.reading.usage, whole.usage
    assert (spent.input_tokens, spent.output_tokens, spent.cache_read_tokens, spent.cache_write_tokens) == (
        cost.input_tokens, cost.output_tokens, cost.cache_read_input_tokens, cost.cache_creation_input_tokens)


def _as_ours(block: Any) -> tuple[str, Any] | None:
    """What the judge's block is called here; a result is no block of ours."""
    match block.type:
        case "text":
            return "text", block.text
        case "thinking":
            return "thinking", (block.thinking, block.signature)
        case "redacted_thinking":
            return "thinking", ("", REDACTED_PREFIX + block.data)
        case "tool_use" | "server_tool_use":
            return "tool_use", block.input
    return None


# -- what goes wrong --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("status", "kind", "theirs", "ours"), [
    (400, "invalid_request_error", anthropic.BadRequestError, BackendFailed),
    (401, "authentication_error", anthropic.AuthenticationError, BackendFailed),
    (404, "not_found_error", anthropic.NotFoundError, BackendFailed),
    (429, "rate_limit_error", anthropic.RateLimitError, RateLimited),
    (500, "api_error", anthropic.InternalServerError, Overloaded),
    (529, "overloaded_error", anthropic.InternalServerError, Overloaded),
])
async def test_a_refusal_is_one_to_the_judge_and_to_us(
    status: int, kind: str, theirs: type[anthropic.APIStatusError], ours: type[GatewayError],
) -> None:
    answer: Answer = refuses(status, kind, "It cannot be.", Retry_After="3")
    async with serving(answer) as server, client(server) as judge:
        with pytest.raises(theirs) as told:
            await judge.messages.create(**ASKING, stream=True)
    assert validation_problems(ErrorResponse, orjson.dumps(told.value.body)) == []
    with pytest.raises(ours, match="It cannot be") as caught:
        await talked("anthropic", [answer])
    assert type(caught.value) is ours
    assert caught.value.fault.details == {"upstream_status": status, "retry_after": 3}


@pytest.mark.parametrize(("kind", "ours"), [
    ("overloaded_error", Overloaded), ("rate_limit_error", RateLimited), ("timeout_error", TimedOut),
    ("api_error", Overloaded), ("invalid_request_error", BackendFailed),
])
async def test_an_answer_that_breaks_is_one_to_the_judge_and_to_us(kind: str, ours: type[GatewayError]) -> None:
    broken = start() + b"".join(text(0, "So ")[:2]) + breaks(kind, "It broke.")
    with pytest.raises(anthropic.APIStatusError, match=r"It broke\."):
        await summed_up(broken)
    assert validation_problems(ErrorResponse, list(data_of(broken))[-1]) == []
    with pytest.raises(ours, match=r"aborted its response: It broke\.") as caught:
        await talked("anthropic", [stream(broken)])
    assert type(caught.value) is ours


# -- what we ask ------------------------------------------------------------------------------------------------------

async def test_what_we_ask_is_in_the_words_of_the_protocol() -> None:
    parts = (
        m.TextPart(text="Look:"), m.ImagePart(url="https://example.org/cat.png"),
        m.ImagePart(url="data:image/png;base64,aGk="),
        m.FilePart(name="a.pdf", url="https://example.org/a.pdf", media_type="application/pdf"),
    )
    turn = turn_of(parts, settings=m.Settings(system="Be brief.", client_tools=(m.ToolSpec(name="look.around"),)))
    answers = [
        message(
            thinking(0, "hm", signature="c2ln"), redacted(1, "ZGF0"), text(2, "One moment."),
            called(3, "srvtoolu_1", "web_search", '{"query": "x"}', kind="server_tool_use"), found(4, "srvtoolu_1"),
            called(5, "toolu_1", "calc", '{"expression": "1+1"}'), reason="tool_use",
        ),
        message(text(0, "Two.")),
    ]
    _, server = await talked(
        "anthropic", answers, turn, tools=["calc"], extra={"thinking": {"type": "enabled", "budget_tokens": 2048}},
        provider_tools=[{"type": "web_search_20250305", "name": "web_search"}])
    for asked in server.asked:
        assert kept(MessageCreateParamsStreaming, asked.json) == asked.json
    assert len(server.asked) == 2
    with pytest.raises(ValueError, match="validation error"):
        kept(MessageCreateParamsStreaming, server.asked[0].json | {"max_tokens": None})
