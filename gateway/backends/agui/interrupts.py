"""Interrupts of a run: what is asked of people, and what their answers are to the agent that waits for them."""

from typing import Any

from msgspec.structs import replace

from gateway.model import (
    Answer,
    AnswerQuestion,
    AnyAsk,
    Choice,
    DecidePermission,
    Permission,
    PermissionAsk,
    Question,
    QuestionAsk,
    ReturnResult,
    ToolCall,
    Withdraw,
    in_words,
    text_of,
)

from .wire import Interrupt

YES, NO = "Yes", "No"
YESES = ("approve", "accept", "allow", "yes", "ok", "confirm", "grant")
NOES = ("reject", "den", "no", "refuse", "decline", "cancel", "disallow")
"""How the words begin that agents offer for a yes and a no."""

Schema = dict[str, Any]


def ask_for(interrupt: Interrupt, call: ToolCall | None) -> AnyAsk:
    """A permission where a call waits for it, a question otherwise."""
    words = interrupt.message or interrupt.reason
    if call is not None:
        return PermissionAsk(call=replace(call, permission=Permission.ASK), description=words)
    options = tuple(Choice(label=label) for label in _labels(_wanted(interrupt.response_schema)[1]))
    return QuestionAsk(questions=(Question(question=words, options=options),))


def entry(interrupt: Interrupt, ask: AnyAsk, answer: Answer) -> dict[str, Any]:
    """The answer as the agent is given it with the run that goes on."""
    told: dict[str, Any] = {"interruptId": interrupt.id}
    name, wanted = _wanted(interrupt.response_schema)
    match ask, answer:
        case _, Withdraw():
            return {**told, "status": "cancelled"}
        case _, DecidePermission(granted=granted, reason=reason):
            name, value = _verdict(name, wanted, granted)
            more = {"reason": reason} if reason and name else {}
        case QuestionAsk(), AnswerQuestion():
            value, more = _fitting(wanted, in_words(ask, answer)), {}
        case _, ReturnResult(content=content):
            value, more = _fitting(wanted, text_of(content)), {}
        case _:
            return {**told, "status": "cancelled"}
    return {**told, "status": "resolved", "payload": value if name is None else {name: value, **more}}


def _wanted(schema: Schema | None) -> tuple[str | None, Schema]:
    """The one field an answer is for, and its shape; no name where the answer is the payload itself."""
    if not schema:
        return None, {}
    fields = schema.get("properties")
    if not isinstance(fields, dict) or not fields:
        return None, schema
    required = [name for name in schema.get("required") or () if name in fields]
    name = next(iter(required or fields))
    return name, fields[name] if isinstance(fields[name], dict) else {}


def _verdict(name: str | None, shape: Schema, granted: bool) -> tuple[str | None, Any]:
    """A yes or a no, in the words that the agent offers for it, or as agents usually want it."""
    if shape.get("type") == "boolean":
        return name, granted
    offered = shape.get("enum")
    for one in offered if isinstance(offered, list) else ():
        if str(one).lower().startswith(YESES if granted else NOES):
            return name, one
    return "approved", granted


def _labels(shape: Schema) -> list[str]:
    if shape.get("type") == "boolean":
        return [YES, NO]
    choices = shape.get("enum")
    return [str(choice) for choice in choices] if isinstance(choices, list) else []


def _fitting(shape: Schema, words: str) -> Any:
    """The words as a value of the shape that is wanted, where they can be one."""
    match shape.get("type"):
        case "boolean":
            return words.strip().lower() in ("yes", "true", "ok", "y", "1")
        case "integer" | "number":
            try:
                return float(words) if shape["type"] == "number" else int(words)
            except ValueError:
                return words
    choices = shape.get("enum")
    return next((one for one in choices if str(one) == words), words) if isinstance(choices, list) else words
