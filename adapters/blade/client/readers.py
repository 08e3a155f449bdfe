"""Reads values of Blade's frames safely: words by the table in reverse, and the results of tools."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

import gateway.model as m
from adapters.blade.wire import BlockType
from gateway.errors import BackendFailed
from mappings.language import Table, builtin_table


@dataclass(frozen=True)
class Meanings:
    """The member of each word on the wire; the likeliest, if several members have the same word."""

    outcome: dict[str, m.Outcome]
    stop_reason: dict[str, m.StopReason]
    tool_status: dict[str, m.ToolStatus]
    role: dict[str, m.Role]
    level: dict[str, m.NoticeLevel]
    trigger: dict[str, m.CompactionTrigger]
    fault: dict[str, m.FaultCode]
    paused: str
    streaming: str
    failed: str
    session_running: str
    session_waiting: str


@cache
def meanings() -> Meanings:
    table = _builtin_table()
    return Meanings(
        outcome=table.meanings("outcome", m.Outcome),
        stop_reason=table.meanings("stop_reason", m.StopReason, m.StopReason.END_TURN, m.StopReason.ERROR),
        tool_status=table.meanings("tool_status", m.ToolStatus, m.ToolStatus.RUNNING),
        role=table.meanings("role", m.Role, m.Role.SYSTEM),
        level=table.meanings("level", m.NoticeLevel),
        trigger=table.meanings("trigger", m.CompactionTrigger),
        fault=table.meanings("fault", m.FaultCode),
        paused=table.word("session_status@turn", m.SessionStatus.SUSPENDED),
        streaming=table.word("session_status@turn", m.SessionStatus.RUNNING),
        failed=table.word("outcome", m.Outcome.FAILED),
        session_running=table.word("session_status", m.SessionStatus.RUNNING),
        session_waiting=table.word("session_status", m.SessionStatus.SUSPENDED),
    )


def _builtin_table() -> Table:
    from adapters.blade import DIALECT  # the dialect imports its decoder, so it cannot be imported at the top
    return builtin_table(DIALECT)


# -- shapes -----------------------------------------------------------------------------------------------------------
def require_object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BackendFailed(f"the server sent {what} that is no object")
    return value


def require_objects(value: Any, what: str) -> list[dict[str, Any]]:
    """A list of objects; null is as good as none."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise BackendFailed(f"the server sent {what} that are no list")
    return [require_object(one, f"one of {what}") for one in value]


def require_name(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise BackendFailed(f"the server sent {what} without a name")
    return value


def text(value: Any) -> str:
    """The text, or an empty one."""
    return value if isinstance(value, str) else ""


def optional_text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def number(value: Any) -> int:
    """A count, or none."""
    return max(0, int(value)) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def optional_number(value: Any) -> int | None:
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


META = "_meta"
PAGE_BLOCKS = {str(BlockType.TOOL_BRIDGE): "bridge", str(BlockType.TOOL_UI): "ui"}
"""The blocks that repeat what a result hands to the page, with the key in its metadata."""


def read_result(value: Any) -> tuple[m.Content, dict[str, Any] | None]:
    """The content of a result and its meta."""
    if not isinstance(value, dict) or not isinstance(value.get(META), dict):
        return _read_content(value), None
    rest = {key: item for key, item in value.items() if key != META}
    return _read_content(rest["content"] if list(rest) == ["content"] else rest or None), value[META]


def _read_content(value: Any) -> m.Content:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list):
        parts = [_read_part(item) for item in value]
        if None not in parts:
            return tuple(part for part in parts if part is not None)
    return msgspec.json.encode(value).decode()


def _read_part(item: Any) -> m.AnyPart | None:
    """One part as the table spells it; None for anything else."""
    if not isinstance(item, dict):
        return None
    match item:
        case {"type": "text", "text": str(text)}:
            return m.TextPart(text=text)
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return m.ImagePart(url=url)
        case {"type": "file", "name": str(name)}:
            return m.FilePart(name=name, file_id=optional_text(item.get("file_id")), url=optional_text(item.get("url")))
        case {"type": str(kind), "content": content}:
            return m.DataPart(type=kind, content=content)
    return None
