"""The row of a session in lists, computed from its records: what lists show, order by, and filter by."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gateway.json_values import JsonValue

from .enums import CloseReason, Outcome, SessionStatus
from .events import (
    Event,
    SessionClosed,
    SessionCompacted,
    SessionCreated,
    SessionRewound,
    SessionUpdated,
    TurnEnded,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
)
from .record import PRIVATE, SECRETS, Record

EVERY_SESSION = ""
"""The label that every session has."""
OPEN_SESSION = "open"
"""The label of the sessions that are not closed."""
FAILED_SESSION = "failed"
"""The label of the sessions whose last turn has failed."""
MAX_LABEL = 128
"""A longer value of a private field is no label."""


class SessionSummary(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a list says of a session; `labels` are the lists that it stands in, beside the one of all sessions."""

    agent: str
    own_agent: str | None = None
    """The agent that a user made, if the session has one."""
    created_at: float
    updated_at: float
    title: str | None = None
    status: SessionStatus = SessionStatus.IDLE
    outcome: Outcome | None = None
    """How the last turn ended."""
    closed: CloseReason | None = None
    fields: tuple[str, ...] = ()
    """The labels for the ids that dialects keep with the session."""

    @property
    def agent_id(self) -> str:
        """The agent as clients know it."""
        return self.own_agent or self.agent

    @property
    def labels(self) -> tuple[str, ...]:
        state = (EVERY_SESSION, *((OPEN_SESSION,) if self.closed is None else ()),
                 *((FAILED_SESSION,) if self.outcome is Outcome.FAILED else ()))
        return (*state, agent_label(self.agent_id), *self.fields)


def agent_label(agent: str) -> str:
    """The label of the sessions of an agent."""
    return f"agent={agent}"


def field_label(dialect: str, field: str, value: str | None = None) -> str:
    """The label of the sessions with which a dialect keeps this value of a field; None: any value."""
    return f"{dialect}.{field}" if value is None else f"{dialect}.{field}={value}"


def _field_labels(metadata: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Two labels for each id that a dialect keeps: with its value, and without."""
    private = metadata.get(PRIVATE)
    kept = private if isinstance(private, dict) else {}
    return tuple(
        label for dialect, fields in kept.items() if isinstance(fields, dict) for name, value in fields.items()
        if name != SECRETS and name.endswith("_id") and isinstance(value, str) and 0 < len(value) <= MAX_LABEL
        for label in (field_label(dialect, name), field_label(dialect, name, value))
    )


def _updated(old: SessionSummary, event: SessionUpdated) -> SessionSummary:
    has_private = event.metadata is not None and PRIVATE in event.metadata
    return replace(
        old, title=old.title if event.title is None else event.title, agent=event.agent or old.agent,
        own_agent=old.own_agent if event.settings is None else event.settings.agent_id,
        fields=_field_labels(event.metadata or {}) if has_private else old.fields,
    )


_CHANGES: dict[type[Event], Callable[[SessionSummary, Any], SessionSummary]] = {
    SessionUpdated: _updated,
    SessionCompacted: lambda old, event: old,
    SessionRewound: lambda old, event: replace(old, outcome=None),
    SessionClosed: lambda old, event: replace(old, closed=event.reason, status=SessionStatus.CLOSED),
    TurnStarted: lambda old, event: replace(old, status=SessionStatus.RUNNING),
    TurnEnded: lambda old, event: replace(old, status=SessionStatus.IDLE, outcome=event.outcome),
    TurnSuspended: lambda old, event: replace(old, status=SessionStatus.SUSPENDED),
    TurnResumed: lambda old, event: replace(old, status=SessionStatus.RUNNING),
}
_PAUSES = (TurnSuspended, TurnResumed)
"""Events that change the status, and not the time of the last change."""
SUMMARY_EVENTS = frozenset((SessionCreated, *_CHANGES))
"""The events that change the summary of a session."""


def summarize(old: SessionSummary | None, records: Iterable[Record]) -> SessionSummary | None:
    """The summary after these records, and before them `old`; None as long as the session was not created."""
    for record in records:
        event = record.event
        if isinstance(event, SessionCreated):
            old = SessionSummary(
                agent=event.agent, own_agent=event.settings.agent_id, created_at=record.at, updated_at=record.at,
                title=event.title, fields=_field_labels(event.metadata),
            )
        elif old is not None and (change := _CHANGES.get(type(event))) is not None:
            old = change(old, event)
            if not isinstance(event, _PAUSES):
                old = replace(old, updated_at=record.at)
    return old
