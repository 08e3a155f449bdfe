"""Whatever order facts come in, what the assembler says is lawful, and adds up to the facts."""

import json
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.client import StreamAssembler
from gateway.ports import BackendEvent, ScopedEvent


def assembler(scope_id: str = m.ROOT) -> StreamAssembler:
    numbers = count(1)
    return StreamAssembler(lambda prefix: f"{prefix}_{next(numbers)}", scope_id)


def lawful(said: list[BackendEvent]) -> m.Grammar:
    grammar = m.Grammar()
    grammar.check(m.InputAccepted(command_id="c", command=m.SendMessage(content="hi")))
    grammar.check(m.TurnStarted(command_id="c"))
    for one in said:
        assert not isinstance(one, ScopedEvent)
        grammar.check(one)
    return grammar


def wholes(said: list[BackendEvent]) -> list[tuple[str, object]]:
    """Every block that ended: its text, or the name and input of its call."""
    ended = [one for one in said if isinstance(one, m.BlockEnded)]
    return [(one.kind, (one.call.name, one.call.input) if one.call else one.text) for one in ended if not one.torn]


# -- facts in any order ------------------------------------------------------------------------------------------------

TEXTS = st.lists(st.text(min_size=1, max_size=6), max_size=4)
INPUTS = st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=5), max_size=3)
BLOCKS = st.lists(st.one_of(
    st.tuples(st.just(m.BlockKind.TEXT), TEXTS),
    st.tuples(st.just(m.BlockKind.THINKING), TEXTS),
    st.tuples(st.just(m.BlockKind.TOOL_USE), INPUTS),
), min_size=1, max_size=6)


def pieces(text: str, size: int) -> list[str]:
    return [text[at:at + size] for at in range(0, len(text), size)]


@given(blocks=BLOCKS, size=st.integers(1, 7), chance=st.randoms(use_true_random=False))
def test_blocks_that_grow_side_by_side_are_told_one_after_the_other(blocks, size, chance) -> None:  # type: ignore[no-untyped-def]
    facts: list[list[tuple[str, object]]] = []
    for kind, content in blocks:
        if kind is m.BlockKind.TOOL_USE:
            written = json.dumps(content)
            facts.append([("call", None), *(("arguments", piece) for piece in pieces(written, size)), ("end", None)])
        else:
            facts.append([*((str(kind), piece) for piece in content), ("end", None)])
    hand, said, begun = assembler(), [], []
    waiting = {key: list(steps) for key, steps in enumerate(facts)}
    while waiting:
        key = chance.choice(sorted(waiting))
        what, piece = waiting[key].pop(0)
        if not waiting[key]:
            del waiting[key]
        if what == "call":
            begun.append(key)
            said += hand.call(key, m.ToolCall(call_id=f"call-{key}", name=f"tool-{key}"))
        elif what == "arguments":
            said += hand.input_delta(key, piece)
        elif what == "end":
            said += hand.end(key)
        else:
            begun += [] if key in begun else [key]
            said += hand.text_delta(key, piece, m.BlockKind(what))
    said += hand.finish(m.StopReason.TOOL_USE, m.Usage(output_tokens=3))
    lawful(said)
    expected = [
        (kind, (f"tool-{key}", content) if kind is m.BlockKind.TOOL_USE else "".join(content))
        for key in begun for kind, content in [blocks[key]]
    ]
    assert wholes(said) == expected
    deltas = "".join(
        one.delta for one in said if isinstance(one, m.BlockDelta) and one.kind is not m.BlockKind.TOOL_USE
    )
    assert deltas == "".join(str(whole) for kind, whole in expected if kind is not m.BlockKind.TOOL_USE)
    if begun:
        assert isinstance(said[0], m.MessageStarted) and isinstance(said[-1], m.MessageEnded)
        assert (said[-1].stop_reason, said[-1].usage) == (m.StopReason.TOOL_USE, m.Usage(output_tokens=3))
    else:
        assert said == []


def test_the_first_block_is_told_while_it_grows() -> None:
    hand = assembler()
    hand.begin(model="m")
    assert [type(one) for one in hand.text_delta("a", "One")] == [m.BlockStarted, m.BlockDelta]
    assert hand.text_delta("b", "Two") == []
    assert [one.delta for one in hand.text_delta("a", " more") if isinstance(one, m.BlockDelta)] == [" more"]
    assert wholes(hand.end("a")) == [(m.BlockKind.TEXT, "One more")]
    assert wholes(hand.finish()) == [(m.BlockKind.TEXT, "Two")]


# -- calls -------------------------------------------------------------------------------------------------------------

def test_two_calls_with_one_id_are_two_calls() -> None:
    hand = assembler()
    said = [
        *hand.whole_call(0, m.ToolCall(call_id="x", name="a", input={"n": 1})),
        *hand.whole_call(1, m.ToolCall(call_id="x", name="b", input={"n": 2})), *hand.finish(),
    ]
    ids = [one.call.call_id for one in said if isinstance(one, m.BlockEnded) and one.call]
    assert ids[0] == "x" and len(set(ids)) == 2
    lawful(said)


def test_a_key_that_is_used_again_stands_for_another_block() -> None:
    """Also while the block before it waits to be told."""
    teller = assembler()
    said = [*teller.text_delta("text", "hello"), *teller.call(0, m.ToolCall(call_id="c1", name="one"))]
    said += [*teller.input_delta(0, '{"a":1}'), *teller.call(0, m.ToolCall(call_id="c2", name="two"))]
    said += [*teller.input_delta(0, '{"b":2}'), *teller.text_delta("more", "and"), *teller.end("more")]
    said += [*teller.text_delta("more", "so on"), *teller.end(0), *teller.input_delta(0, "late"), *teller.finish()]
    lawful(said)
    assert wholes(said) == [
        ("text", "hello"), ("tool_use", ("one", {"a": 1})), ("tool_use", ("two", {"b": 2})), ("text", "and"),
        ("text", "so on"),
    ]


@pytest.mark.parametrize("written", ["{\"a\": ", "[1]", "nonsense", "\"text\""])
def test_a_call_whose_input_is_no_object_is_torn(written: str) -> None:
    hand = assembler()
    said = [*hand.call(0, m.ToolCall(call_id="x", name="a")), *hand.input_delta(0, written), *hand.finish()]
    assert [one.torn for one in said if isinstance(one, m.BlockEnded)] == [True]
    assert [call.name for call in hand.broken_calls] == ["a"] and hand.open_calls == {}
    assert hand.returned("x", "late") == []
    lawful(said)


def test_input_for_a_call_that_is_over_says_nothing() -> None:
    hand = assembler()
    said = hand.whole_call(0, m.ToolCall(call_id="x", name="a"))
    assert hand.input_delta(0, "{}") == [] == hand.input_delta(7, "{}")
    lawful([*said, *hand.finish()])


def test_a_result_is_told_once_and_only_of_a_call_that_was_made() -> None:
    hand = assembler()
    said = [*hand.whole_call(0, m.ToolCall(call_id="x", name="a")), *hand.finish()]
    assert hand.returned("y", "nobody's") == [] == hand.status("y", m.ToolStatus.RUNNING)
    said += hand.status("x", m.ToolStatus.RUNNING)
    said += hand.output("x", "…")
    said += hand.returned("x", "done", duration_ms=5)
    assert isinstance(said[-1], m.ToolReturned) and (said[-1].content, said[-1].duration_ms) == ("done", 5)
    assert [one.status for one in said if isinstance(one, m.ToolStatusChanged)] == [m.ToolStatus.RUNNING]
    assert hand.returned("x", "again") == [] == hand.output("x", "more")
    assert lawful(said).calls == {}


# -- the rest ----------------------------------------------------------------------------------------------------------

def test_a_signature_comes_with_the_end_of_the_thought() -> None:
    hand = assembler()
    said = [*hand.text_delta(0, "Hm.", m.BlockKind.THINKING), *hand.sign(0, "s1"), *hand.sign(0, "s2"), *hand.end(0)]
    assert [one.signature for one in said if isinstance(one, m.BlockEnded)] == ["s1s2"]
    alone = [*hand.sign(1, "s3"), *hand.finish()]
    assert [(one.text, one.signature) for one in alone if isinstance(one, m.BlockEnded)] == [("", "s3")]
    lawful([*said, *alone])


def test_pictures_and_data_stand_between_blocks() -> None:
    hand = assembler()
    said = [*hand.text_delta(0, "See"), *hand.image(m.ImagePart(url="https://x/y.png"))]
    said += [*hand.data(m.DataPart(type="plan", content=1)), *hand.finish()]
    assert [one.kind for one in said if isinstance(one, m.BlockEnded)] == ["text", "image", "data"]
    lawful(said)


def test_a_new_message_ends_the_one_before() -> None:
    hand = assembler()
    said = [*hand.begin(model="a"), *hand.text_delta(0, "One"), *hand.begin(model="b"), *hand.text_delta(0, "Two")]
    said += [*hand.end_texts(), *hand.finish()]
    assert [one.model for one in said if isinstance(one, m.MessageStarted)] == ["a", "b"]
    assert wholes(said) == [("text", "One"), ("text", "Two")]
    lawful(said)
    assert hand.finish() == []


def test_a_sub_agent_has_a_scribe_of_its_own() -> None:
    said = assembler("scope_1").text_delta(0, "From below")
    assert all(isinstance(one, ScopedEvent) and one.scope_id == "scope_1" for one in said)


@given(st.lists(st.sampled_from(["", "a", "bc"]), max_size=6), st.sampled_from(["first", "second", "unknown"]))
def test_several_deltas_are_told_as_one_after_the_other(deltas: list[str], key: str) -> None:
    one, other = assembler(), assembler()
    for each in (one, other):
        each.begin()
        each.text_delta("first", "x")
        each.text_delta("second", "y")
    said = one.text_deltas(key, deltas)
    assert said == [event for delta in deltas for event in other.text_delta(key, delta)]
    ends = [[*each.end("first"), *each.finish()[:-1]] for each in (one, other)]  # the last tells how long it took
    assert ends[0] == ends[1]
