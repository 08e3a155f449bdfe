"""Reads what stands within Blade's frames, by the rows of the table: turns, calls, asks, usage and results."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import msgspec

import gateway.model as m
from adapters.blade import asks
from adapters.blade.wire import BlockType
from gateway.client import read_questions
from gateway.json_values import JsonObject, JsonValue
from mappings.language import Bindings, ObjectDecoder, ServerTable

BLADE = ServerTable("adapters.blade", "socketio")
COMPACTION = "turn.compaction"
"""The row of a turn that is a summary."""


def read(row: str, body: JsonValue) -> Bindings:
    """A body within a frame or of REST, by the row of the table that writes it. Raises `UnreadableBody`."""
    return BLADE.table.read_object(row, body)


@cache
def turn_reader() -> ObjectDecoder:
    return BLADE.table.reader("turn", COMPACTION)


@cache
def frame_name(cue: str) -> str:
    return BLADE.table.frame_name(cue)


@cache
def status_word(status: m.SessionStatus, of: str = "session_status") -> str:
    """The word for the status of a session or, with `session_status@turn`, of a turn."""
    return BLADE.table.word(of, status)


@cache
def outcomes() -> dict[str, m.Outcome]:
    return BLADE.table.meanings("outcome", m.Outcome)


@cache
def already_accepted_codes() -> frozenset[str]:
    """If the second attempt is refused with one of these, the first was accepted."""
    refused = [BLADE.table.object(row, message="") for row in ("refusal.busy", "refusal.answer")]
    return frozenset(str(one["code"]) for one in refused)


PAGE_BLOCKS = {str(BlockType.TOOL_BRIDGE): "bridge", str(BlockType.TOOL_UI): "ui"}
"""The blocks that repeat what a result hands to the page, with the key in its metadata."""


def read_result(value: JsonValue) -> tuple[m.Content, dict[str, Any] | None]:
    """The content of a result and its meta."""
    fields = read("result.meta", value) if isinstance(value, dict) else None
    if fields is None or fields["meta"] is None:
        return _read_content(value), None
    rest = fields["result"]
    return _read_content(_read_wrapped(rest) if rest else None), fields["meta"]


def _read_wrapped(rest: JsonObject) -> Any:
    """A result that is not an object is wrapped in one, so that it can have metadata."""
    inner = read("result.content", rest)
    return inner["content"] if BLADE.table.object("result.content", **inner) == rest else rest


def _read_content(value: JsonValue) -> m.Content:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list):
        parts = [BLADE.table.read_part(item) for item in value]
        if None not in parts:
            return tuple(part for part in parts if part is not None)
    return msgspec.json.encode(value).decode()


def read_call_questions(arguments: JsonObject, call_name: str) -> tuple[m.Question, ...]:
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
        options: tuple[JsonObject, ...] = tuple({"id": choice.label} for choice in question.options)
        yield m.RollbackAsk(task_id=call.call_id, options=options, error=question.question)
