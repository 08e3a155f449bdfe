"""The state of a session: its history, its open asks, its sub-agents and its checkpoints."""

from bisect import bisect_right
from typing import Any

from msgspec import Struct, field

from gateway.json_values import JsonObject, JsonValue

from .asks import AnyAsk
from .commands import Answer
from .content import Content, Settings, ToolCall, Usage
from .enums import ROOT, AnnotationTopic, CloseReason, Outcome, Role, ScopeStatus, SessionStatus, StopReason, ToolOrigin
from .events import SessionCompacted, TurnEnded
from .record import PRIVATE


class HistoryEntry(Struct, kw_only=True):
    """One message of the history: the message of a user, the response of a model, or the result of a tool."""

    role: Role
    content: Content
    seq: int
    at: float
    turn_id: str | None = None
    scope_id: str = ROOT
    message_id: str = ""
    call_id: str | None = None
    origin: ToolOrigin | None = None
    is_error: bool = False
    model: str | None = None
    outcome: Outcome | None = None
    stop_reason: StopReason | None = None
    usage: Usage | None = None
    annotations: dict[AnnotationTopic, JsonValue] = {}


class OpenAsk(Struct, kw_only=True, frozen=True):
    """An open ask."""

    request_id: str
    ask: AnyAsk
    seq: int
    at: float
    turn_id: str
    scope_id: str
    call_id: str | None = None
    expires_at: float | None = None


class AskRecord(Struct, kw_only=True):
    """An ask of the session and the answer to it; `settled` is the number of the record that settled it, 0 if none."""

    asked: OpenAsk
    answer: Answer | None = None
    settled: int = 0


class ScopeView(Struct, kw_only=True):
    """The state of a sub-agent; `cause` is the record of the tool call that has opened it."""

    scope_id: str
    parent: str
    created_at: float
    updated_at: float
    agent: str | None = None
    title: str | None = None
    role: str = "child"
    cause: int | None = None
    status: ScopeStatus = ScopeStatus.RUNNING
    stop_reason: StopReason | None = None
    archived_at: float | None = None


class Checkpoint(Struct, kw_only=True, frozen=True):
    """Where a session can be rewound to: its start, or the end of a turn; `entries` is how many there were."""

    seq: int
    at: float
    entries: int
    turn_id: str | None = None
    ended: TurnEnded | None = None
    compaction: SessionCompacted | None = None
    compacted_to: int = 0


class SessionView(Struct, kw_only=True):
    """The state of a session; `session_fold.apply` changes it by the next record."""

    session_id: str
    owner: str = ""
    agent: str = ""
    title: str | None = None
    metadata: dict[str, Any] = {}
    settings: Settings = Settings()
    created_at: float = 0.0
    updated_at: float = 0.0
    status: SessionStatus = SessionStatus.IDLE
    head: int = 0
    at: float = 0.0
    turn_id: str | None = None
    turn_starts: list[int] = field(default_factory=list)
    begun_at: int = 0
    """The record with which the last turn was begun or, if it has waited for people since, was resumed."""
    stops: list[int] = field(default_factory=list)
    """The record that ended the turn before the last, those that suspended the last turn, and the one that ended it."""
    usage: Usage = Usage()
    entries: list[HistoryEntry] = field(default_factory=list)
    asks: dict[str, OpenAsk] = field(default_factory=dict)
    past_asks: dict[str, AskRecord] = field(default_factory=dict)
    """Every ask of the session by its id, in the order in which they were asked."""
    expired: dict[str, str] = field(default_factory=dict)
    calls: dict[str, ToolCall] = field(default_factory=dict)
    call_places: dict[str, int] = field(default_factory=dict)
    scopes: dict[str, ScopeView] = field(default_factory=dict)
    running_since: float | None = None
    active_seconds: float = 0.0
    ended: TurnEnded | None = None
    compaction: SessionCompacted | None = None
    compacted_to: int = 0
    closed: CloseReason | None = None
    closed_at: float | None = None
    speaking: dict[str, HistoryEntry] = field(default_factory=dict)
    checkpoints: list[Checkpoint] = field(default_factory=list)

    @property
    def compacted(self) -> list[HistoryEntry]:
        """The history as the agent still sees it: the last summary in the place of what it sums up.

        System messages are instructions, which hold on: they are kept before the summary.
        """
        if self.compaction is None:
            return self.entries
        summary = HistoryEntry(role=Role.SYSTEM, content=self.compaction.summary, seq=0, at=self.updated_at)
        instructions = [entry for entry in self.entries[:self.compacted_to] if entry.role is Role.SYSTEM]
        return [*instructions, summary, *self.entries[self.compacted_to:]]

    @property
    def agent_id(self) -> str:
        """The agent as clients know it: the one that a user made, or the one of the settings."""
        return self.settings.agent_id or self.agent

    @property
    def shown_metadata(self) -> dict[str, Any]:
        """What clients may see of the metadata."""
        return public_metadata(self.metadata)

    def private(self, dialect: str) -> dict[str, Any]:
        """What one dialect keeps with the session for itself."""
        kept = self.metadata.get(PRIVATE)
        found: dict[str, object] = kept.get(dialect, {}) if isinstance(kept, dict) else {}
        return found

    @property
    def turns(self) -> int:
        return len(self.turn_starts)

    def turn_start(self, cursor: int) -> int:
        """After which record to begin reading, so that the turn at the cursor is read from its start."""
        place = bisect_right(self.turn_starts, cursor + 1)
        return self.turn_starts[place - 1] - 1 if place else 0

    def ask_of_call(self, call_id: str) -> OpenAsk | None:
        return next((ask for ask in self.asks.values() if ask.call_id == call_id), None)


def public_metadata(metadata: dict[str, Any]) -> JsonObject:
    """Metadata without what is private."""
    return {key: value for key, value in metadata.items() if key != PRIVATE}
