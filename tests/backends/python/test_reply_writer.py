"""Strings become a message that opens and closes by itself, wherever events stand between them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.backends.python.reply_writer import ReplyWriter, UnsupportedOutput
from gateway.client import EventWriter
from gateway.ports import Turn
from tests.support.backends.function_backends import function_backend
from tests.support.backends.turn_driver import FakeTurn, play


def reply() -> ReplyWriter:
    return ReplyWriter(FakeTurn(m.SendMessage(content="go")))


def names(said: list[Any]) -> list[str]:
    return [one.name for one in said]


def test_the_first_string_opens_a_message_and_the_next_one_goes_on() -> None:
    saying = reply()
    assert names(saying.take("one")) == ["message.started", "block.started", "block.delta"]
    assert names(saying.take("two")) == ["block.delta"]
    [ended, message] = saying.close()
    assert (ended.text, message.stop_reason) == ("onetwo", m.StopReason.END_TURN)  # type: ignore[union-attr]
    assert saying.close() == []


def test_an_empty_string_says_nothing() -> None:
    assert reply().take("") == []


def test_a_string_of_another_class_is_a_string() -> None:
    class Colour(StrEnum):
        RED = "red"

    delta = reply().take(Colour.RED)[-1]
    assert type(delta.delta) is str  # type: ignore[union-attr]


def test_a_message_of_the_agents_ends_ours_first() -> None:
    saying = reply()
    saying.take("one")
    assert names(saying.take(m.MessageStarted(message_id="m"))) == ["block.ended", "message.ended", "message.started"]
    [start, _] = saying.take("two")
    assert start.message_id == "m", "and strings are text of the message that is open"  # type: ignore[union-attr]


@pytest.mark.parametrize("item", [None, 7, b"bytes", {"text": "x"}, object(), [["x", None]]])
def test_what_is_neither_words_nor_event_is_told(item: Any) -> None:
    kind = "NoneType" if isinstance(item, list) else type(item).__name__
    with pytest.raises(
        UnsupportedOutput, match=f"The agent 'demo' sent a value of type {kind}; it may send strings, events"
    ):
        reply().take(item)


def test_strings_wait_for_the_end_of_a_block_and_no_longer() -> None:
    saying, writer = reply(), EventWriter(FakeTurn(m.SendMessage(content="go")))
    assert names(saying.take([writer.start_message(), writer.start(m.BlockKind.THINKING), "words"])) == [
        "message.started", "block.started"]
    assert names(saying.take(writer.end())) == ["block.ended", "block.started", "block.delta"]
    assert names(saying.take(writer.end_message())) == ["block.ended", "message.ended"]


def test_strings_that_wait_for_a_block_are_not_lost_in_silence() -> None:
    saying, writer = reply(), EventWriter(FakeTurn(m.SendMessage(content="go")))
    saying.take([writer.start_message(), writer.start(m.BlockKind.THINKING), "words"])
    with pytest.raises(m.GrammarError, match="was left open"):
        saying.close()


# -- any mix ----------------------------------------------------------------------------------------------------------

Step = Callable[[Turn, EventWriter], Iterator[Any]]
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


def thinking(between: list[str]) -> Step:
    def step(turn: Turn, writer: EventWriter) -> Iterator[Any]:
        yield writer.start_message()
        yield from between
        yield writer.start(m.BlockKind.THINKING)
        yield writer.delta("hm")
        yield from between
        yield writer.end()
        yield from between
        yield writer.annotate(m.AnnotationTopic.INTENT, "to think")
        yield from between
        yield writer.end_message()
    return step


def calling(between: list[str]) -> Step:
    def step(turn: Turn, writer: EventWriter) -> Iterator[Any]:
        end = writer.end_message
        yield [writer.start_message(), *writer.call("clock"), *between, end(stop_reason=m.StopReason.TOOL_USE)]
        yield from between
        yield m.ToolReturned(call_id=writer.calls[-1].call_id, content="noon")
    return step


def forking(between: list[str]) -> Step:
    def step(turn: Turn, writer: EventWriter) -> Iterator[Any]:
        child = EventWriter(turn, turn.mint("scope"))
        yield child.emit(m.ScopeOpened(parent="root"))
        yield child.start_message()
        yield from between
        yield child.think("so")
        yield child.end_message()
        yield from between
        yield child.emit(m.ScopeStatusChanged(status=m.ScopeStatus.ENDED))
    return step


def beside(between: list[str]) -> Step:
    def step(turn: Turn, writer: EventWriter) -> Iterator[Any]:
        yield (m.NoticePosted(topic="t", title="t"), *between)
        yield m.SessionUpdated(title="t")
    return step


def plainly(between: list[str]) -> Step:
    return lambda turn, writer: iter(between)


ASKS = m.ContinuationAsk(turn=1, message="Go on?")


def asking(between: list[str]) -> Step:
    return lambda turn, writer: iter([*between, ASKS, *between])


steps = st.lists(st.builds(
    lambda make, between: make(between),
    st.sampled_from([thinking, calling, forking, beside, plainly, plainly, asking]), st.lists(words, max_size=3),
), max_size=6)


def strings(items: Any) -> Iterator[str]:
    for item in items:
        if isinstance(item, str):
            yield item
        elif isinstance(item, list | tuple):
            yield from strings(item)


@pytest.mark.parametrize("plain", [False, True])
@given(steps)
def test_any_mix_is_lawful_and_its_text_is_the_strings_joined(plain: bool, mix: list[Step]) -> None:
    said: list[Any] = []

    async def asynchronous(turn: Any) -> AsyncGenerator[Any, None]:
        writer = EventWriter(turn)
        for step in mix:
            for item in step(turn, writer):
                said.append(item)
                if item is ASKS:
                    await turn.ask(item)
                else:
                    yield item

    def in_a_thread(turn: Any) -> Iterator[Any]:
        writer = EventWriter(turn)
        for step in mix:
            for item in step(turn, writer):
                said.append(item)
                if item is ASKS:
                    turn.ask(item)
                else:
                    yield item

    turn = asyncio.run(
        play(function_backend(in_a_thread if plain else asynchronous), FakeTurn(m.SendMessage(content="go")))
    )
    assert turn.text == "".join(strings(said)), "and the grammar was checked on the way"
    passed = [item for item in flat(said) if isinstance(item, m.Event) and not isinstance(item, m.BlockEnded)]
    assert all(event in turn.events for event in passed), "events pass through as they are"


def flat(items: Any) -> Iterator[Any]:
    for item in items:
        if isinstance(item, list | tuple):
            yield from flat(item)
        else:
            yield item
