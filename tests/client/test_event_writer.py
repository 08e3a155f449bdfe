"""The pen: whatever is written with it is grammatical, and what is not cannot be written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.backends import EventWriter
from gateway.ports import ScopedEvent
from tests.support.backends.turn_driver import FakeTurn


@pytest.fixture
def pen() -> EventWriter:
    return EventWriter(FakeTurn(m.SendMessage(content="")), clock=iter((10.0, 10.25)).__next__)


def test_a_block_ends_with_the_sum_of_its_deltas(pen: EventWriter) -> None:
    pen.start_message(model="m")
    pen.start()
    deltas = [pen.delta("one "), pen.delta("two")]
    ended = pen.end()
    assert [delta.delta for delta in deltas if isinstance(delta, m.BlockDelta)] == ["one ", "two"]
    assert isinstance(ended, m.BlockEnded)
    assert ended.text == "one two"
    assert pen.texts == [(m.BlockKind.TEXT, "one two")]


def test_a_message_knows_how_long_it_took(pen: EventWriter) -> None:
    pen.start_message()
    ended = pen.end_message(stop_reason=m.StopReason.REFUSAL, usage=m.Usage(output_tokens=3))
    assert (ended.duration_ms, ended.stop_reason, ended.usage.output_tokens) == (250, m.StopReason.REFUSAL, 3)


def test_a_call_is_written_in_pieces_and_parsed_from_them(pen: EventWriter) -> None:
    pen.start_message()
    started, *pieces, ended = pen.call("calc", {"expression": "1 + 1 + 1 + 1"}, origin=m.ToolOrigin.MCP, server="s")
    assert len(pieces) > 1
    assert started.call.input == {}
    assert ended.call == pen.calls[0]
    assert (ended.call.input, ended.call.server) == ({"expression": "1 + 1 + 1 + 1"}, "s")


@pytest.mark.parametrize("json", ['{"a": ', "[1]", "nonsense", '"word"'])
def test_a_call_whose_input_is_no_object_is_torn(pen: EventWriter, json: str) -> None:
    pen.start_message()
    pen.start_call("calc", call_id="mine")
    pen.delta(json)
    assert pen.end().torn
    assert not pen.calls


def test_a_call_without_deltas_has_an_empty_input(pen: EventWriter) -> None:
    pen.start_message()
    pen.start_call("clock", call_id="mine")
    assert pen.end().call.input == {}


def test_a_childs_pen_says_everything_in_its_scope() -> None:
    pen = EventWriter(FakeTurn(m.SendMessage(content="")), "scope_1")
    said = [pen.start_message(), *pen.think("hm", "sig"), *pen.text("hi"), *pen.image("data:,"), *pen.data("card", 1),
            pen.annotate(m.AnnotationTopic.SEARCH, "x"), pen.end_message()]
    assert all(isinstance(one, ScopedEvent) and one.scope_id == "scope_1" for one in said)


def test_close_says_the_missing_ends_and_nothing_else(pen: EventWriter) -> None:
    assert pen.close() == []
    pen.start_message()
    pen.start()
    assert [type(one).__name__ for one in pen.close()] == ["BlockEnded", "MessageEnded"]
    assert not pen.in_message


@pytest.mark.parametrize("write", [
    lambda pen: pen.delta("x"),
    lambda pen: pen.end(),
    lambda pen: pen.start(),
    lambda pen: pen.end_message(),
    lambda pen: pen.annotate(m.AnnotationTopic.SEARCH, ""),
    lambda pen: (pen.start_message(), pen.start_message()),
    lambda pen: (pen.start_message(), pen.start(), pen.start()),
    lambda pen: (pen.start_message(), pen.start(), pen.end_message()),
    lambda pen: (pen.start_message(), pen.start(m.BlockKind.TOOL_USE)),
    lambda pen: (pen.start_message(), pen.start(m.BlockKind.IMAGE)),
    lambda pen: (pen.start_message(), pen.start(), pen.call("x")),
])
def test_what_would_break_the_grammar_is_refused(pen: EventWriter, write: object) -> None:
    with pytest.raises(m.GrammarError):
        write(pen)  # type: ignore[operator]


_TOPIC = (m.AnnotationTopic.INTENT, "chat")
MOVES = st.sampled_from((
    "start_message", "end_message", "start", "think", "delta", "end", "call", "image", "close", "annotate",
))


@given(st.lists(MOVES, max_size=40))
def test_whatever_is_tried_only_grammar_comes_out(moves: list[str]) -> None:
    pen, grammar = EventWriter(FakeTurn(m.SendMessage(content=""))), m.Grammar()
    grammar.check(m.TurnStarted(command_id="c"))
    given = {"think": ("a",), "delta": ("b",), "call": ("c", {"d": [1]}), "image": ("e",), "annotate": _TOPIC}
    for move in moves:
        try:
            said = getattr(pen, move)(*given.get(move, ()))
        except m.GrammarError:
            continue
        for event in said if isinstance(said, list) else [said]:
            grammar.check(event, m.ROOT)
