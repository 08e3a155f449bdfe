"""Answers in plain words: what a text means to each ask, and what an answer is as a text."""

from typing import Any

import pytest

import gateway.model as m

CALL = m.ToolCall(call_id="c", name="calc")
ASK = m.QuestionAsk(questions=(
    m.Question(question="Which colour?", header="Colour", options=(m.Choice(label="Red"), m.Choice(label="Green"))),
    m.Question(question="Which fruits?", options=(m.Choice(label="Apple"), m.Choice(label="Fig")), multi_select=True),
))


@pytest.mark.parametrize(("ask", "said", "meant"), [
    (m.ContinuationAsk(turn=1, message="on?"), "yes", {"proceed": True}),
    (m.ContinuationAsk(turn=1, message="on?"), " No", {"proceed": False}),
    (m.RollbackAsk(task_id="t", options=()), "step\n", {"option": "step"}),
    (m.PermissionAsk(call=CALL), "yes", None),
    (m.ClientToolAsk(call=CALL), "42", None),
])
def test_what_words_mean(ask: Any, said: str, meant: Any) -> None:
    assert m.parse_answer(ask, said) == meant


ONE = m.QuestionAsk(questions=(m.Question(question="Which?", header="Pick"),))
TWINS = m.QuestionAsk(questions=(m.Question(question="A?", header="X"), m.Question(question="B?", header="X")))


@pytest.mark.parametrize(("ask", "said", "custom"), [
    (ASK, " Red ", {"0": "Red", "1": "Red"}),
    (ASK, "Colour: Green; Which fruits?: Apple, Fig", {"0": "Green", "1": "Apple, Fig"}),
    (ASK, "Colour: Green", {"0": "Colour: Green", "1": "Colour: Green"}),
    (ASK, '{"Colour": " Green", "Which fruits?": ["Apple", "Fig"]}', {"0": "Green", "1": "Apple, Fig"}),
    (ASK, ' ["Green", 7]', {"0": "Green", "1": "7"}),
    (ASK, (m.TextPart(text='["Green",'), m.TextPart(text='"Fig"]')), {"0": "Green", "1": "Fig"}),
    (ASK, '{"Which fruits?": "Fig"}', {"1": "Fig"}),
    (ASK, '{"Color": "Red"}', {}),
    (ASK, '["a", "b", "c"]', {"0": "a", "1": "b", "2": "c"}),
    (ASK, '{"Colour": ', {"0": '{"Colour":', "1": '{"Colour":'}),
    (ASK, "[" * 100_000, {"0": "[" * 100_000, "1": "[" * 100_000}),
    (TWINS, '{"X": "both", "A?": "a", "B?": "b"}', {"0": "a", "1": "b"}),
    (ONE, '{"Pick": "this"}', {"0": "this"}),
    (ONE, '["this"]', {"0": "this"}),
    (ONE, '{"some": "JSON"}', {"0": '{"some": "JSON"}'}),
    (ONE, '["two", "words"]', {"0": '["two", "words"]'}),
])
def test_each_question_has_its_own_answer_and_the_words_stay_as_sent(ask: Any, said: Any, custom: Any) -> None:
    assert m.parse_answer(ask, said) == {"custom": custom, "said": said}


@pytest.mark.parametrize(("answer", "words"), [
    ({"selections": {"0": (1,), "1": (0, 1)}}, "Colour: Green; Which fruits?: Apple, Fig"),
    ({"custom": {"0": "Blue", "1": "Blue"}}, "Blue"),
    ({"selections": {"0": (0,)}, "custom": {"1": "Plum"}, "message": "please"},
     "Colour: Red; Which fruits?: Plum; please"),
    ({"selections": {"0": (9,)}}, ""),
])
def test_an_answer_in_words(answer: Any, words: str) -> None:
    assert m.format_answer(ASK, m.AnswerQuestion(request_id="r", **answer)) == words


@pytest.mark.parametrize("answer", [
    {"selections": {"0": (1,), "1": (0, 1)}},
    {"selections": {"0": (0,)}, "custom": {"1": "Plum, and more; much: more"}},
])
def test_what_is_told_in_words_is_understood_from_them(answer: Any) -> None:
    words = m.format_answer(ASK, m.AnswerQuestion(request_id="r", **answer))
    meant = m.parse_answer(ASK, words)
    assert meant is not None
    assert m.format_answer(ASK, m.AnswerQuestion(request_id="r", **meant)) == words
