"""Answers in plain words: what a bare text means to an ask, and what an answer looks like as a text."""

from typing import Any

from .asks import AnyAsk, ContinuationAsk, QuestionAsk, RollbackAsk
from .commands import AnswerQuestion
from .content import ToolCall

NO = ("no", "stop", "false")


def meant_by(ask: AnyAsk, said: str) -> dict[str, Any] | None:
    """The fields of the answer that a bare text gives to this ask; None where words are no answer to it."""
    said = said.strip()
    if isinstance(ask, QuestionAsk):
        return {"custom": _parted(ask, said) or {str(number): said for number in range(len(ask.questions))}}
    if isinstance(ask, ContinuationAsk):
        return {"proceed": said.lower() not in NO}
    return {"option": said} if isinstance(ask, RollbackAsk) else None


def as_call(ask: QuestionAsk, call_id: str) -> ToolCall:
    """The questions as the call of a tool that is known by this name and input far beyond this house."""
    questions = [
        {
            "question": one.question, "header": one.header or "", "multiSelect": one.multi_select,
            "options": [{"label": choice.label, "description": choice.description or ""} for choice in one.options],
        }
        for one in ask.questions
    ]
    return ToolCall(call_id=call_id, name="AskUserQuestion", input={"questions": questions})


def in_words(ask: QuestionAsk, answer: AnswerQuestion) -> str:
    """`Colour: Red; Fruits: Apple, Cherry`; the same words for every question are told once."""
    told = [_picked(ask, answer, number) for number in range(len(ask.questions))]
    if len(set(told)) > 1:
        told = [f"{head}: {words}" for head, words in zip(_heads(ask), told, strict=True)]
    return "; ".join([*dict.fromkeys(told), *([answer.message] if answer.message else [])])


def _heads(ask: QuestionAsk) -> list[str]:
    return [question.header or question.question for question in ask.questions]


def _parted(ask: QuestionAsk, said: str) -> dict[str, str]:
    """The words for each question, where every one is named as `in_words` names it; otherwise none."""
    at, starts = 0, list[tuple[int, int]]()
    for number, head in enumerate(_heads(ask)):
        named = f"{head}: " if not number else f"; {head}: "
        start = said.find(named, at) if number else (0 if said.startswith(named) else -1)
        if start < 0:
            return {}
        at = start + len(named)
        starts.append((start, at))
    ends = [start for start, _ in starts[1:]] + [len(said)]
    return {str(number): said[begin:end] for number, ((_, begin), end) in enumerate(zip(starts, ends, strict=True))}


def _picked(ask: QuestionAsk, answer: AnswerQuestion, number: int) -> str:
    options = ask.questions[number].options
    picks = [options[at].label for at in answer.selections.get(str(number), ()) if 0 <= at < len(options)]
    free = answer.custom.get(str(number))
    return ", ".join([*picks, *([free] if free else [])])
