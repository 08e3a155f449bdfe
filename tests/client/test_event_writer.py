"""The writer: whatever is written with it is grammatical, and what is not cannot be written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.backends import EventWriter
from gateway.ports import ScopedEvent
from tests.support.backends.turn_driver import FakeTurn


@pytest.fixture
def writer() -> EventWriter:
    return EventWriter(FakeTurn(m.SendMessage(content="")), clock=iter((10.0, 10.25)).__next__)


def test_a_block_ends_with_the_sum_of_its_deltas(writer: EventWriter) -> None:
    writer.start_message(model="m")
    writer.start()
    deltas = [writer.delta("one "), writer.delta("two")]
    ended = writer.end()
    assert [delta.delta for delta in deltas if isinstance(delta, m.BlockDelta)] == ["one ", "two"]
    assert isinstance(ended, m.BlockEnded)
    assert ended.text == "one two"
    assert writer.texts == [(m.BlockKind.TEXT, "one two")]


def test_a_message_knows_how_long_it_took(writer: EventWriter) -> None:
    writer.start_message()
    ended = writer.end_message(stop_reason=m.StopReason.REFUSAL, usage=m.Usage(output_tokens=3))
    assert (ended.duration_ms, ended.stop_reason, ended.usage.output_tokens) == (250, m.StopReason.REFUSAL, 3)


def test_a_call_is_written_in_pieces_and_parsed_from_them(writer: EventWriter) -> None:
    writer.start_message()
    started, *pieces, ended = writer.call("calc", {"expression": "1 + 1 + 1 + 1"}, origin=m.ToolOrigin.MCP, server="s")
    assert len(pieces) > 1
    assert started.call.input == {}
    assert ended.call == writer.calls[0]
    assert (ended.call.input, ended.call.server) == ({"expression": "1 + 1 + 1 + 1"}, "s")


@pytest.mark.parametrize("json", ['{"a": ', "[1]", "nonsense", '"word"'])
def test_a_call_whose_input_is_no_object_is_torn(writer: EventWriter, json: str) -> None:
    writer.start_message()
    writer.start_call("calc", call_id="mine")
    writer.delta(json)
    assert writer.end().torn
    assert not writer.calls


def test_a_call_without_deltas_has_an_empty_input(writer: EventWriter) -> None:
    writer.start_message()
    writer.start_call("clock", call_id="mine")
    assert writer.end().call.input == {}


def test_a_childs_writer_says_everything_in_its_scope() -> None:
    writer = EventWriter(FakeTurn(m.SendMessage(content="")), "scope_1")
    said = [writer.start_message(), *writer.think("hm", "sig"), *writer.text("hi"),
            *writer.image("data:,"), *writer.data("card", 1),
            writer.annotate(m.AnnotationTopic.SEARCH, "x"), writer.end_message()]
    assert all(isinstance(one, ScopedEvent) and one.scope_id == "scope_1" for one in said)


def test_close_says_the_missing_ends_and_nothing_else(writer: EventWriter) -> None:
    assert writer.close() == []
    writer.start_message()
    writer.start()
    assert [type(one).__name__ for one in writer.close()] == ["BlockEnded", "MessageEnded"]
    assert not writer.in_message


@pytest.mark.parametrize("write", [
    lambda writer: writer.delta("x"),
    lambda writer: writer.end(),
    lambda writer: writer.start(),
    lambda writer: writer.end_message(),
    lambda writer: writer.annotate(m.AnnotationTopic.SEARCH, ""),
    lambda writer: (writer.start_message(), writer.start_message()),
    lambda writer: (writer.start_message(), writer.start(), writer.start()),
    lambda writer: (writer.start_message(), writer.start(), writer.end_message()),
    lambda writer: (writer.start_message(), writer.start(m.BlockKind.TOOL_USE)),
    lambda writer: (writer.start_message(), writer.start(m.BlockKind.IMAGE)),
    lambda writer: (writer.start_message(), writer.start(), writer.call("x")),
])
def test_what_would_break_the_grammar_is_refused(writer: EventWriter, write: object) -> None:
    with pytest.raises(m.GrammarError):
        write(writer)  # type: ignore[operator]


_TOPIC = (m.AnnotationTopic.INTENT, "chat")
MOVES = st.sampled_from((
    "start_message", "end_message", "start", "think", "delta", "end", "call", "image", "close", "annotate",
))


@given(st.lists(MOVES, max_size=40))
def test_whatever_is_tried_only_grammar_comes_out(moves: list[str]) -> None:
    writer, grammar = EventWriter(FakeTurn(m.SendMessage(content=""))), m.Grammar()
    grammar.check(m.TurnStarted(command_id="c"))
    given = {"think": ("a",), "delta": ("b",), "call": ("c", {"d": [1]}), "image": ("e",), "annotate": _TOPIC}
    for move in moves:
        try:
            said = getattr(writer, move)(*given.get(move, ()))
        except m.GrammarError:
            continue
        for event in said if isinstance(said, list) else [said]:
            grammar.check(event, m.ROOT)
