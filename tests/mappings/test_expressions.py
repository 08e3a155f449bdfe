"""How right-hand sides are read."""

from typing import Any

import pytest

from mappings.language.expressions import Array, Constant, Node, Object, Slot, parse_expression, slots, wrap_in_envelope


def read(value: Any) -> Node:
    mistakes: list[str] = []
    node = parse_expression(value, (), lambda path, message: mistakes.append(message))
    assert not mistakes
    return node


@pytest.mark.parametrize(("text", "name", "steps", "filters"), [
    ("$delta", "delta", (), ()),
    ("$call.input.q", "call", ("input", "q"), ()),
    ("$at | iso", "at", (), ("iso",)),
    ("$fault.code|fault | optional", "fault", ("code",), ("fault", "optional")),
    ("$outcome | outcome@stop", "outcome", (), ("outcome@stop",)),
])
def test_a_slot(text: str, name: str, steps: tuple[str, ...], filters: tuple[str, ...]) -> None:
    node = read(text)
    assert isinstance(node, Slot)
    assert (node.name, node.steps, node.filters) == (name, steps, filters)


@pytest.mark.parametrize("value", ["", "plain words", "costs $5", 3, 1.5, True, None])
def test_anything_else_is_a_constant(value: Any) -> None:
    assert read(value) == Constant(value)


def test_two_dollars_are_one_that_is_meant() -> None:
    assert read("$$name") == Constant("$name")


def test_a_splice_of_what_is_written_out_becomes_keys() -> None:
    node = read({"a": 1, "<<": [{"a": 2, "b": 3}, {"c": "$x"}], "d": 4})
    assert isinstance(node, Object)
    assert [key for key, _ in node.items] == ["a", "b", "c", "d"]
    assert dict(node.items)["a"] == Constant(1, ("a",))


def test_an_envelope_takes_name_and_body() -> None:
    envelope = read({"type": "$wire", "inner": ["$wire", "$body"], "<<": "$body"})
    made = wrap_in_envelope(envelope, "hello", read({"type": "mine", "x": "$seq"}))
    assert isinstance(made, Object)
    items = dict(made.items)
    assert list(items) == ["type", "inner", "x"]
    assert items["type"] == Constant("hello", ("type",))
    assert isinstance(items["inner"], Array) and isinstance(items["inner"].items[1], Object)


def test_a_body_that_is_known_only_later_stays_a_splice() -> None:
    made = wrap_in_envelope(read({"<<": "$body"}), "hello", read("$turn"))
    assert isinstance(made, Object) and made.items == (("...", Slot("turn", (), ())),)


def test_slots_are_found_with_their_keys() -> None:
    node = read({"a": "$x", "b": ["$y"], "<<": "$z"})
    assert [(slot.name, key) for slot, key in slots(node)] == [("x", "a"), ("y", None), ("z", "...")]
