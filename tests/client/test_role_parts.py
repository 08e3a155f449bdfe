"""A turn over a generator; methods found by their cues; a memory that forgets what was used longest ago."""

from collections.abc import AsyncGenerator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.client import (
    GeneratorTurn,
    ItemGenerator,
    SessionMemory,
    cue_handlers,
    decodes,
    generator_turn,
    read_names,
)
from gateway.ports import DecodedItem, RemoteTurnEnd

ONE, TWO = m.NoticePosted(topic="t", title="one"), m.NoticePosted(topic="t", title="two")
END = RemoteTurnEnd()


class Server:
    """Says one thing, then two at once; `closed` tells that nobody reads any more."""

    closed = False

    @generator_turn
    async def turn(self) -> AsyncGenerator[DecodedItem | list[DecodedItem], None]:
        try:
            yield ONE
            yield [TWO, END]
        finally:
            self.closed = True


async def test_what_came_together_is_read_together() -> None:
    turn = Server().turn()
    assert [list(await turn.read()) for _ in range(4)] == [[ONE], [TWO, END], [], []]


async def test_the_items_can_be_had_one_by_one() -> None:
    assert [item async for item in Server().turn()] == [ONE, TWO, END]


async def test_closing_closes_the_generator() -> None:
    server = Server()
    turn = server.turn()
    assert isinstance(turn, GeneratorTurn) and await anext(turn) == ONE
    await turn.aclose()
    assert server.closed


async def test_nothing_happens_before_the_first_read() -> None:
    async def items() -> ItemGenerator:
        raise AssertionError("nobody has read")
        yield ONE

    await GeneratorTurn(items()).aclose()


class Decoder:
    def __init__(self) -> None:
        self.said: list[Any] = []

    @decodes("block.delta.text", "block.delta.thinking")
    def delta(self, cue: str, /, index: int, text: str = "") -> None:
        self.said.append((cue, index, text))

    @decodes("turn.ended")
    def ended(self) -> None:
        self.said.append("over")

    def helper(self, other: int) -> None:
        raise AssertionError("it decodes nothing")


def test_a_method_decodes_its_cues() -> None:
    handlers, decoder = cue_handlers(Decoder), Decoder()
    assert handlers.keys() == {"block.delta.text", "block.delta.thinking", "turn.ended"}
    handlers["block.delta.thinking"](decoder, "a cue", {"text": "hm", "index": 2})
    handlers["block.delta.text"](decoder, "a cue", {"index": 3, "unasked": 1})
    handlers["turn.ended"](decoder, {})
    assert decoder.said == [("a cue", 2, "hm"), ("a cue", 3, ""), "over"]


def test_the_parameters_are_what_is_read() -> None:
    """What goes before the slash is given by place, and is nothing of the frame."""
    names = read_names(cue_handlers(Decoder))
    assert names == {"block.delta.text": ("index", "text"), "block.delta.thinking": ("index", "text"), "turn.ended": ()}


def test_the_sessions_that_were_used_last_are_remembered() -> None:
    memory = SessionMemory[list[int]](most=2)
    memory.setdefault("a", []).append(1)
    memory.setdefault("b", []).append(2)
    assert memory.setdefault("a", []) == [1]
    memory.setdefault("c", []).append(3)
    assert (len(memory), memory.get("a"), memory.get("c")) == (2, [1], [3])
    assert memory.setdefault("b", []) == [], "it was forgotten"
    assert len(memory) == 2


def test_to_read_a_state_is_a_use() -> None:
    memory = SessionMemory[int](most=2)
    memory.put("a", 1)
    memory.put("b", 2)
    assert memory.get("a") == 1
    assert memory.put("c", 3) == 2
    assert (memory.get("a"), memory.get("b"), memory.get("c")) == (1, None, 3)


def test_what_is_forgotten_is_returned_once() -> None:
    memory = SessionMemory[str](most=1)
    assert memory.put("a", "first") is None
    assert memory.put("a", "second") is None, "that is the same session"
    assert memory.put("b", "other") == "second"
    assert memory.pop("b") == "other"
    assert memory.pop("b") is None
    assert memory.values() == []


def test_a_busy_session_is_not_forgotten() -> None:
    busy = {"a", "b"}
    memory = SessionMemory[str](most=2, is_busy=busy.__contains__)
    for name in "abc":
        memory.put(name, name)
    assert memory.values() == ["a", "b"], "the new one was the only one to forget"
    busy.add("c")
    memory.put("c", "c")
    assert memory.values() == ["a", "b", "c"]
    busy.discard("a")
    assert memory.put("c", "c") == "a"


def test_all_can_be_forgotten_at_once() -> None:
    memory = SessionMemory[int]()
    memory.put("a", 1)
    memory.clear()
    assert "a" not in memory and len(memory) == 0


@given(st.lists(st.sampled_from("abcdef")), st.integers(1, 4))
def test_the_last_so_many_names_are_known(used: list[str], most: int) -> None:
    memory = SessionMemory[str](most)
    for name in used:
        memory.put(name, name)
    last = list(dict.fromkeys(reversed(used)))[:most]
    assert memory.values() == last[::-1]
