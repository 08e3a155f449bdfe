"""Reads what stands within Blade's frames by the rows of the table: turns, calls, usage, and the results of tools."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

import gateway.model as m
from adapters.blade.wire import BlockType
from mappings.language import ObjectDecoder, Table, builtin_table


@dataclass(frozen=True)
class Meanings:
    """What the words of statuses mean, where it depends on more than one row."""

    outcome: dict[str, m.Outcome]
    fault: dict[str, m.FaultCode]
    paused: str
    streaming: str
    failed: str
    session_running: str
    session_waiting: str


@cache
def meanings() -> Meanings:
    table = builtin_blade_table()
    return Meanings(
        outcome=table.meanings("outcome", m.Outcome),
        fault=table.meanings("fault", m.FaultCode),
        paused=table.word("session_status@turn", m.SessionStatus.SUSPENDED),
        streaming=table.word("session_status@turn", m.SessionStatus.RUNNING),
        failed=table.word("outcome", m.Outcome.FAILED),
        session_running=table.word("session_status", m.SessionStatus.RUNNING),
        session_waiting=table.word("session_status", m.SessionStatus.SUSPENDED),
    )


@dataclass(frozen=True)
class FrameNames:
    """The names of frames that tell how far a chat is."""

    chat_started: str
    chat_ended: str
    turn_opened: str
    turn_closed: str
    fault: str


@cache
def frame_names() -> FrameNames:
    name = builtin_blade_table().frame_name
    return FrameNames(
        chat_started=name("chat.started"), chat_ended=name("chat.ended"), turn_opened=name("turn.opened"),
        turn_closed=name("turn.closed"), fault=name("fault.fatal"),
    )


@cache
def already_accepted_codes() -> frozenset[str]:
    """If the second attempt is refused with one of these, the first was accepted."""
    table = builtin_blade_table()
    refused = [table.object(row, message="") for row in ("refusal.busy", "refusal.answer")]
    return frozenset(one["code"] for one in refused)


@dataclass(frozen=True)
class Rows:
    """The bodies within frames and of REST, each read by the row of the table that writes it."""

    turn: ObjectDecoder
    asked: ObjectDecoder
    given: ObjectDecoder
    question: ObjectDecoder
    choice: ObjectDecoder
    result: ObjectDecoder
    content: ObjectDecoder
    failure: ObjectDecoder
    value: ObjectDecoder
    models: ObjectDecoder
    model: ObjectDecoder
    version: ObjectDecoder
    session: ObjectDecoder
    session_created: ObjectDecoder
    sessions: ObjectDecoder
    refusal: ObjectDecoder
    acknowledged: ObjectDecoder
    position: ObjectDecoder


@cache
def rows() -> Rows:
    reader = builtin_blade_table().reader
    return Rows(
        turn=reader("turn", COMPACTION), asked=reader("arguments.asked"), given=reader("arguments.given"),
        question=reader("question"), choice=reader("choice"), result=reader("result.meta"),
        content=reader("result.content"), failure=reader("answer.failed"), value=reader("answer.schema"),
        models=reader("models"), model=reader("model"), version=reader("version"), session=reader("session"),
        session_created=reader("session.created"), sessions=reader("sessions"), refusal=reader("refusal"),
        acknowledged=reader("ack.chat"), position=reader("position"),
    )


COMPACTION = "turn.compaction"
"""The row of a turn that is a summary."""


@cache
def builtin_blade_table() -> Table:
    """The table without overrides: what a deployment has changed of it is not what others write."""
    from adapters.blade import DIALECT  # the dialect imports its decoder, so it cannot be imported at the top
    return builtin_table(DIALECT)


# -- shapes -----------------------------------------------------------------------------------------------------------
def number(value: Any) -> int:
    """A count, or none."""
    return max(0, int(value)) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def optional_number(value: Any) -> int | None:
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


Bindings = dict[str, Any]
"""What a row of the table has read, by the names of the row."""
PAGE_BLOCKS = {str(BlockType.TOOL_BRIDGE): "bridge", str(BlockType.TOOL_UI): "ui"}
"""The blocks that repeat what a result hands to the page, with the key in its metadata."""


def read_result(value: Any) -> tuple[m.Content, dict[str, Any] | None]:
    """The content of a result and its meta."""
    told = rows().result.read(value) if isinstance(value, dict) else None
    if told is None or told["meta"] is None:
        return _read_content(value), None
    rest = told["result"]
    return _read_content(_read_wrapped(rest) if rest else None), told["meta"]


def _read_wrapped(rest: dict[str, Any]) -> Any:
    """What is no object stands within one, so that it can have metadata."""
    inner = rows().content.read(rest)
    return inner["content"] if builtin_blade_table().object("result.content", **inner) == rest else rest


def _read_content(value: Any) -> m.Content:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list):
        parts = [builtin_blade_table().read_part(item) for item in value]
        if None not in parts:
            return tuple(part for part in parts if part is not None)
    return msgspec.json.encode(value).decode()


def read_usage(usage: Bindings | None) -> m.Usage:
    if usage is None:
        return m.Usage()
    return m.Usage(input_tokens=number(usage["input_tokens"]), output_tokens=number(usage["output_tokens"]))
