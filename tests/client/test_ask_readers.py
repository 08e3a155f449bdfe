"""Asks that a server shows as calls: what the input of a call asks of people."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.client import read_continuation, read_questions, read_rollback

QUESTIONS = {"questions": [{"question": "Which?", "options": [{"label": "this"}, "that"], "multiSelect": True}]}


def test_questions_are_found_where_they_are() -> None:
    assert read_questions(QUESTIONS) == (
        m.Question(question="Which?", options=(m.Choice(label="this"), m.Choice(label="that")), multi_select=True),
    )
    assert read_questions({"questions": [{"question": "Why?", "header": "H", "options": None}]}) == (
        m.Question(question="Why?", header="H"),
    )


@pytest.mark.parametrize("input", [{}, {"questions": []}, {"questions": "?"}, {"questions": [{"q": 1}]},
                                   {"questions": [{"question": "Why?"}, 3]}])
def test_no_questions_are_found_where_there_are_none(input: Any) -> None:
    assert read_questions(input) == ()


def test_a_choice_keeps_its_place_whatever_it_looks_like() -> None:
    odd = [{"label": None}, {}, 7, {"label": "c", "description": ""}, {"label": "d", "description": "the last"}]
    [question] = read_questions({"questions": [{"question": "Which?", "options": odd, "multi_select": True}]})
    assert [choice.label for choice in question.options] == ["", "", "7", "c", "d"]
    assert [choice.description for choice in question.options] == [None, None, None, None, "the last"]
    assert question.multi_select


def test_a_rollback_has_states_to_choose_from() -> None:
    states: dict[str, Any] = {"options": [{"id": "a"}], "error": "broke", "reason": ""}
    assert read_rollback(states, "c1") == m.RollbackAsk(task_id="c1", options=({"id": "a"},), error="broke")
    assert read_rollback({**states, "task_id": "t"}, "c1") == m.RollbackAsk(
        task_id="t", options=({"id": "a"},), error="broke")
    assert read_rollback({"options": ["a"]}) is None
    assert read_rollback({}) is None


def test_leave_to_continue_has_a_message() -> None:
    assert read_continuation({"message": "On?", "turn": 3}) == m.ContinuationAsk(message="On?", turn=3)
    assert read_continuation({"message": "On?", "turn": "3"}) == m.ContinuationAsk(message="On?", turn=0)
    assert read_continuation({"turn": 3}) is None


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["questions", "question", "options", "label", "header", "multiSelect", "message", "turn"]),
        inner, max_size=4),
)


@given(st.dictionaries(st.sampled_from(["questions", "options", "message", "turn", "task_id", "error"]), junk))
def test_no_input_of_a_call_breaks_a_reader(input: dict[str, Any]) -> None:
    for question in read_questions(input):
        assert isinstance(question.question, str)
        assert all(isinstance(choice.label, str) for choice in question.options)
    rollback, continuation = read_rollback(input), read_continuation(input)
    assert rollback is None or all(isinstance(option, dict) for option in rollback.options)
    assert continuation is None or isinstance(continuation.message, str)
