"""Blade's words read backwards, from the wire to the house, and the few shapes that must be right to be read."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from gateway.errors import BackendFailed
from gateway.model import FaultCode, Level, Outcome, Role, SessionStatus, StopReason, ToolStatus, Trigger
from mappings.language import Table, Vocabulary, builtin_path, load_table

from . import rest_views, views
from .inbound import MESSAGES
from .outbound import CUES, NAMES

Member = TypeVar("Member", bound=StrEnum)


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
        outcome=_backwards(table, "outcome", Outcome),
        stop_reason=_backwards(table, "stop_reason", StopReason, StopReason.END_TURN, StopReason.ERROR),
        tool_status=_backwards(table, "tool_status", ToolStatus, ToolStatus.RUNNING),
        role=_backwards(table, "role", Role, Role.SYSTEM),
        level=_backwards(table, "level", Level),
        trigger=_backwards(table, "trigger", Trigger),
        fault=_backwards(table, "fault", FaultCode),
        paused=table.word("session_status@turn", SessionStatus.SUSPENDED),
        streaming=table.word("session_status@turn", SessionStatus.RUNNING),
        failed=table.word("outcome", Outcome.FAILED),
        session_running=table.word("session_status", SessionStatus.RUNNING),
        session_waiting=table.word("session_status", SessionStatus.SUSPENDED),
    )


def _table() -> Table:
    objects = {**views.OBJECTS, **rest_views.OBJECTS}
    return load_table(builtin_path("blade"), Vocabulary(cues=CUES, names=NAMES, messages=MESSAGES, objects=objects))


def _backwards(table: Table, enum_map: str, kind: type[Member], *preferred: Member) -> dict[str, Member]:
    spelled: dict[str, Member] = {}
    for member in (*preferred, *kind):
        spelled.setdefault(table.word(enum_map, member), member)
    return spelled


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
