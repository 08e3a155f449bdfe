"""The clients of AAP and CAS know a call that asks people by the questions in its input."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from adapters.aap.client.readers import SessionTools
from adapters.cas.client.readers import read_ask

TOOL = "AskUserQuestion"


def asked_of_aap(input: dict[str, Any]) -> m.AnyAsk | None:
    found = SessionTools().asks([m.ToolCall(call_id="c", name=TOOL, input=input)], is_all=False)
    return found[0][1] if found else None


def asked_of_cas(input: dict[str, Any]) -> m.AnyAsk | None:
    call = m.ToolCall(call_id="c", name=TOOL, input=input, origin=m.ToolOrigin.CLIENT)
    return read_ask(call, [])


DIALECTS = pytest.mark.parametrize("asked", [asked_of_aap, asked_of_cas])


def questions(ask: m.AnyAsk | None) -> tuple[m.Question, ...]:
    assert isinstance(ask, m.QuestionAsk)
    return ask.questions


@DIALECTS
def test_what_is_asked_is_read_back(asked: Any) -> None:
    given = (
        m.Question(question="Which?", options=(m.Choice(label="this"), m.Choice(label="that", description="new"))),
        m.Question(question="Why?", header="H", multi_select=True),
    )
    assert questions(asked(m.question_call(m.QuestionAsk(questions=given), "c").input)) == given


@DIALECTS
def test_an_option_may_be_a_text_and_keeps_its_place_whatever_it_looks_like(asked: Any) -> None:
    described = [{"label": "c", "description": ""}, {"label": "d", "description": "the last"}]
    odd = ["a", {"label": None}, {}, 7, [], *described]
    [question] = questions(asked({"questions": [{"question": "Which?", "options": odd, "multi_select": True}]}))
    assert [choice.label for choice in question.options] == ["a", "", "", "7", "", "c", "d"]
    assert [choice.description for choice in question.options] == [None] * 6 + ["the last"]
    assert question.multi_select
    assert questions(asked({"questions": [{"question": "Why?", "options": None}]})) == (m.Question(question="Why?"),)


@DIALECTS
@pytest.mark.parametrize("input", [{}, {"questions": []}, {"questions": "?"}, {"questions": [{"q": 1}]},
                                   {"questions": [{"question": "Why?"}, 3]}])
def test_a_call_without_questions_asks_nothing(asked: Any, input: dict[str, Any]) -> None:
    assert asked(input) is None


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["question", "options", "label", "header", "multiSelect"]), inner, max_size=4),
)


@DIALECTS
@given(st.dictionaries(st.sampled_from(["questions", "options"]), junk))
def test_no_input_of_a_call_breaks_a_reader(asked: Any, input: dict[str, Any]) -> None:
    ask = asked(input)
    for question in questions(ask) if ask else ():
        assert isinstance(question.question, str)
        assert all(isinstance(choice.label, str) for choice in question.options)
