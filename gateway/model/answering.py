"""Answers in plain words: what a bare text means to an ask, and what an answer looks like as a text."""

from typing import Any

from .asks import AnyAsk, ContinuationAsk, QuestionAsk, RollbackAsk
from .commands import AnswerQuestion

NO = ("no", "stop", "false")


def meant_by(ask: AnyAsk, said: str) -> dict[str, Any] | None:
    """The fields of the answer that a bare text gives to this ask; None where words are no answer to it."""
    said = said.strip()
    if isinstance(ask, QuestionAsk):
        return {"custom": {str(number): said for number in range(len(ask.questions))}}
    if isinstance(ask, ContinuationAsk):
        return {"proceed": said.lower() not in NO}
    return {"option": said} if isinstance(ask, RollbackAsk) else None


def in_words(ask: QuestionAsk, answer: AnswerQuestion) -> str:
    """`Colour: Red; Fruits: Apple, Cherry`; the same words for every question are told once."""
    told = [_picked(ask, answer, number) for number in range(len(ask.questions))]
    if len(set(told)) > 1:
        heads = [question.header or question.question for question in ask.questions]
        told = [f"{head}: {words}" for head, words in zip(heads, told, strict=True)]
    return "; ".join([*dict.fromkeys(told), *([answer.message] if answer.message else [])])


def _picked(ask: QuestionAsk, answer: AnswerQuestion, number: int) -> str:
    options = ask.questions[number].options
    picks = [options[at].label for at in answer.selections.get(str(number), ()) if 0 <= at < len(options)]
    free = answer.custom.get(str(number))
    return ", ".join([*picks, *([free] if free else [])])
