"""Interrupts of LangGraph, with a value of any shape: announced by a custom event, or named by the run's outcome."""

from collections.abc import Container, Mapping
from typing import Any

import msgspec

from gateway.json_values import JsonValue

from .wire import AguiEvent, RunInterrupt

INTERRUPT_EVENT = "on_interrupt"
"""The custom event after which a run that finishes without an outcome waits for an answer."""
DEFAULT_REASON = "langgraph:interrupt"
"""The reason of an interrupt whose graph gives none."""
QUESTION_FIELDS = (
    "message",
    "question",
    "query",
    "prompt",
    "text",
    "description",
    "instruction",
    "instructions",
    "title",
)
"""The fields in which graphs put their question, the likeliest first."""
CHOICE_FIELDS = ("options", "choices")
HIDDEN_FIELDS = ("reason", "toolCallId", "tool_call_id", "responseSchema", "response_schema", "expiresAt", "expires_at")
"""Fields that are not meant for people."""


class RawInterrupt(msgspec.Struct):
    """The part of the framework's own event that is used."""

    id: str = ""
    response_schema: dict[str, Any] | None = None


def interrupt_from_event(event: AguiEvent) -> RunInterrupt:
    """The interrupt that a custom event announces; its id is empty if the event has none."""
    value, named = _read(event.value), _named(event)
    fields = value if isinstance(value, dict) else {}
    call_id = fields.get("toolCallId") or fields.get("tool_call_id")
    schema = fields.get("responseSchema") or fields.get("response_schema") or named.response_schema
    return RunInterrupt(
        id=named.id, reason=DEFAULT_REASON, announced=value,
        tool_call_id=call_id if isinstance(call_id, str) else None,
        response_schema=schema if isinstance(schema, dict) else None,
    )


def _read(value: JsonValue) -> Any:
    """A value that is no text arrives as JSON in a text."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value


def _named(event: AguiEvent) -> RawInterrupt:
    try:
        return msgspec.json.decode(event.raw_event, type=RawInterrupt)
    except (msgspec.DecodeError, RecursionError):
        return RawInterrupt()


def value_of(interrupt: RunInterrupt) -> object:
    """The argument of the graph's `interrupt()`, if it is known."""
    if interrupt.announced is not None:
        return interrupt.announced
    details = interrupt.metadata.get("langgraph") if isinstance(interrupt.metadata, Mapping) else None
    return details.get("raw") if isinstance(details, Mapping) else None


def question_text(interrupt: RunInterrupt) -> str:
    """The question for people: the message, or the text of the value, or the reason."""
    return interrupt.message or _words(value_of(interrupt)) or interrupt.reason


def _words(value: Any) -> str:
    if isinstance(value, list) and len(value) == 1:
        return _words(value[0])
    if not isinstance(value, dict):
        return _plain(value)
    question = next((name for name in QUESTION_FIELDS if isinstance(value.get(name), str) and value[name]), None)
    rest = [f"{name}: {_plain(one)}" for name, one in value.items() if _is_shown(name, one, (question, *HIDDEN_FIELDS))]
    return "\n".join([*([value[question]] if question is not None else []), *rest])


def _is_shown(name: str, value: object, hidden: Container[str | None]) -> bool:
    return name not in hidden and value not in (None, "", [], {}) and not (name in CHOICE_FIELDS and _labels(value))


def _plain(value: JsonValue) -> str:
    return "" if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()


def choices_of(interrupt: RunInterrupt) -> list[str]:
    """The options that the value offers."""
    value = value_of(interrupt)
    offered = (value.get(name) for name in CHOICE_FIELDS) if isinstance(value, dict) else ()
    return next((labels for one in offered if (labels := _labels(one))), [])


def _labels(offered: object) -> list[str]:
    labels = offered if isinstance(offered, list) else []
    return list(labels) if all(isinstance(one, str) and one for one in labels) else []


# -- calls that must be reviewed --------------------------------------------------------------------------------------

class ReviewedCall(msgspec.Struct, kw_only=True):
    """A call that a person must allow before it is made."""

    name: str
    args: dict[str, Any] = {}
    description: str = ""


class ReviewRequest(msgspec.Struct, kw_only=True):
    """The value of an interrupt that wants a decision about each of several calls."""

    action_requests: list[ReviewedCall]


def actions_of(interrupt: RunInterrupt) -> list[ReviewedCall]:
    """The calls that the interrupt wants a decision about, in order."""
    try:
        return msgspec.convert(value_of(interrupt), ReviewRequest).action_requests
    except msgspec.ValidationError:
        return []
