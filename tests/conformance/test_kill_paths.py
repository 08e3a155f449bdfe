"""Where in a value things are, and what can be done to them there."""

from typing import Any

import pytest

from conformance.faults.kill.field_damage import FIELD_DAMAGE, UNHEARD, can_damage, damaged_copy
from conformance.faults.kill.paths import Walk, changed

WALK = Walk(("type",), ("*input",))
VALUE: dict[str, Any] = {
    "n": 1,
    "items": [{"type": "text", "text": "a"}, {"type": "call", "input": {"x": {"y": 1}}}, {"text": "b"}, 7],
}


def test_a_path_stands_for_all_values_of_a_shape() -> None:
    assert [path for path, _ in WALK.paths(VALUE)] == [
        "", "n", "items", "items.each(text)", "items.each(text).type", "items.each(text).text", "items.each(call)",
        "items.each(call).type", "items.each(call).input", "items.each", "items.each.text", "items.each",
    ]  # fmt: skip


def test_values_are_found_by_their_path() -> None:
    assert WALK.values(VALUE, "items.each") == [{"text": "b"}, 7]
    assert WALK.values(VALUE, "items.each(text).text") == ["a"]
    assert WALK.values(VALUE, "") == [VALUE]
    assert WALK.values(VALUE, "items.each(other)") == []


def test_a_changed_value_is_a_copy_changed_everywhere() -> None:
    def remove(container: Any, key: Any) -> None:
        del container[key]

    whole, count = changed(WALK, VALUE, "items.each", remove)
    assert (len(whole["items"]), count, len(VALUE["items"])) == (2, 2, 4)


@pytest.mark.parametrize(
    ("kind", "path", "expected"),
    [
        ("drop", "n", {"items": VALUE["items"]}),
        ("null", "n", VALUE | {"n": None}),
        ("type", "n", VALUE | {"n": "7"}),
        ("alter", "n", VALUE | {"n": 2}),
        ("extra", "", VALUE | {UNHEARD: {"of": ["this", 1]}}),
        ("type", "", "x"),
    ],
)
def test_injuries(kind: str, path: str, expected: Any) -> None:
    assert damaged_copy(WALK, kind, VALUE, path) == (expected, 1)


def test_every_type_has_a_wrong_type() -> None:
    for value in ("a", 1, 1.5, True, [], {}, None):
        whole, _ = damaged_copy(WALK, "type", {"a": value}, "a")
        assert type(whole["a"]) is not type(value)


def test_what_cannot_be_done_is_not_done() -> None:
    assert not can_damage("enum", 7, "n")
    assert not can_damage("extra", "text", "a")
    assert not can_damage("drop", VALUE, "")
    assert damaged_copy(WALK, "extra", VALUE, "items.each")[1] == 1
    assert {kind for kind in FIELD_DAMAGE if can_damage(kind, "word", "a")} == {"drop", "null", "type", "enum", "alter"}
