"""Runs: what the cases ask of the events of a turn."""

from typing import Any

import pytest

from conformance.cas.run import Run, answer, text_of, texts
from conformance.kit.expect import Failed

CALL = {"id": "evt_2", "type": "agent.tool_use", "name": "calc", "evaluated_permission": "ask"}
CREATED = {"id": "evt_3", "type": "session.thread_created", "session_thread_id": "sthr_1"}


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"id": "evt_4", "type": "agent.message", "content": [{"type": "text", "text": text}], **more}


def run(*events: dict[str, Any], **reason: Any) -> Run:
    message = {"id": "evt_1", "type": "user.message", "content": []}
    idle = {"id": "evt_9", "type": "session.status_idle", "stop_reason": reason or {"type": "end_turn"}}
    return Run("the message", [message], [message, *events, idle])


def test_the_text_of_a_run_is_what_the_coordinator_said() -> None:
    found = run(said("a"), CREATED, said("child", session_thread_id="sthr_1"), said("b"))
    assert found.text == "ab"
    assert found.spoke() is found
    assert found.stopped("end_turn", "cancelled").stop == "end_turn"


def test_pending_calls_are_found_by_their_ids() -> None:
    assert run(CALL, type="requires_action", event_ids=["evt_2"]).pending == [CALL]
    with pytest.raises(Failed, match="evt_7"):
        _ = run(CALL, type="requires_action", event_ids=["evt_7"]).pending
    with pytest.raises(Failed, match="to stop with requires_action"):
        _ = run(CALL).pending


def test_what_the_profile_promises_is_expected() -> None:
    found = run(CALL)
    assert found.one("agent.tool_use") == CALL
    with pytest.raises(Failed, match=r"one agent\.message"):
        found.one("agent.message")
    with pytest.raises(Failed, match=r"a agent\.thinking"):
        found.some("agent.thinking")
    with pytest.raises(Failed, match="say something"):
        found.spoke()


def test_every_kind_of_call_has_an_answer() -> None:
    assert answer(CALL) == {"type": "user.tool_confirmation", "tool_use_id": "evt_2", "result": "allow"}
    assert answer({"id": "evt_5", "type": "agent.custom_tool_use"})["custom_tool_use_id"] == "evt_5"
    with pytest.raises(Failed, match="the type of a pending event"):
        answer(said("a"))


@pytest.mark.parametrize(
    ("content", "whole", "parts"),
    [
        ("a", "a", ["a"]),
        (None, "", []),
        ([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": ""}], "a", ["a"]),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab", ["a", "b"]),
    ],
)
def test_text_is_found_in_strings_and_blocks(content: Any, whole: str, parts: list[str]) -> None:
    assert (text_of(content), texts(content)) == (whole, parts)
