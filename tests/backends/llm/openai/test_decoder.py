"""What a chat-completions service streams is what the agent says, whatever the service leaves out."""

from itertools import pairwise
from typing import Any

import orjson
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.backends.llm.openai.decoder import ChatCompletionsDecoder
from gateway.backends.toolbox import Toolbox
from gateway.client import HttpClient, SseDecoder, StreamAssembler
from gateway.errors import BackendFailed, GatewayError, Overloaded, RateLimited
from gateway.ids import make_mint
from tests.support.backends.model_services import DONE, KEY, call, chunk, turn_of, usage


class Read:
    """A stream that was read whole, its events held to the grammar."""

    def __init__(self, stream: bytes, *cuts: int, call_ids: set[str] | None = None) -> None:
        turn, mint = turn_of(), make_mint("t")
        self.assembler = StreamAssembler(mint)
        self.reading = ChatCompletionsDecoder(
            self.assembler, Toolbox(turn, {}, {}), call_ids if call_ids is not None else set(),
            HttpClient("http://upstream.test/v1", secrets=(KEY,)),
        )
        self.events: list[Any] = self.assembler.begin(model="m")
        decoder, places = SseDecoder(), [0, *cuts, len(stream)]
        for start, end in pairwise(places):
            self.reading.feed(decoder.feed(stream[start:end]), self.events)
        self.events += self.assembler.finish(self.reading.stop, self.reading.usage)
        grammar = m.Grammar()
        grammar.check(m.TurnStarted(command_id="c"))
        for said in self.events:
            grammar.check(said)

    @property
    def blocks(self) -> list[tuple[str, Any]]:
        return [(event.kind, event.call.input if event.call else event.text)
                for event in self.events if isinstance(event, m.BlockEnded)]

    @property
    def deltas(self) -> list[str]:
        return [event.delta for event in self.events if isinstance(event, m.BlockDelta)]


STREAM = b"".join([
    b": a comment\n\n",
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning_content": "Let me "}), chunk({"reasoning_content": "see. 🤔"}),
    chunk({"content": "Zwölf "}), chunk({"content": "Boxkämpfer."}),
    chunk(call(0, "call_a", "clock", "")), chunk(call(1, "call_b", "calc", '{"expr')),
    chunk(call(0, None, None, '{"zone": "U')), chunk(call(1, None, None, 'ession": "1+1"}')),
    chunk(call(0, None, None, 'TC"}')),
    chunk(finish="tool_calls"), usage(12, 34, cached=5, reasoning=7), DONE,
])
BLOCKS = [("thinking", "Let me see. 🤔"), ("text", "Zwölf Boxkämpfer."), ("tool_use", {"zone": "UTC"}),
          ("tool_use", {"expression": "1+1"})]


def test_a_stream_is_read_the_same_wherever_it_is_cut() -> None:
    for cut in range(len(STREAM)):
        read = Read(STREAM, cut)
        assert read.blocks == BLOCKS
        assert read.reading.usage == m.Usage(
            input_tokens=7, output_tokens=34, cache_read_tokens=5, thinking_tokens=7)
        assert (read.reading.stop, read.reading.has_calls, read.reading.is_closed) == (
            m.StopReason.TOOL_USE,
            True,
            True,
        )


def test_one_delta_upstream_is_one_delta_here() -> None:
    read = Read(b"".join(chunk({"content": word}) for word in ("a", "b", "c")) + chunk(finish="stop"))
    assert read.deltas == ["a", "b", "c"]


@pytest.mark.parametrize(("reason", "stop"), [
    ("stop", m.StopReason.END_TURN), ("tool_calls", m.StopReason.TOOL_USE), ("length", m.StopReason.MAX_TOKENS),
    ("content_filter", m.StopReason.REFUSAL), ("function_call", m.StopReason.TOOL_USE),
])
def test_why_an_answer_ends(reason: str, stop: m.StopReason) -> None:
    assert Read(chunk({"content": "x"}) + chunk(finish=reason)).reading.stop is stop


def test_a_reason_nobody_knows_is_an_end_and_a_line_in_the_journal() -> None:
    with structlog.testing.capture_logs() as lines:
        read = Read(chunk({"content": "x"}) + chunk(finish="moonrise"))
    assert (read.reading.stop, read.reading.is_complete) == (m.StopReason.END_TURN, True)
    assert [(line["event"], line["reason"]) for line in lines] == [("unknown_stop_reason", "moonrise")]


def test_a_refusal_is_said_and_is_why_it_ends() -> None:
    read = Read(chunk({"refusal": "I can"}) + chunk({"refusal": "not."}) + chunk(finish="stop") + DONE)
    assert (read.blocks, read.reading.stop) == ([("text", "I cannot.")], m.StopReason.REFUSAL)


def test_what_comes_after_the_end_is_ignored() -> None:
    read = Read(chunk({"content": "x"}) + chunk(finish="stop") + chunk({"content": "late"}) + DONE + chunk(
        {"content": "later"}) + usage(1, 1) + b"data: nonsense\n\n")
    assert (read.blocks, read.reading.usage) == ([("text", "x")], m.Usage())


@pytest.mark.parametrize(("prompt", "completion", "counted"), [
    (12.0, 3.9, (12, 3)), ("12", None, (12, 0)), (-4, 5, (0, 5)), ("many", [1], (0, 0)), (1e300, True, (2 ** 53, 1)),
])
def test_what_an_answer_has_cost_may_be_written_in_any_way(prompt: Any, completion: Any, counted: Any) -> None:
    cost = {"prompt_tokens": prompt, "completion_tokens": completion, "prompt_tokens_details": {"cached_tokens": 0.0}}
    read = Read(chunk({"content": "x"}) + chunk(finish="stop", usage=cost) + DONE)
    spent = read.reading.usage
    assert (read.blocks, (spent.input_tokens, spent.output_tokens)) == ([("text", "x")], counted)


@pytest.mark.parametrize("second", ['{"b": 2}', ""])
def test_another_name_after_a_whole_call_is_another_call_whatever_its_id(second: str) -> None:
    read = Read(b"".join([
        chunk(call(0, "call_a", "clock", '{"a": 1}')), chunk(call(0, "call_a", "calc", second)),
        *([] if second else [chunk(call(0, "call_a", None, '{"b": 2}'))]), chunk(finish="tool_calls"), DONE,
    ]))
    made = [event.call for event in read.events if isinstance(event, m.BlockEnded) and event.call]
    assert [(one.name, one.input) for one in made] == [("clock", {"a": 1}), ("calc", {"b": 2})]
    assert len({one.call_id for one in made}) == 2


def test_another_name_before_the_input_is_whole_is_no_other_call() -> None:
    read = Read(b"".join([
        chunk(call(0, "call_a", "clo", "")), chunk(call(0, "call_a", "ck", '{"a"')),
        chunk(call(0, "call_a", "clock", ": 1}")), chunk(finish="tool_calls"), DONE,
    ]))
    assert read.blocks == [("tool_use", {"a": 1})]


def test_thoughts_between_words_are_blocks_of_their_own() -> None:
    read = Read(b"".join([
        chunk({"reasoning": "a"}), chunk({"content": "b"}), chunk({"reasoning": "c"}), chunk({"content": "d"}),
        chunk(finish="stop"),
    ]))
    assert read.blocks == [("thinking", "a"), ("text", "b"), ("thinking", "c"), ("text", "d")]


def test_words_and_thoughts_in_pieces() -> None:
    read = Read(chunk({"content": [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "yes"},
    ]}) + chunk({"content": [{"type": "thinking", "thinking": "so"}, {"type": "other"}, 7]}) + chunk(finish="stop"))
    assert read.blocks == [("thinking", "hm"), ("text", "yes"), ("thinking", "so")]


# -- what local servers do --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("chunks", [
    [chunk(call(0, None, "a", '{"n": 1}')), chunk(call(1, None, "b", '{"n": 2}'))],
    [chunk({"tool_calls": [{"id": "x", "function": {"name": "a", "arguments": {"n": 1}}},
                           {"id": "y", "function": {"name": "b", "arguments": {"n": 2}}}]})],
    [chunk({"tool_calls": [{"function": {"name": "a", "arguments": '{"n": 1}'}},
                           {"function": {"name": "b", "arguments": '{"n": 2}'}}]})],
    [chunk(call(0, "x", "a", '{"n": 1}')), chunk(call(0, "y", "b", '{"n": 2}'))],
    [chunk(call(0, "x", "a", '{"n"')), chunk(call(0, "x", "a", ": 1}")), chunk(call(1, "y", "b", '{"n": 2}'))],
    [chunk({"tool_calls": [{"id": "x", "function": {"name": "a", "arguments": '{"n"'}}]}),
     chunk({"tool_calls": [{"function": {"arguments": ": 1}"}}]}), chunk(call(3, "y", "b", '{"n": 2}'))],
    [chunk(call(0, None, "a", '{"n": 1}')), chunk(call(0, None, "b", '{"n": 2}'))],
], ids=["no ids", "whole objects", "nothing but names", "one index", "all repeated", "no index", "one index, no ids"])
def test_calls_of_servers_that_leave_things_out(chunks: list[bytes]) -> None:
    read = Read(b"".join(chunks) + chunk(finish="stop"))
    made = [event.call for event in read.events if isinstance(event, m.BlockEnded) and event.call]
    assert [(one.name, one.input) for one in made] == [("a", {"n": 1}), ("b", {"n": 2})]
    assert len({one.call_id for one in made}) == 2 and all(one.call_id for one in made)


@pytest.mark.parametrize("chunks", [
    [chunk(call(0, None, "a", '{"n": 1}')), chunk(call(0, None, "a", '{"n": 2}'))],
    [chunk(call(0, "x", "a", '{"n": 1}')), chunk(call(0, "x", "a", '{"n": 2}'))],
    [chunk(call(0, "x", "a", '{"n"')), chunk(call(0, "x", "a", ": 1}")), chunk(call(0, "y", "a", '{"n": 2}'))],
    [chunk({"tool_calls": [{"id": "x", "function": {"name": "a", "arguments": '{"n": 1}'}}]}),
     chunk({"tool_calls": [{"id": "x", "function": {"name": "a", "arguments": '{"n": 2}'}}]})],
], ids=["no ids", "one id", "all repeated", "one id, no index"])
def test_two_calls_of_one_tool_in_one_place(chunks: list[bytes]) -> None:
    read = Read(b"".join(chunks) + chunk(finish="stop"))
    made = [event.call for event in read.events if isinstance(event, m.BlockEnded) and event.call]
    assert [(one.name, one.input) for one in made] == [("a", {"n": 1}), ("a", {"n": 2})]
    assert len({one.call_id for one in made}) == 2 and all(one.call_id for one in made)


@pytest.mark.parametrize("stream", [
    chunk({"role": "assistant"}) + chunk(choices=[]) + chunk({"content": "x"}) + chunk(choices=None) + DONE,
    b'data: {"choices": [{"delta": {"content": "x"}}]}\n\ndata: {"choices": [{"finish_reason": "stop"}]}\n\n',
    b'data: {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}\n\n',
    chunk({"content": "x"}, finish="") + chunk(finish="stop", usage=None),
    chunk({"content": "x"}, finish="stop"),
    chunk({"content": "x"}) + chunk(choices=[{"index": 1, "delta": {"content": "y"}, "finish_reason": "stop"}]) + DONE,
])
def test_leaner_streams_than_the_documents_have(stream: bytes) -> None:
    read = Read(stream)
    assert (read.blocks, read.reading.is_complete) == ([("text", "x")], True)


def test_a_call_without_arguments_has_an_empty_input() -> None:
    assert Read(chunk(call(0, "x", "clock", "")) + chunk(finish="tool_calls")).blocks == [("tool_use", {})]


def test_two_calls_with_one_id_have_each_their_own() -> None:
    ids = {"old"}
    read = Read(b"".join([
        chunk(call(0, "x", "a", "{}")), chunk(call(1, "x", "b", "{}")), chunk(call(2, "old", "c", "{}")),
        chunk(finish="tool_calls"),
    ]), call_ids=ids)
    made = [one.call_id for one in read.assembler.writer.calls]
    assert made[0] == "x" and len({*made, "old"}) == 4


# -- what cannot be read ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("data", [b'{"choices": [{"del', b"[]", b'{"choices": 7}', b'{"choices": [{"delta": 1}]}'])
def test_chunks_that_cannot_be_read(data: bytes) -> None:
    with pytest.raises(BackendFailed, match=r"http://upstream\.test sent a chunk that cannot be read"):
        Read(b"data: " + data + b"\n\n")


@pytest.mark.parametrize(("error", "kind"), [
    ({"message": f"slow down {KEY}", "type": "rate_limit_error"}, RateLimited),
    ({"message": "too much", "code": 503}, Overloaded),
    ({"message": "no", "type": "invalid_request_error"}, BackendFailed),
    ("plain words", BackendFailed),
])
def test_an_error_in_the_middle(error: Any, kind: type[GatewayError]) -> None:
    with pytest.raises(kind, match="aborted its response") as caught:
        Read(chunk({"content": "x"}) + b"data: " + orjson.dumps({"error": error}) + b"\n\n")
    assert type(caught.value) is kind and KEY not in caught.value.message


# -- streams nobody wrote ---------------------------------------------------------------------------------------------

texts = st.text(st.characters(blacklist_categories=("Cs",)), min_size=1)
inputs = st.dictionaries(texts, st.one_of(st.integers(-2**53, 2**53), texts, st.lists(st.booleans())), max_size=3)


@st.composite
def cut_up(draw: st.DrawFn, text: str) -> list[str]:
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@given(st.data())
def test_what_comes_out_is_the_sum_of_what_went_in(data: st.DataObject) -> None:
    thought, text = data.draw(st.one_of(st.just(""), texts)), data.draw(st.one_of(st.just(""), texts))
    called = data.draw(st.lists(inputs, max_size=4))
    queues = [[chunk(call(n, f"call_{n}" if first else None, f"tool_{n}" if first else None, piece))
               for first, piece in zip([True] + [False] * 9, data.draw(cut_up(orjson.dumps(input).decode())),
                                       strict=False)]
              for n, input in enumerate(called)]
    chunks = [chunk({"reasoning_content": piece}) for piece in data.draw(cut_up(thought))]
    chunks += [chunk({"content": piece}) for piece in data.draw(cut_up(text))]
    while any(queues):
        chunks.append(data.draw(st.sampled_from([queue for queue in queues if queue])).pop(0))
    spent, reason = data.draw(st.tuples(st.integers(0, 999), st.integers(0, 999))), "tool_calls" if called else "stop"
    stream = b"".join([*chunks, chunk(finish=reason), usage(*spent), DONE])
    read = Read(stream, *sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5))))
    words = [("thinking", thought)] * bool(thought) + [("text", text)] * bool(text)
    made = {one.call_id: (one.name, one.input) for one in read.assembler.writer.calls}
    assert [block for block in read.blocks if block[0] != "tool_use"] == words
    assert made == {f"call_{n}": (f"tool_{n}", input) for n, input in enumerate(called)}
    [ended] = [event for event in read.events if isinstance(event, m.MessageEnded)]
    assert ended.usage == m.Usage(input_tokens=spent[0], output_tokens=spent[1])
    assert read.reading.has_calls is bool(called) and read.reading.is_closed
