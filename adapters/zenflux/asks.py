"""Asks as confirmation requests: how each is shown, in the stream and over HTTP alike."""

from typing import Any

import orjson

from gateway.model import (
    AnyAsk,
    ClientToolAsk,
    ContinuationAsk,
    OpenAsk,
    PermissionAsk,
    Question,
    QuestionAsk,
    RollbackAsk,
    ToolCall,
    call_of,
)
from mappings.language import Table

APPROVE, REJECT = "approve", "reject"


def confirmation(table: Table, ask: OpenAsk, session_id: str) -> Any:
    call = call_of(ask.ask)
    kind, question, options = _shown(ask.ask)
    return table.object(
        "confirmation", request_id=ask.request_id, run_id=ask.turn_id, session_id=session_id, type=kind,
        tool_name=call.name if call else ask.ask.kind, question=question, description=_description(ask.ask, question),
        options=options, questions=_questions(table, ask.ask), timeout=_timeout(ask), at=ask.at,
        metadata={"kind": ask.ask.kind, **({"tool_use_id": call.call_id, "input": call.input} if call else {})},
    )


def rollback_options(ask: RollbackAsk, *, objects: bool) -> list[Any]:
    """In words, as documented; or as the agent gave them, for a front end that draws them."""
    return list(ask.options) if objects else [label_of(option) for option in ask.options]


def option_ids(ask: RollbackAsk) -> list[str]:
    """By these an option can be chosen, whatever it is called."""
    return [str(option.get("id", label_of(option))) for option in ask.options]


def label_of(option: dict[str, Any]) -> str:
    words = [str(option[key]) for key in ("label", "action", "target") if option.get(key)]
    return ": ".join(words) or str(option.get("id", option))


def _shown(ask: AnyAsk) -> tuple[str, str, list[str]]:
    """Which form a person is shown, what it asks, and what can be chosen."""
    if isinstance(ask, PermissionAsk):
        return "yes_no", ask.description or f"Allow {ask.call.display_name or ask.call.name}?", [APPROVE, REJECT]
    if isinstance(ask, QuestionAsk):
        only = ask.questions[0].options if len(ask.questions) == 1 else ()
        return "form", " ".join(one.question for one in ask.questions), [choice.label for choice in only]
    if isinstance(ask, ClientToolAsk):
        return "text_input", f"What does {ask.call.display_name or ask.call.name} give?", []
    if isinstance(ask, ContinuationAsk):
        return "yes_no", ask.message, [APPROVE, REJECT]
    return "single_choice", ask.reason or ask.error or "Roll back?", [label_of(option) for option in ask.options]


def _description(ask: AnyAsk, question: str) -> str:
    """What a person has to know beside the question: above all what a tool is going to be called with."""
    if isinstance(ask, PermissionAsk):
        return _written(ask.call)
    if isinstance(ask, ClientToolAsk):
        return f"The agent calls a tool of its client: {_written(ask.call)}. Answer with its result."
    error = ask.error if isinstance(ask, RollbackAsk) else None
    return error if error and error != question else ""


def _written(call: ToolCall) -> str:
    return f"{call.name} {orjson.dumps(call.input).decode()}"


def _questions(table: Table, ask: AnyAsk) -> list[Any] | None:
    if not isinstance(ask, QuestionAsk):
        return None
    return [_question(table, number, question) for number, question in enumerate(ask.questions)]


def _question(table: Table, number: int, question: Question) -> Any:
    kind = "text_input" if not question.options else "multiple_choice" if question.multi_select else "single_choice"
    return table.object(
        "question", id=str(number), question=question.question, header=question.header, type=kind,
        options=[choice.label for choice in question.options],
        descriptions=[choice.description or "" for choice in question.options],
    )


def _timeout(ask: OpenAsk) -> int | None:
    """Seconds in which it can be answered, from when it was asked."""
    return None if ask.expires_at is None else round(ask.expires_at - ask.at)
