"""What the Messages API streams is what the agent says."""

from itertools import pairwise
from typing import Any

import orjson
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.backends.llm.anthropic.decoder import MessagesDecoder, result_as_text
from gateway.backends.llm.anthropic.request import REDACTED_PREFIX
from gateway.backends.toolbox import Toolbox
from gateway.client import HttpClient, SseDecoder, StreamAssembler
from gateway.errors import BackendFailed, GatewayError, Overloaded, RateLimited, TimedOut
from gateway.ids import make_mint
from tests.support.backends.messages_api import (
    FOUND,
    PING,
    begins,
    end,
    ends,
    event,
    found,
    grows,
    redacted,
    start,
    text,
    thinking,
    tool,
)
from tests.support.backends.model_services import KEY, turn_of


class Read:
    """A stream that was read whole, its events held to the grammar."""

    def __init__(self, stream: bytes, *cuts: int) -> None:
        mint = make_mint("t")
        self.assembler = StreamAssembler(mint)
        self.reading = MessagesDecoder(
            self.assembler, Toolbox(turn_of(), {}, {}), set(), HttpClient("http://upstream.test", secrets=(KEY,)))
        self.events: list[Any] = self.assembler.begin(model="m")
        decoder = SseDecoder()
        for at, until in pairwise([0, *cuts, len(stream)]):
            self.reading.feed(decoder.feed(stream[at:until]), self.events)
        self.events += self.assembler.finish(self.reading.stop, self.reading.usage)
        grammar = m.Grammar()
        grammar.check(m.TurnStarted(command_id="c"))
        for said in self.events:
            grammar.check(said)

    @property
    def blocks(self) -> list[tuple[str, Any]]:
        return [(one.kind, one.call.input if one.call else one.text if not one.signature else (one.text, one.signature))
                for one in self.events if isinstance(one, m.BlockEnded)]


STREAM = b"".join([
    start(cache_read_input_tokens=3, cache_creation_input_tokens=4), PING,
    *thinking(0, "Let me ", "see. 🤔", signature="c2ln"), *redacted(1, "ZGF0YQ=="), *text(2, "Zwölf ", "Boxkämpfer."),
    event("something_new", hello=1),
    *tool(3, "srvtoolu_1", "web_search", '{"query": ', '"dragoman"}', kind="server_tool_use"), *found(4, "srvtoolu_1"),
    begins(5, type="something_newer"), ends(5),
    *tool(6, "toolu_1", "clock"), *tool(7, "toolu_2", "calc", "", '{"expression":', ' "1+1"}'),
    end("tool_use", output_tokens=40, output_tokens_details={"thinking_tokens": 12}),
])
BLOCKS = [
    ("thinking", ("Let me see. 🤔", "c2ln")),
    ("thinking", ("", f"{REDACTED_PREFIX}ZGF0YQ==")),
    ("text", "Zwölf Boxkämpfer."),
    ("tool_use", {"query": "dragoman"}),
    ("tool_use", {}),
    ("tool_use", {"expression": "1+1"}),
]


def test_a_stream_is_read_the_same_wherever_it_is_cut() -> None:
    for cut in range(len(STREAM)):
        read = Read(STREAM, cut)
        assert read.blocks == BLOCKS
        assert read.reading.usage == m.Usage(
            input_tokens=10, output_tokens=40, cache_read_tokens=3, cache_write_tokens=4, thinking_tokens=12)
        assert (read.reading.stop, read.reading.has_calls, read.reading.is_closed) == (
            m.StopReason.TOOL_USE,
            True,
            True,
        )
    [returned] = [one for one in read.events if one.name == "tool.returned"]
    block = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": FOUND}
    assert (returned.call_id, returned.origin, returned.is_error) == ("srvtoolu_1", "provider", False)
    assert returned.content == (
        m.TextPart(text="Dragomans https://example.org/d"), m.DataPart(type="web_search_tool_result", content=block))
    assert [call.name for call in read.assembler.writer.calls] == ["web_search", "clock", "calc"]


def test_one_delta_upstream_is_one_delta_here() -> None:
    read = Read(b"".join([start(), *text(0, "a", "b", "c"), end()]))
    assert [one.delta for one in read.events if isinstance(one, m.BlockDelta)] == ["a", "b", "c"]


def test_events_are_known_by_their_type_where_they_have_no_name() -> None:
    nameless = b"\n".join(line for line in STREAM.split(b"\n") if not line.startswith(b"event:"))
    assert Read(nameless).blocks == BLOCKS


@pytest.mark.parametrize(("reason", "stop", "paused"), [
    ("end_turn", m.StopReason.END_TURN, False), ("stop_sequence", m.StopReason.END_TURN, False),
    ("tool_use", m.StopReason.TOOL_USE, False), ("max_tokens", m.StopReason.MAX_TOKENS, False),
    ("refusal", m.StopReason.REFUSAL, False), ("model_context_window_exceeded", m.StopReason.MAX_TOKENS, False),
    ("pause_turn", m.StopReason.TOOL_USE, True),
])
def test_why_an_answer_ends(reason: str, stop: m.StopReason, paused: bool) -> None:
    reading = Read(start() + b"".join(text(0, "x")) + end(reason)).reading
    assert (reading.stop, reading.wants_continuation, reading.is_complete) == (stop, paused, True)


def test_a_reason_nobody_knows_is_an_end_and_a_line_in_the_journal() -> None:
    with structlog.testing.capture_logs() as lines:
        reading = Read(start() + end("moonrise")).reading
    assert reading.stop is m.StopReason.END_TURN
    assert [(line["event"], line["reason"]) for line in lines] == [("unknown_stop_reason", "moonrise")]


def test_a_thought_without_words_keeps_its_signature() -> None:
    assert Read(b"".join([start(), *thinking(0, signature="c2ln"), end()])).blocks == [("thinking", ("", "c2ln"))]


def test_an_input_that_comes_with_the_start() -> None:
    whole = [begins(0, type="tool_use", id="a", name="calc", input={"expression": "1"}), ends(0)]
    assert Read(b"".join([start(), *whole, end("tool_use")])).blocks == [("tool_use", {"expression": "1"})]


def test_two_calls_with_one_id_have_each_their_own() -> None:
    read = Read(b"".join([start(), *tool(0, "a", "x"), *tool(1, "a", "y"), end("tool_use")]))
    assert len({call.call_id for call in read.assembler.writer.calls}) == 2


def test_a_search_that_failed() -> None:
    failed = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    read = Read(b"".join([
        start(), *tool(0, "srvtoolu_1", "web_search", kind="server_tool_use"), *found(1, "srvtoolu_1", failed), end()]))
    [returned] = [one for one in read.events if one.name == "tool.returned"]
    assert returned.is_error and returned.content[0].text == "max_uses_exceeded"


def test_what_comes_after_the_end_is_ignored() -> None:
    late = b"".join(text(1, "late")) + b"event: content_block_delta\ndata: nonsense\n\n"
    assert Read(b"".join([start(), *text(0, "x"), end()]) + late).blocks == [("text", "x")]


def test_pieces_of_blocks_that_never_began_are_words_or_nothing() -> None:
    read = Read(start() + grows(0, "citations_delta") + grows(1, "input_json_delta", partial_json="{}") + end())
    assert read.blocks == []


@pytest.mark.parametrize(("kind", "expected"), [
    ("overloaded_error", Overloaded), ("rate_limit_error", RateLimited), ("api_error", Overloaded),
    ("timeout_error", TimedOut), ("invalid_request_error", BackendFailed),
])
def test_an_error_in_the_middle(kind: str, expected: type[GatewayError]) -> None:
    broken = event("error", error={"type": kind, "message": f"No more, {KEY}."})
    with pytest.raises(expected, match=r"http://upstream\.test aborted its response: No more, \*\*\*\.") as caught:
        Read(start() + b"".join(text(0, "x")) + broken)
    assert type(caught.value) is expected


@pytest.mark.parametrize("broken", [
    b"event: content_block_delta\ndata: {\"del\n\n", b"event: message_start\ndata: {}\n\n", b"data: []\n\n",
    b"event: content_block_start\ndata: {\"index\": 0, \"content_block\": 7}\n\n",
    b"event: message_delta\ndata: {\"delta\": {}, \"usage\": {\"output_tokens\": \"many\"}}\n\n",
])
def test_events_that_cannot_be_read(broken: bytes) -> None:
    with pytest.raises(BackendFailed, match="cannot be read"):
        Read(broken)


def test_results_in_words() -> None:
    assert result_as_text([{"type": "text", "text": "a"}, {"content": [{"text": "b"}]}, 7]) == "a\nb"
    assert (
        result_as_text({"stdout": "out", "stderr": "err"}) == "out err"
        and result_as_text("x") == "x"
        and result_as_text(None) == ""
    )


texts = st.text(st.characters(blacklist_categories=("Cs",)), min_size=1)
inputs = st.dictionaries(texts, st.one_of(st.integers(-2**53, 2**53), texts, st.none()), max_size=3)


@given(st.data())
def test_what_comes_out_is_the_sum_of_what_went_in(data: st.DataObject) -> None:
    pieces, expected = [start()], []
    for index, kind in enumerate(data.draw(st.lists(st.sampled_from(["text", "thinking", "tool"]), max_size=6))):
        if kind == "tool":
            input = data.draw(inputs)
            written = orjson.dumps(input).decode()
            cut = data.draw(st.integers(0, len(written)))
            pieces += tool(index, f"toolu_{index}", "t", written[:cut], written[cut:])
            expected.append(("tool_use", input))
        else:
            words = data.draw(st.lists(texts, min_size=1, max_size=4))
            pieces += text(index, *words) if kind == "text" else thinking(index, *words, signature="s")
            expected.append(("text", "".join(words)) if kind == "text" else ("thinking", ("".join(words), "s")))
    spent = data.draw(st.integers(0, 999))
    stream = b"".join([*pieces, end("tool_use", output_tokens=spent)])
    read = Read(stream, *sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5))))
    assert read.blocks == expected
    assert read.reading.usage == m.Usage(input_tokens=10, output_tokens=spent)
