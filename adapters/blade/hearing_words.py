"""Blade's words read backwards, from the wire to the house, and the few shapes that must be right to be read."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from gateway.errors import BackendFailed
from gateway.model import FaultCode, Level, Outcome, Role, SessionStatus, StopReason, ToolStatus, Trigger
from mappings.language import Table, builtin_table


@dataclass(frozen=True)
class Words:
    """What each word of the wire stands for; where several would be spelled so, the likeliest."""

    outcome: dict[str, Outcome]
    stop_reason: dict[str, StopReason]
    tool_status: dict[str, ToolStatus]
    role: dict[str, Role]
    level: dict[str, Level]
    trigger: dict[str, Trigger]
    fault: dict[str, FaultCode]
    paused: str
    streaming: str
    failed: str
    session_running: str
    session_waiting: str


@cache
def words() -> Words:
    table = _table()
    return Words(
        outcome=table.meanings("outcome", Outcome),
        stop_reason=table.meanings("stop_reason", StopReason, StopReason.END_TURN, StopReason.ERROR),
        tool_status=table.meanings("tool_status", ToolStatus, ToolStatus.RUNNING),
        role=table.meanings("role", Role, Role.SYSTEM),
        level=table.meanings("level", Level),
        trigger=table.meanings("trigger", Trigger),
        fault=table.meanings("fault", FaultCode),
        paused=table.word("session_status@turn", SessionStatus.SUSPENDED),
        streaming=table.word("session_status@turn", SessionStatus.RUNNING),
        failed=table.word("outcome", Outcome.FAILED),
        session_running=table.word("session_status", SessionStatus.RUNNING),
        session_waiting=table.word("session_status", SessionStatus.SUSPENDED),
    )


def _table() -> Table:
    from . import DIALECT  # the dialect has its hearing, so it cannot be imported before
    return builtin_table(DIALECT)


# -- shapes -----------------------------------------------------------------------------------------------------------

def an_object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BackendFailed(f"the server sent {what} that is no object")
    return value


def objects_of(value: Any, what: str) -> list[dict[str, Any]]:
    """A list of objects; null is as good as none."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise BackendFailed(f"the server sent {what} that are no list")
    return [an_object(one, f"one of {what}") for one in value]


def a_name(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise BackendFailed(f"the server sent {what} without a name")
    return value


def text(value: Any) -> str:
    """The words, or none."""
    return value if isinstance(value, str) else ""


def optional_text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def number(value: Any) -> int:
    """A count, or none."""
    return max(0, int(value)) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def optional_number(value: Any) -> int | None:
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
