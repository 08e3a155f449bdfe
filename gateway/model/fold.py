"""Records in, the state of a session out: the only reader of history."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct, field

from .asks import AnyAsk
from .commands import SendMessage
from .content import (
    AnyPart,
    Content,
    Settings,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolUsePart,
    Usage,
)
from .events import (
    BlockEnded,
    BlockStarted,
    Event,
    InputAccepted,
    InputRequested,
    InputResolved,
    MessageAnnotated,
    MessageEnded,
    MessageStarted,
    ScopeOpened,
    ScopeStatusChanged,
    SessionClosed,
    SessionCompacted,
    SessionCreated,
    SessionRewound,
    SessionUpdated,
    ToolReturned,
    TurnEnded,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
)
from .record import Record
from .vocabulary import (
    ROOT,
    BlockKind,
    CloseReason,
    Outcome,
    Resolution,
    Role,
    ScopeStatus,
    SessionStatus,
    StopReason,
    ToolOrigin,
    Topic,
)

PRIVATE = "dragoman.private"
"""The key of a session's metadata under which dialects keep what no client is shown, each under its own name."""


class Entry(Struct, kw_only=True):
    """One message of the history: what a person said, what a model answered, or what a tool gave back."""

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
    annotations: dict[Topic, Any] = {}


class OpenAsk(Struct, kw_only=True, frozen=True):
    """An ask nobody has settled yet."""

    request_id: str
    ask: AnyAsk
    seq: int
    at: float
    turn_id: str
    scope_id: str
    call_id: str | None = None
    expires_at: float | None = None


class ScopeView(Struct, kw_only=True):
    """A sub-agent as its records tell it; `cause` is where the call that brought it about was begun."""

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
    """A session as its records tell it; `apply` takes the next record."""

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
    usage: Usage = Usage()
    entries: list[Entry] = field(default_factory=list)
    asks: dict[str, OpenAsk] = field(default_factory=dict)
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
    speaking: dict[str, Entry] = field(default_factory=dict)
    checkpoints: list[Checkpoint] = field(default_factory=list)

    def apply(self, record: Record) -> None:
        self.head, self.at = record.seq, record.at
        fold = _FOLDS.get(type(record.event))
        if fold is not None:
            fold(self, record, record.event)

    @property
    def compacted(self) -> list[Entry]:
        """The history as the agent still sees it: the last summary in the place of what it sums up."""
        if self.compaction is None:
            return self.entries
        summary = Entry(role=Role.SYSTEM, content=self.compaction.summary, seq=0, at=self.updated_at)
        return [summary, *self.entries[self.compacted_to:]]

    @property
    def shown_metadata(self) -> dict[str, Any]:
        """What clients may see of the metadata."""
        return shown(self.metadata)

    def private(self, dialect: str) -> dict[str, Any]:
        """What one dialect keeps with the session for itself."""
        kept = self.metadata.get(PRIVATE)
        found: dict[str, Any] = kept.get(dialect, {}) if isinstance(kept, dict) else {}
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

    def entries_since(self, seq: int) -> list[Entry]:
        """Entries whose first record came after `seq`."""
        at = len(self.entries)
        while at and self.entries[at - 1].seq > seq:
            at -= 1
        return self.entries[at:]

    # -- one fold per event that leaves a trace -------------------------------------------------------------------

    def _created(self, record: Record, event: SessionCreated) -> None:
        self.owner, self.agent, self.title = event.owner, event.agent, event.title
        self.metadata, self.settings = event.metadata, event.settings
        self.created_at = self.updated_at = record.at
        for message in event.history:
            self.entries.append(Entry(
                role=message.role, content=message.content, call_id=message.call_id, seq=record.seq, at=record.at,
            ))
        self._mark(record)

    def _updated(self, record: Record, event: SessionUpdated) -> None:
        self.title = self.title if event.title is None else event.title
        self.metadata = self.metadata if event.metadata is None else _private_of(self.metadata) | event.metadata
        self.settings = self.settings if event.settings is None else event.settings
        self.agent = event.agent or self.agent
        self.updated_at = record.at

    def _compacted(self, record: Record, event: SessionCompacted) -> None:
        kept = len(self.entries)
        while kept and record.turn_id is not None and self.entries[kept - 1].turn_id == record.turn_id:
            kept -= 1  # what this turn has said so far is not yet history
        self.compaction, self.compacted_to, self.updated_at = event, kept, record.at

    def _rewound(self, record: Record, event: SessionRewound) -> None:
        """Back to the last checkpoint at or before that record; those after it are gone with what they marked."""
        while len(self.checkpoints) > 1 and self.checkpoints[-1].seq > event.to_seq:
            self.checkpoints.pop()
        if self.checkpoints:
            to = self.checkpoints[-1]
            self.entries = self.entries[:to.entries]
            self.ended, self.compaction, self.compacted_to = to.ended, to.compaction, to.compacted_to
        self.updated_at = record.at

    def _mark(self, record: Record) -> None:
        self.checkpoints.append(Checkpoint(
            seq=record.seq, at=record.at, entries=len(self.entries), turn_id=record.turn_id, ended=self.ended,
            compaction=self.compaction, compacted_to=self.compacted_to,
        ))

    def _closed(self, record: Record, event: SessionClosed) -> None:
        self.closed, self.status = event.reason, SessionStatus.CLOSED
        self.closed_at = self.updated_at = record.at

    def _accepted(self, record: Record, event: InputAccepted) -> None:
        if isinstance(event.command, SendMessage):
            self.entries.append(Entry(
                role=Role.USER, content=event.command.content, seq=record.seq, at=record.at,
                turn_id=record.turn_id, message_id=event.command_id,
            ))

    def _requested(self, record: Record, event: InputRequested) -> None:
        self.asks[event.request_id] = OpenAsk(
            request_id=event.request_id, ask=event.ask, seq=record.seq, at=record.at, turn_id=record.turn_id or "",
            scope_id=record.scope_id, call_id=event.call_id, expires_at=event.expires_at,
        )

    def _resolved(self, record: Record, event: InputResolved) -> None:
        ask = self.asks.pop(event.request_id, None)
        if ask is not None and event.resolution is Resolution.EXPIRED:
            self.expired[event.request_id] = ask.turn_id

    def _started(self, record: Record, event: TurnStarted) -> None:
        self.status, self.turn_id = SessionStatus.RUNNING, record.turn_id
        self.turn_starts.append(record.seq)
        self.begun_at = record.seq
        self.running_since = self.updated_at = record.at

    def _suspended(self, record: Record, event: TurnSuspended) -> None:
        self.status = SessionStatus.SUSPENDED
        self._rest(record.at)

    def _resumed(self, record: Record, event: TurnResumed) -> None:
        self.status, self.running_since = SessionStatus.RUNNING, record.at
        self.begun_at = record.seq

    def _rest(self, at: float) -> None:
        if self.running_since is not None:
            self.active_seconds += at - self.running_since
            self.running_since = None

    def _ended(self, record: Record, event: TurnEnded) -> None:
        self.status, self.turn_id, self.ended = SessionStatus.IDLE, None, event
        self._rest(record.at)
        self.usage += event.usage
        self.updated_at = record.at
        self._mark(record)

    def _message_started(self, record: Record, event: MessageStarted) -> None:
        self.speaking[event.message_id] = Entry(
            role=event.role, content=(), seq=record.seq, at=record.at, turn_id=record.turn_id,
            scope_id=record.scope_id, message_id=event.message_id, model=event.model, annotations={},
        )

    def _annotated(self, record: Record, event: MessageAnnotated) -> None:
        if (entry := self.speaking.get(event.message_id)) is not None:
            entry.annotations[event.topic] = event.content

    def _block_started(self, record: Record, event: BlockStarted) -> None:
        if event.call is not None:
            self.call_places[event.call.call_id] = record.seq

    def _block_ended(self, record: Record, event: BlockEnded) -> None:
        if event.torn and event.call is not None:
            self.call_places.pop(event.call.call_id, None)
        entry, part = self.speaking.get(event.message_id), part_of(event)
        if entry is None or part is None:
            return
        if not entry.content:
            self.entries.append(entry)  # a message stands in history from its first whole part on
        entry.content = (*entry.content, part)  # a speaking entry's content is parts
        if event.call is not None:
            self.calls[event.call.call_id] = event.call

    def _message_ended(self, record: Record, event: MessageEnded) -> None:
        if (entry := self.speaking.pop(event.message_id, None)) is not None:
            entry.outcome, entry.stop_reason, entry.usage = event.outcome, event.stop_reason, event.usage

    def _returned(self, record: Record, event: ToolReturned) -> None:
        self.calls.pop(event.call_id, None)
        self.call_places.pop(event.call_id, None)
        self.entries.append(Entry(
            role=Role.TOOL, content=event.content, seq=record.seq, at=record.at, turn_id=record.turn_id,
            scope_id=record.scope_id, call_id=event.call_id, origin=event.origin, is_error=event.is_error,
        ))


    def _opened(self, record: Record, event: ScopeOpened) -> None:
        self.scopes[record.scope_id] = ScopeView(
            scope_id=record.scope_id, parent=event.parent, agent=event.agent, title=event.title, role=event.role,
            cause=self.call_places.get(event.call_id or ""), created_at=record.at, updated_at=record.at,
        )

    def _scope_changed(self, record: Record, event: ScopeStatusChanged) -> None:
        if (scope := self.scopes.get(record.scope_id)) is not None:
            scope.status, scope.stop_reason, scope.updated_at = event.status, event.stop_reason, record.at
            scope.archived_at = record.at if event.status is ScopeStatus.ARCHIVED else scope.archived_at


def _private_of(metadata: dict[str, Any]) -> dict[str, Any]:
    """What stays when metadata are replaced by somebody who cannot see it."""
    return {PRIVATE: metadata[PRIVATE]} if PRIVATE in metadata else {}


def shown(metadata: dict[str, Any]) -> dict[str, Any]:
    """Metadata without what is private."""
    return {key: value for key, value in metadata.items() if key != PRIVATE}


def part_of(event: BlockEnded) -> AnyPart | None:
    """What a block leaves in its message; a torn call and an empty block leave nothing."""
    if event.kind is BlockKind.TEXT:
        return TextPart(text=event.text) if event.text else None
    if event.kind is BlockKind.THINKING:
        return ThinkingPart(text=event.text or "", signature=event.signature) if event.text or event.signature else None
    if event.kind is BlockKind.TOOL_USE:
        return None if event.torn or event.call is None else ToolUsePart(call=event.call)
    return event.image if event.kind is BlockKind.IMAGE else event.data


def standing(records: Iterable[Record]) -> list[Record]:
    """The records without those of turns that were rewound."""
    kept: list[Record] = []
    for record in records:
        if isinstance(record.event, SessionRewound):
            to = record.event.to_seq
            kept = [one for one in kept if one.seq <= to or one.turn_id is None]
        kept.append(record)
    return kept


def fold(session_id: str, records: Iterable[Record]) -> SessionView:
    view = SessionView(session_id=session_id)
    for record in records:
        view.apply(record)
    return view


_FOLDS: dict[type[Event], Callable[[SessionView, Record, Any], None]] = {
    SessionCreated: SessionView._created,
    SessionUpdated: SessionView._updated,
    SessionCompacted: SessionView._compacted,
    SessionRewound: SessionView._rewound,
    SessionClosed: SessionView._closed,
    InputAccepted: SessionView._accepted,
    InputRequested: SessionView._requested,
    InputResolved: SessionView._resolved,
    TurnStarted: SessionView._started,
    TurnSuspended: SessionView._suspended,
    TurnResumed: SessionView._resumed,
    TurnEnded: SessionView._ended,
    MessageStarted: SessionView._message_started,
    MessageAnnotated: SessionView._annotated,
    MessageEnded: SessionView._message_ended,
    BlockStarted: SessionView._block_started,
    BlockEnded: SessionView._block_ended,
    ToolReturned: SessionView._returned,
    ScopeOpened: SessionView._opened,
    ScopeStatusChanged: SessionView._scope_changed,
}
