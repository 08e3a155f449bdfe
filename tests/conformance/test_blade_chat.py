"""Chats and their order: read from what was heard, with the questions the cases ask of them."""

from typing import Any

import pytest

from conformance.blade.chat import Chat
from conformance.blade.event_order import in_order
from conformance.blade.patch import cumulative
from conformance.blade.snapshot import merged, meta_of, plain, read, text_of
from conformance.kit.expect import Failed
from conformance.kit.socketio import SocketEvent

CALL = {"id": "tc_1", "tool_name": "Agent", "display_name": "Fork", "arguments": "{}", "status": "pending"}
Said = tuple[str, dict[str, Any]]


def turn(name: str, turn_id: str, role: str = "assistant", parent: str | None = None, **more: Any) -> Said:
    body = {"turn_id": turn_id, "role": role, "status": "completed", "parent_fork_tool_call_id": parent}
    return f"turn:{name}", {**body, "blocks": [], "tool_calls": [], **more}


def patch(turn_id: str, kind: str, **data: Any) -> Said:
    return "turn:patch", {"turn_id": turn_id, "patch_type": kind, "data": data}


def text(turn_id: str, delta: str, content: str) -> Said:
    return patch(turn_id, "add_content", type="text", content=content, text_delta=delta)


def chat(*said: Said) -> Chat:
    return Chat(tuple(SocketEvent(name, body) for name, body in said))


START, END = ("chat:start", {}), ("chat:end", {"status": "completed"})
USER = (turn("start", "u", "user"), turn("end", "u", "user"))
PLAIN = (START, *USER, turn("start", "a"), text("a", "Hi", "Hi"), turn("end", "a"), END)
FORK = (
    START,
    *USER,
    turn("start", "a"),
    patch("a", "add_tool_call", **CALL),
    turn("start", "b", parent="tc_1"),
    turn("end", "b", parent="tc_1"),
    patch("a", "tool_result", tool_call_id="tc_1", result="ok", status="done"),
    turn("end", "a"),
    END,
)


@pytest.mark.parametrize("said", [PLAIN, FORK, (*PLAIN[:3], ("bg:started", {}), *PLAIN[3:])])
def test_a_chat_in_order_is_in_order(said: tuple[Said, ...]) -> None:
    in_order(chat(*said))


@pytest.mark.parametrize(
    "said",
    [
        PLAIN[1:],
        (START, *PLAIN),
        (START, *PLAIN[3:]),
        (START, *USER, *PLAIN[1:]),
        (*PLAIN[:5], END),
        (*PLAIN[:4], PLAIN[5], PLAIN[4], END),
        (START, *USER, turn("start", "a"), turn("start", "b"), turn("end", "b"), turn("end", "a"), END),
        (*FORK[:4], *FORK[5:7], FORK[4], *FORK[7:]),
    ],
)
def test_a_chat_out_of_order_is_not(said: tuple[Said, ...]) -> None:
    with pytest.raises(Failed):
        in_order(chat(*said))


def test_an_answer_may_take_up_an_earlier_turn() -> None:
    late = (START, patch("old", "tool_result", tool_call_id="tc_0", result=1, status="done"), *PLAIN[3:])
    in_order(chat(*late), {"old"})
    with pytest.raises(Failed):
        in_order(chat(*late), {"other"})


def test_a_chat_is_told_apart_into_turns() -> None:
    found = chat(*FORK)
    assert [told.turn_id for told in found.users] == ["u"]
    assert [told.turn_id for told in found.replies] == ["a"]
    assert [told.turn_id for told in found.children] == ["b"]
    assert found.call("Agent") == CALL
    assert found.place("turn:patch", patch_type="tool_result") == 7
    with pytest.raises(Failed, match="as the profile promises"):
        found.question()
    with pytest.raises(Failed, match="turn:end with"):
        found.place("turn:end", turn_id="nobody")


@pytest.mark.parametrize("content", [("a", "ab", "abc"), ("a", "b", "bc"), ("a", "b", "c")])
def test_content_is_cumulative_or_begins_anew(content: tuple[str, ...]) -> None:
    cumulative(chat(*(text("t", delta, whole) for delta, whole in zip("abc", content, strict=True))).turns[0], "text")


@pytest.mark.parametrize("content", [("a", "ba", "cba"), ("", "", ""), ("a", "ab", "b")])
def test_other_content_is_wrong(content: tuple[str, ...]) -> None:
    told = chat(*(text("t", delta, whole) for delta, whole in zip("abc", content, strict=True)))
    with pytest.raises(Failed, match="content to be"):
        cumulative(told.turns[0], "text")


def test_snapshots_are_compared_by_what_they_say() -> None:
    blocks = [{"type": "text", "content": "a"}, {"type": "text", "content": ""}, {"type": "text", "content": "b"}]
    assert merged(blocks) == [["text", "ab"]] == merged([{"type": "text", "content": "ab", "tool_name": None}])
    assert text_of({"blocks": blocks}) == "ab"
    same = {"id": 1, "sequence": 0, "turn_id": "t", "loop_id": "root", "kind": "message", "role": "user", "status": "x"}
    one = same | {"blocks": blocks, "tool_calls": [CALL | {"result": None}], "extra": 1}
    other = same | {"blocks": blocks, "tool_calls": [CALL], "parent_fork_tool_call_id": None}
    assert plain(one) == plain(other)
    assert plain(one) != plain(other | {"blocks": []})


@pytest.mark.parametrize(
    ("result", "meta"), [({"_meta": {"a": 1}}, {"a": 1}), ('{"_meta": {"a": 1}}', {"a": 1}), ("plain", {}), (None, {})]
)
def test_meta_is_found_in_objects_and_in_json(result: Any, meta: Any) -> None:
    assert meta_of(result) == meta
    assert read("{") == "{"
