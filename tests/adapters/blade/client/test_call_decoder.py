"""Calls as servers tell them: whole or in pieces, twice, without a name; each is made once and comes back once."""

from typing import Any

import pytest

import gateway.model as m
from adapters.blade.client.call_decoder import CANCELLED, UNKNOWN_RESULT
from gateway.errors import BackendFailed
from tests.adapters.blade.client.test_turn_decoder import ended, parts, patch, starting
from tests.support.dialects.blade.facts import CheckedDecoder

ASKED = '{"questions": [{"question": "Which?", "options": ["this", {"label": "that"}], "multiSelect": true}]}'


def call(ear: CheckedDecoder, call_id: str = "tc_1", name: str = "calc", **facts: Any) -> None:
    patch(ear, "add_tool_call", **{"id": call_id, "tool_name": name, "arguments": "{}", "status": "pending", **facts})


def back(ear: CheckedDecoder, call_id: str = "tc_1", **facts: Any) -> None:
    patch(ear, "tool_result", **{"tool_call_id": call_id, "result": "42", "status": "done", **facts})


@pytest.mark.parametrize("arguments", [None, "", "{}", {}])
def test_a_call_without_input(arguments: Any) -> None:
    ear = starting()
    call(ear, arguments=arguments)
    back(ear)
    assert parts(ended(ear)) == [("call", "tc_1", "calc", {}, None)]
    assert ear.facts.results == {"tc_1": ("42", False, None)}


def test_a_call_whose_arguments_grow_is_told_when_they_are_whole() -> None:
    ear = starting()
    for arguments in ("", '{"x"', '{"x": 1}'):
        turn = {"turn_id": "t1", "tool_calls": [{"id": "tc_1", "tool_name": "calc", "arguments": arguments,
                                                  "status": "pending"}]}
        patch(ear, "sync", turn=turn)
    back(ear)
    assert parts(ended(ear)) == [("call", "tc_1", "calc", {"x": 1}, None)]


def test_arguments_that_never_become_whole_are_torn() -> None:
    ear = starting()
    call(ear, arguments='{"x"')
    back(ear, status="error")
    ended(ear)
    [block] = [said for said in ear.said if isinstance(said, m.BlockEnded)]
    assert block.torn
    assert ear.facts.results == {}


def test_two_calls_with_one_id_in_one_turn_are_one() -> None:
    ear = starting()
    call(ear, arguments='{"x": 1}')
    call(ear, arguments='{"x": 2}')
    back(ear)
    back(ear, result="43")
    assert parts(ended(ear)) == [("call", "tc_1", "calc", {"x": 1}, None)]
    assert ear.facts.results == {"tc_1": ("42", False, None)}


def test_an_id_that_is_used_again_is_exchanged_while_the_first_is_open() -> None:
    ear = starting()
    call(ear)
    ear.hear("turn:start", {"turn_id": "t2", "role": "assistant"})
    patch(ear, "add_tool_call", "t2", id="tc_1", tool_name="calc", arguments="{}", status="pending")
    patch(ear, "tool_result", "t2", tool_call_id="tc_1", result="second", status="done")
    back(ear, result="first")
    ended(ear, "t2")
    assert sorted(result[0] for result in ear.facts.results.values()) == ["first", "second"]


def test_a_result_for_a_call_nobody_made() -> None:
    ear = starting()
    back(ear, "tc_9")
    patch(ear, "set_tool_status", tool_call_id="tc_9", status="cancelled")
    ended(ear)
    assert ear.facts.results == {}


def test_a_call_that_does_not_come_back() -> None:
    ear = starting()
    call(ear)
    ended(ear)
    assert ear.facts.results == {"tc_1": (UNKNOWN_RESULT, True, None)}


def test_a_call_that_is_cancelled() -> None:
    ear = starting()
    call(ear, display_name="Calculator")
    patch(ear, "set_tool_status", tool_call_id="tc_1", status="cancelled")
    back(ear)
    assert parts(ended(ear)) == [("call", "tc_1", "calc", {}, "Calculator")]
    assert ear.facts.results == {"tc_1": (CANCELLED, True, None)}


@pytest.mark.parametrize("name", ["AskUserQuestion", "ExitPlanMode"])
def test_a_call_that_waits_is_a_question(name: str) -> None:
    ear = starting()
    call(ear, name=name, arguments=ASKED, status="awaiting_answer")
    ear.hear("turn:end", {"turn_id": "t1", "status": "paused"})
    ear.hear("chat:end", {"status": "completed"})
    assert ear.hearing.paused
    [asked] = ear.asked
    assert isinstance(asked.ask, m.QuestionAsk) and asked.ask.call is not None
    [question] = asked.ask.questions
    assert ([choice.label for choice in question.options], question.multi_select) == (["this", "that"], True)
    assert [said.status for said in ear.said if isinstance(said, m.ToolStatusChanged)] == ["awaiting_input"]


def test_what_only_the_end_of_the_chat_tells_is_asked() -> None:
    ear = starting()
    told = {"tool_call_id": "tc_1", "arguments": {"questions": [{"question": "Which?"}]}}
    ear.hear("chat:end", {"status": "paused", "pause_tool": "builtin:AskUserQuestion", "pause_tool_data": told})
    assert ear.hearing.paused
    assert [asked.ref for asked in ear.asked] == ["tc_1"]


UNUSABLE = [None, {}, [], "tc_1", {"tool_call_id": ""}, {"tool_call_id": 7}, {"arguments": {"questions": []}}]


@pytest.mark.parametrize("told", UNUSABLE)
def test_a_chat_that_waits_must_have_asked_something(told: Any) -> None:
    """The server waits for an answer that nobody could give: this is no chat that has ended well."""
    with pytest.raises(BackendFailed, match="has asked nothing"):
        starting().hear("chat:end", {"status": "paused", "pause_tool_data": told})
    asking = starting()
    call(asking, name="AskUserQuestion", arguments=ASKED, status="awaiting_answer")
    asking.hear("chat:end", {"status": "paused", "pause_tool_data": told})
    assert asking.hearing.paused and len(asking.asked) == 1


@pytest.mark.parametrize("told", UNUSABLE)
@pytest.mark.parametrize("status", ["completed", None])
def test_a_chat_that_does_not_say_that_it_waits_has_ended(status: str | None, told: Any) -> None:
    ear = starting()
    ear.hear("chat:end", {"status": status, "pause_tool_data": told})
    assert [end[0] for end in ear.facts.ends] == ["completed"]


@pytest.mark.parametrize("status", ["failed", "interrupted"])
def test_a_chat_that_has_failed_waits_for_nobody(status: str) -> None:
    ear = starting()
    told = {"tool_call_id": "tc_1", "arguments": {"questions": [{"question": "Which?"}]}}
    ear.hear("chat:end", {"status": status, "pause_tool_data": told})
    assert (ear.asked, [end[0] for end in ear.facts.ends]) == ([], [status])


def test_a_question_without_questions_is_one() -> None:
    ear = starting()
    call(ear, name="confirm", display_name="Confirm", status="awaiting_answer")
    ear.hear("chat:end", {})
    [asked] = ear.asked
    assert isinstance(asked.ask, m.QuestionAsk)
    assert asked.ask.questions[0].question == "Confirm waits for an answer."


def test_a_turn_that_waits_can_be_ended_from_elsewhere() -> None:
    ear = starting()
    call(ear, name="AskUserQuestion", arguments=ASKED, status="awaiting_answer")
    ear.hear("chat:end", {})
    ear.hear("chat:end", {"status": "interrupted"})
    assert [end[0] for end in ear.facts.ends] == ["interrupted"]
    assert not ear.hearing.paused
