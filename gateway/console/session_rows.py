"""Sessions as the console shows them: a row of the list, and one session with its asks, sub-agents and settings."""

from collections.abc import Collection
from enum import StrEnum

from msgspec import Struct

import gateway.model as m
from gateway.json_values import JsonObject
from gateway.ports import ListedSession

PREVIEW_LENGTH = 120


class ShownStatus(StrEnum):
    """What a person wants to know of a session at a glance."""

    RUNNING = "running"
    WAITING = "waiting"
    FAILED = "failed"
    IDLE = "idle"
    CLOSED = "closed"


STATUSES = {m.SessionStatus.RUNNING: ShownStatus.RUNNING, m.SessionStatus.SUSPENDED: ShownStatus.WAITING}


class SessionRow(Struct, kw_only=True):
    """One row of the list; `watching` are the dialects whose clients watch the session on this server."""

    session_id: str
    title: str | None
    preview: str
    agent: str
    status: ShownStatus
    created_at: float
    updated_at: float
    head: int
    turns: int
    asks: int
    usage: m.Usage
    watching: list[str]


class ShownSettings(Struct, kw_only=True):
    """The settings of a session without its secrets."""

    model: str | None
    system: str | None
    options: dict[str, str]
    secrets: list[str]
    """The names of the secrets that are set."""
    tools: dict[str, m.Permission] | None
    client_tools: tuple[m.ToolSpec, ...]
    agent_id: str | None


class ShownSession(SessionRow, kw_only=True):
    """One session."""

    metadata: JsonObject
    settings: ShownSettings
    open_asks: list[m.OpenAsk]
    scopes: list[m.ScopeView]
    checkpoints: list[int]
    """The records to which the session could be rewound."""
    turn_starts: list[int]
    turn_id: str | None
    closed: m.CloseReason | None


def status_of(view: m.SessionView) -> ShownStatus:
    return _status(view.closed, view.status, view.ended.outcome if view.ended is not None else None)


def _status(closed: m.CloseReason | None, status: m.SessionStatus, outcome: m.Outcome | None) -> ShownStatus:
    if closed is not None:
        return ShownStatus.CLOSED
    if status in STATUSES:
        return STATUSES[status]
    return ShownStatus.FAILED if outcome is m.Outcome.FAILED else ShownStatus.IDLE


def preview_of(view: m.SessionView) -> str:
    """The beginning of the first message of a person."""
    first = next((entry for entry in view.entries if entry.role is m.Role.USER), None)
    return " ".join(m.text_of(first.content)[:4 * PREVIEW_LENGTH].split())[:PREVIEW_LENGTH] if first else ""


def row_of(view: m.SessionView, watching: Collection[str] = ()) -> SessionRow:
    return SessionRow(
        session_id=view.session_id, title=view.title, preview=preview_of(view), agent=view.agent,
        status=status_of(view), created_at=view.created_at, updated_at=view.updated_at, head=view.head,
        turns=view.turns, asks=len(view.asks), usage=view.usage, watching=sorted(watching),
    )


def session_of(view: m.SessionView, watching: Collection[str] = ()) -> ShownSession:
    row, settings = row_of(view, watching), view.settings
    return ShownSession(
        **{name: getattr(row, name) for name in row.__struct_fields__},
        metadata=view.shown_metadata,
        settings=ShownSettings(
            model=settings.model, system=settings.system, options=settings.options, secrets=sorted(settings.secrets),
            tools=settings.tools, client_tools=settings.client_tools, agent_id=settings.agent_id,
        ),
        open_asks=list(view.asks.values()), scopes=list(view.scopes.values()),
        checkpoints=[mark.seq for mark in view.checkpoints], turn_starts=list(view.turn_starts),
        turn_id=view.turn_id, closed=view.closed,
    )


def fits(row: SessionRow, words: Collection[str], status: ShownStatus | None) -> bool:
    """Whether a row has all of these words and this status."""
    if status is not None and row.status is not status:
        return False
    text = "\n".join((row.title or "", row.preview, row.session_id, row.agent)).casefold()
    return all(word in text for word in words)


def may_fit(listed: ListedSession, words: Collection[str], status: ShownStatus | None) -> bool:
    """Whether the row of a listed session may fit: the words may be in its first message, which the list has not."""
    summary = listed.summary
    if status is not None and _status(summary.closed, summary.status, summary.outcome) is not status:
        return False
    if summary.title is None:
        return True
    text = "\n".join((summary.title, listed.session_id, summary.agent)).casefold()
    return any(word in text for word in words) or not words
