"""Reads asks that a server shows as the call of a tool: questions, a rollback, leave to continue."""

from collections.abc import Mapping
from typing import Any

import gateway.model as m

from .json_readers import optional_text


def read_questions(given: Mapping[str, Any]) -> tuple[m.Question, ...]:
    """The questions in the input of a call; none if the input has another shape."""
    asked = given.get("questions")
    if not isinstance(asked, list) or not all(map(_is_question, asked)):
        return ()
    return tuple(map(_read_question, asked))


def read_rollback(given: Mapping[str, Any], task_id: str = "") -> m.RollbackAsk | None:
    """The states to choose from; `task_id` is for a server that does not name the task that failed."""
    options = given.get("options")
    if not isinstance(options, list) or not all(isinstance(option, dict) for option in options):
        return None
    return m.RollbackAsk(
        task_id=str(given.get("task_id") or task_id), options=tuple(options), error=optional_text(given.get("error")),
        reason=optional_text(given.get("reason")),
    )


def read_continuation(given: Mapping[str, Any]) -> m.ContinuationAsk | None:
    """The ask whether a long turn is to continue; None if there is no message for people."""
    message, turn = given.get("message"), given.get("turn")
    if not isinstance(message, str):
        return None
    return m.ContinuationAsk(message=message, turn=turn if isinstance(turn, int) else 0)


def _is_question(asked: Any) -> bool:
    return isinstance(asked, dict) and isinstance(asked.get("question"), str)


def _read_question(asked: Mapping[str, Any]) -> m.Question:
    options = asked.get("options")
    return m.Question(
        question=asked["question"], header=optional_text(asked.get("header")),
        multi_select=bool(asked.get("multiSelect", asked.get("multi_select", False))),
        options=tuple(map(_read_choice, options)) if isinstance(options, list) else (),
    )


def _read_choice(option: Any) -> m.Choice:
    """A choice is known by its place, so that every one keeps its place, whatever it looks like."""
    if isinstance(option, dict):
        return m.Choice(label=str(option.get("label") or ""), description=optional_text(option.get("description")))
    return m.Choice(label=str(option))
