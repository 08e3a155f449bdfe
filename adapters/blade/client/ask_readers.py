"""Reads what a call that waits for a person asks: questions, or an ask that our own server shows as questions."""

from collections.abc import Iterable, Sequence
from typing import Any

import gateway.model as m
from adapters.blade import asks
from gateway.client import read_questions

from .readers import read


def read_asked(arguments: dict[str, Any], call_name: str) -> tuple[m.Question, ...]:
    """The questions of a call; a call without questions waits for an answer all the same."""
    found = read_questions(read("arguments.asked", arguments)["questions"] or ())
    return found or (m.Question(question=f"{call_name} waits for an answer."),)


def guess_ask(questions: tuple[m.Question, ...], call: m.ToolCall, waiting: Sequence[m.ToolCall]) -> m.AnyAsk:
    """The ask that our own server would show so, about one of the open calls; otherwise a question."""
    for guess in _guesses(questions[0], call, waiting) if len(questions) == 1 else ():
        if asks.questions_of(guess) == questions:
            return guess
    return m.QuestionAsk(questions=questions, call=call)


def _guesses(question: m.Question, call: m.ToolCall, waiting: Sequence[m.ToolCall]) -> Iterable[m.AnyAsk]:
    """Never a permission if it is uncertain which call it is for: the person must see what is allowed."""
    named = [one for one in waiting if question.options and question.options[0].description == one.name]
    about = named or waiting
    if len(about) == 1:
        yield m.PermissionAsk(call=about[0], description=question.question)
    tools = [one for one in waiting if asks.questions_of(m.ClientToolAsk(call=one)) == (question,)]
    if len(tools) == 1:
        yield m.ClientToolAsk(call=tools[0])
    yield m.ContinuationAsk(turn=1, message=question.question)
    if question.options:
        options = tuple({"id": choice.label} for choice in question.options)
        yield m.RollbackAsk(task_id=call.call_id, options=options, error=question.question)
