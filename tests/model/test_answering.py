"""Answers in plain words: what a text means to each ask, and what an answer is as a text."""

from typing import Any

import pytest

from gateway.model import (
    AnswerQuestion,
    Choice,
    ClientToolAsk,
    ContinuationAsk,
    PermissionAsk,
    Question,
    QuestionAsk,
    RollbackAsk,
    ToolCall,
    in_words,
    meant_by,
)

CALL = ToolCall(call_id="c", name="calc")
ASK = QuestionAsk(questions=(
    Question(question="Which colour?", header="Colour", options=(Choice(label="Red"), Choice(label="Green"))),
    Question(question="Which fruits?", options=(Choice(label="Apple"), Choice(label="Fig")), multi_select=True),
))


@pytest.mark.parametrize(("ask", "said", "meant"), [
    (ASK, " Red ", {"custom": {"0": "Red", "1": "Red"}}),
    (ASK, "Colour: Green; Which fruits?: Apple, Fig", {"custom": {"0": "Green", "1": "Apple, Fig"}}),
    (ASK, "Colour: Green", {"custom": {"0": "Colour: Green", "1": "Colour: Green"}}),
    (ContinuationAsk(turn=1, message="on?"), "yes", {"proceed": True}),
    (ContinuationAsk(turn=1, message="on?"), " No", {"proceed": False}),
    (RollbackAsk(task_id="t", options=()), "step\n", {"option": "step"}),
    (PermissionAsk(call=CALL), "yes", None),
    (ClientToolAsk(call=CALL), "42", None),
])
def test_what_words_mean(ask: Any, said: str, meant: Any) -> None:
    assert meant_by(ask, said) == meant


@pytest.mark.parametrize(("answer", "words"), [
    ({"selections": {"0": (1,), "1": (0, 1)}}, "Colour: Green; Which fruits?: Apple, Fig"),
    ({"custom": {"0": "Blue", "1": "Blue"}}, "Blue"),
    ({"selections": {"0": (0,)}, "custom": {"1": "Plum"}, "message": "please"},
     "Colour: Red; Which fruits?: Plum; please"),
    ({"selections": {"0": (9,)}}, ""),
])
def test_an_answer_in_words(answer: Any, words: str) -> None:
    assert in_words(ASK, AnswerQuestion(request_id="r", **answer)) == words


@pytest.mark.parametrize("answer", [
    {"selections": {"0": (1,), "1": (0, 1)}},
    {"selections": {"0": (0,)}, "custom": {"1": "Plum, and more; much: more"}},
])
def test_what_is_told_in_words_is_understood_from_them(answer: Any) -> None:
    words = in_words(ASK, AnswerQuestion(request_id="r", **answer))
    meant = meant_by(ASK, words)
    assert meant is not None
    assert in_words(ASK, AnswerQuestion(request_id="r", **meant)) == words
