"""Interrupts of a run: the asks for them, and the answers as the agent expects them."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

import gateway.model as m
from gateway.json_values import JsonValue

from .langgraph import ReviewedCall, actions_of, choices_of, question_text, value_of
from .wire import RunInterrupt

YES, NO = "Yes", "No"
YES_WORDS = ("approve", "accept", "allow", "yes", "ok", "confirm", "grant")
NO_WORDS = ("reject", "den", "no", "refuse", "decline", "cancel", "disallow")
"""The first letters of the words that agents offer for a yes and a no."""
CANCELLED_FIELD = "__agui_cancelled__"
"""The field that tells a LangGraph graph that its question was not answered."""

Schema = dict[str, Any]
JsonObject = dict[str, Any]
SettledAsk = tuple[RunInterrupt, m.AnyAsk, m.Answer]
"""An interrupt, its ask, and the answer."""


class RunResume(Struct, frozen=True, kw_only=True):
    """The answers as the next run gets them."""

    entries: Sequence[JsonObject] = ()
    """For interrupts that the outcome of the run has named."""
    command: JsonObject | None = None
    """For interrupts that a custom event announced, and for several interrupts of LangGraph."""


def asks_for(interrupt: RunInterrupt, calls: dict[str, m.ToolCall]) -> list[m.AnyAsk]:
    """A permission ask if a call waits, a question otherwise; a call that is asked about is removed from `calls`."""
    if actions := actions_of(interrupt):
        return [_review(action, calls) for action in actions]
    words = question_text(interrupt)
    call = calls.pop(interrupt.tool_call_id or "", None)
    if call is not None:
        return [_permission(call, words)]
    labels = _labels(_answer_field(interrupt.response_schema)[1]) or choices_of(interrupt)
    return [_question(words, labels)]


def _review(action: ReviewedCall, calls: dict[str, m.ToolCall]) -> m.AnyAsk:
    """A permission ask for the call if the agent has reported it, a question otherwise."""
    named = [call for call in calls.values() if call.name == action.name]
    same = next((call for call in named if call.input == action.args), named[0] if named else None)
    if same is not None:
        return _permission(calls.pop(same.call_id), action.description)
    words = action.description or f"Allow {action.name} {msgspec.json.encode(action.args).decode()}?"
    return _question(words, [YES, NO])


def _permission(call: m.ToolCall, words: str) -> m.AnyAsk:
    return m.PermissionAsk(call=replace(call, permission=m.Permission.ASK), description=words)


def _question(words: str, labels: Sequence[str]) -> m.AnyAsk:
    return m.QuestionAsk(
        questions=(m.Question(question=words, options=tuple(m.Choice(label=label) for label in labels)),)
    )


# -- answers ----------------------------------------------------------------------------------------------------------

def run_resume(settled: Sequence[SettledAsk]) -> RunResume:
    """The answers to all asks, those about one interrupt together."""
    groups = [list(group) for _, group in groupby(settled, key=lambda one: one[0].id)]
    entries = [_entry(group) for group in groups]
    interrupts = [group[0][0] for group in groups]
    if not any(one.announced is not None for one in interrupts) and not _is_langgraphs(interrupts):
        return RunResume(entries=entries)
    values = {entry["interruptId"]: _returned(entry) for entry in entries}
    return RunResume(command={"resume": values if len(values) > 1 else next(iter(values.values()))})


def _is_langgraphs(interrupts: Sequence[RunInterrupt]) -> bool:
    """LangGraph takes the answers to several interrupts by their ids, which only the command can carry."""
    return len(interrupts) > 1 and all(value_of(one) is not None for one in interrupts)


def _returned(entry: JsonObject) -> object:
    """The value that `interrupt()` returns in the graph: the answer, or the mark that there is none."""
    if entry["status"] == "cancelled":
        return {CANCELLED_FIELD: True, "interrupt_id": entry["interruptId"]}
    return entry["payload"]


def _entry(group: Sequence[SettledAsk]) -> JsonObject:
    interrupt, ask, answer = group[0]
    entry: JsonObject = {"interruptId": interrupt.id}
    if actions_of(interrupt):
        decisions = [_decision(ask, answer) for _, ask, answer in group]
        return {**entry, "status": "resolved", "payload": {"decisions": decisions}}
    name, wanted = _answer_field(interrupt.response_schema)
    match ask, answer:
        case _, m.Withdraw():
            return {**entry, "status": "cancelled"}
        case _, m.DecidePermission(granted=granted, reason=reason):
            name, value = _verdict(name, wanted, granted)
            more = {"reason": reason} if reason and name else {}
        case m.QuestionAsk(), m.AnswerQuestion():
            value, more = _as_schema_value(wanted, m.format_answer(ask, answer)), {}
        case _, m.ReturnResult(content=content):
            value, more = _as_schema_value(wanted, m.text_of(content)), {}
        case _:
            return {**entry, "status": "cancelled"}
    return {**entry, "status": "resolved", "payload": value if name is None else {name: value, **more}}


def _decision(ask: m.AnyAsk, answer: m.Answer) -> JsonObject:
    """The decision about a reviewed call; text that is no yes becomes the reason of a no."""
    match ask, answer:
        case _, m.DecidePermission(granted=granted, reason=reason):
            words = YES if granted else reason or ""
        case m.QuestionAsk(), m.AnswerQuestion():
            words = m.format_answer(ask, answer)
        case _, m.ReturnResult(content=content):
            words = m.text_of(content)
        case _:
            words = ""
    if words.lower().startswith(YES_WORDS) and not (isinstance(answer, m.DecidePermission) and not answer.granted):
        return {"type": "approve"}
    return {"type": "reject", **({"message": words} if words and words != NO else {})}


def _answer_field(schema: Schema | None) -> tuple[str | None, Schema]:
    """The field that the answer is for, and its schema; no name if the answer is the payload itself."""
    if not schema:
        return None, {}
    fields = schema.get("properties")
    if not isinstance(fields, dict) or not fields:
        return None, schema
    required = [name for name in schema.get("required") or () if name in fields]
    name = next(iter(required or fields))
    return name, fields[name] if isinstance(fields[name], dict) else {}


def _verdict(name: str | None, shape: Schema, granted: bool) -> tuple[str | None, Any]:
    """A yes or a no, as one of the offered words or in the usual form."""
    if shape.get("type") == "boolean":
        return name, granted
    offered = shape.get("enum")
    for one in offered if isinstance(offered, list) else ():
        if str(one).lower().startswith(YES_WORDS if granted else NO_WORDS):
            return name, one
    return "approved", granted


def _labels(shape: Schema) -> list[str]:
    if shape.get("type") == "boolean":
        return [YES, NO]
    choices = shape.get("enum")
    return [str(choice) for choice in choices] if isinstance(choices, list) else []


def _as_schema_value(shape: Schema, words: str) -> JsonValue:
    """The text as a value of the schema, if it can be one."""
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
