"""Lenient reading of Blade: a wrong member is noted once, with its owner; only who looks at it cannot judge."""

from typing import Any

import pytest

from conformance.blade.chat import Chat
from conformance.blade.damaged_members import Damaged, is_damaged, replaced, sound, whole
from conformance.blade.schema_owners import OWNERS, SCHEMAS, WHOLE, expect_shape, read
from conformance.blade.turn_sources import odd_one
from conformance.kit.departures import Departures
from conformance.kit.expect import Failed
from conformance.kit.socketio import SocketEvent

CALL = {"id": "tc_1", "tool_name": "clock", "display_name": "Clock", "arguments": "{}", "status": "done"}
BLOCK = {"type": "text", "content": "Hello"}
TURN = {
    "id": "entry_1", "sequence": 0, "turn_id": "turn_1", "loop_id": "root", "kind": "message", "role": "assistant",
    "status": "completed", "blocks": [BLOCK], "tool_calls": [CALL], "duration_ms": 3, "context_window": 200000,
    "memory_refs": [{"id": 1, "content_preview": "Short"}],
}  # fmt: skip
PATCH = {"session_id": "s", "sequence": 1, "turn_id": "turn_1", "loop_id": "root", "patch_type": "add_content"}
ADDED = {**PATCH, "data": {"type": "text", "content": "Hello", "text_delta": "Hello"}}
CALLED = {**PATCH, "patch_type": "add_tool_call", "data": CALL}


def changed(body: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """A copy with another value at the path; without the member if the value is `...`."""
    if isinstance(body, list):
        return [changed(it, path[1:], value) if at == path[0] else it for at, it in enumerate(body)]
    if len(path) == 1:
        return {name: it for name, it in {**body, path[0]: value}.items() if it is not ...}
    return {**body, path[0]: changed(body[path[0]], path[1:], value)}


@pytest.mark.parametrize(
    ("schema", "body", "path", "value", "owner"),
    [
        ("turn", TURN, ("context_window",), ..., "BL-GEN-01"),
        ("turn", TURN, ("context_window",), "big", "BL-TURN-14"),
        ("turn", TURN, ("tool_calls",), None, "BL-TURN-09"),
        ("turn", TURN, ("blocks", 0, "type"), "markdown", "BL-BLK-02"),
        ("turn", TURN, ("blocks", 0, "content"), {}, "BL-BLK-03"),
        ("turn", TURN, ("blocks", 0, "tool_name"), [], "BL-BLK-01"),
        ("turn", TURN, ("tool_calls", 0, "display_name"), ..., "BL-TC-01"),
        ("turn", TURN, ("tool_calls", 0, "arguments"), "{'a': None}", "BL-TC-04"),
        ("turn", TURN, ("memory_refs", 0, "id"), "1", "BL-MREF-01"),
        ("event.turn-patch", ADDED, ("session_id",), ..., "BL-PATCH-01"),
        ("event.turn-patch", ADDED, ("patch_type",), "append", "BL-PATCH-02"),
        ("event.turn-patch", ADDED, ("data", "text_delta"), ..., "BL-PATCH-03"),
        ("event.turn-patch", ADDED, ("data", "text_delta"), 7, "BL-PATCH-04"),
        ("event.turn-patch", CALLED, ("data", "arguments"), "{", "BL-PATCH-06"),
        ("event.chat-end", {"status": "completed"}, ("status",), ..., "BL-FLOW-04"),
        ("ui", {"target": "inline"}, ("target",), ..., "BL-META-04"),
        ("ui", {"target": "inline"}, ("height",), "1px", "BL-META-06"),
        ("messages", [{**TURN, "id": 7}], (0, "loop_id"), 7, "BL-TURN-02"),
    ],
)
def test_a_wrong_member_has_one_owner(
    schema: str, body: Any, path: tuple[str | int, ...], value: Any, owner: str
) -> None:
    departures = Departures()
    read(departures, schema, changed(body, path, value), "it")
    assert owner in [item.owner for item in departures.noted]
    if schema != "messages":
        assert len(departures.noted) == 1
        with pytest.raises(Failed) as failure:
            expect_shape(schema, changed(body, path, value), "it")
        assert failure.value.owner == owner


def test_what_fits_is_given_back_as_it_is() -> None:
    departures = Departures()
    assert read(departures, "turn", TURN, "it") == TURN
    assert departures.noted == []


def test_every_schema_of_an_event_or_body_has_an_owner() -> None:
    parts = {"common"}
    assert set(SCHEMAS.names) - parts == set(OWNERS) | set(WHOLE)


def test_only_who_looks_at_a_damaged_member_fails() -> None:
    found = read(Departures(), "turn", changed(TURN, ("sequence",), "first"), "it")
    assert found["turn_id"] == "turn_1"
    assert "sequence" in found
    assert is_damaged(found["sequence"])
    for look in (lambda: found["sequence"] == 0, lambda: sorted([found["sequence"], 1]), lambda: {found["sequence"]},
                 lambda: f"{found['sequence']}", lambda: sound(found["sequence"]), lambda: whole([found])):  # fmt: skip
        with pytest.raises(Failed) as failure:
            look()
        assert failure.value.owner == "BL-TURN-03"


def test_what_lies_within_something_damaged_is_part_of_it() -> None:
    outer, inner = Damaged("A-1", "a", "b"), Damaged("A-2", "a", "b")
    found = replaced(replaced({"data": {"type": 1}}, ("data",), outer), ("data", "type"), inner)
    assert found["data"] is outer


def told(deltas: list[str], contents: list[str], end: str) -> Chat:
    data = [{"type": "text", "content": it, "text_delta": at} for at, it in zip(deltas, contents, strict=True)]
    patches = [("turn:patch", {**PATCH, "data": it}) for it in data]
    ended = {**TURN, "blocks": [{"type": "text", "content": end}]}
    return Chat(tuple(SocketEvent(*it) for it in [("turn:start", TURN), *patches, ("turn:end", ended)]))


@pytest.mark.parametrize(
    ("deltas", "contents", "end", "history", "odd"),
    [
        (["a", "b"], ["a", "ab"], "ab", "ab", None),
        (["b"], ["ab"], "ab", "ab", "deltas"),
        (["a", "ab"], ["a", "ab"], "ab", "ab", "deltas"),
        (["a", "b"], ["a", "ab"], "a", "ab", "end"),
        (["a", "b"], ["a", "ab"], "a", "a", "blocks"),
        (["a", "b"], ["a", "ab"], "ab", "AB", "history"),
    ],
)
def test_the_witness_at_odds_with_the_others_is_wrong(
    deltas: list[str], contents: list[str], end: str, history: str, odd: str | None
) -> None:
    kept = {**TURN, "blocks": [{"type": "text", "content": history}]}
    assert odd_one(told(deltas, contents, end).turns[0], kept) == odd
