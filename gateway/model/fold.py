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
    Event,
    InputAccepted,
    InputRequested,
    InputResolved,
    MessageAnnotated,
    MessageEnded,
    MessageStarted,
    SessionClosed,
    SessionCompacted,
    SessionCreated,
    SessionUpdated,
    ToolReturned,
    TurnEnded,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
)
from .record import Record
from .vocabulary import ROOT, BlockKind, CloseReason, Outcome, Role, SessionStatus, StopReason, ToolOrigin, Topic


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
    usage: Usage = Usage()
    entries: list[Entry] = field(default_factory=list)
    asks: dict[str, OpenAsk] = field(default_factory=dict)
    calls: dict[str, ToolCall] = field(default_factory=dict)
    ended: TurnEnded | None = None
    compaction: SessionCompacted | None = None
    compacted_to: int = 0
    closed: CloseReason | None = None
    speaking: dict[str, Entry] = field(default_factory=dict)

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

    def _updated(self, record: Record, event: SessionUpdated) -> None:
        self.title = self.title if event.title is None else event.title
        self.metadata = self.metadata if event.metadata is None else event.metadata
        self.settings = self.settings if event.settings is None else event.settings
        self.updated_at = record.at

    def _compacted(self, record: Record, event: SessionCompacted) -> None:
        kept = len(self.entries)
        while kept and record.turn_id is not None and self.entries[kept - 1].turn_id == record.turn_id:
            kept -= 1  # what this turn has said so far is not yet history
        self.compaction, self.compacted_to, self.updated_at = event, kept, record.at

    def _closed(self, record: Record, event: SessionClosed) -> None:
        self.closed, self.status, self.updated_at = event.reason, SessionStatus.CLOSED, record.at

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
        self.asks.pop(event.request_id, None)

    def _started(self, record: Record, event: TurnStarted) -> None:
        self.status, self.turn_id = SessionStatus.RUNNING, record.turn_id
        self.turn_starts.append(record.seq)
        self.updated_at = record.at

    def _suspended(self, record: Record, event: TurnSuspended) -> None:
        self.status = SessionStatus.SUSPENDED

    def _resumed(self, record: Record, event: TurnResumed) -> None:
        self.status = SessionStatus.RUNNING

    def _ended(self, record: Record, event: TurnEnded) -> None:
        self.status, self.turn_id, self.ended = SessionStatus.IDLE, None, event
        self.usage += event.usage
        self.updated_at = record.at

    def _message_started(self, record: Record, event: MessageStarted) -> None:
        self.speaking[event.message_id] = Entry(
            role=event.role, content=(), seq=record.seq, at=record.at, turn_id=record.turn_id,
            scope_id=record.scope_id, message_id=event.message_id, model=event.model, annotations={},
        )

    def _annotated(self, record: Record, event: MessageAnnotated) -> None:
        if (entry := self.speaking.get(event.message_id)) is not None:
            entry.annotations[event.topic] = event.content

    def _block_ended(self, record: Record, event: BlockEnded) -> None:
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
        self.entries.append(Entry(
            role=Role.TOOL, content=event.content, seq=record.seq, at=record.at, turn_id=record.turn_id,
            scope_id=record.scope_id, call_id=event.call_id, origin=event.origin, is_error=event.is_error,
        ))


def part_of(event: BlockEnded) -> AnyPart | None:
    """What a block leaves in its message; a torn call and an empty block leave nothing."""
    if event.kind is BlockKind.TEXT:
        return TextPart(text=event.text) if event.text else None
    if event.kind is BlockKind.THINKING:
        return ThinkingPart(text=event.text or "", signature=event.signature) if event.text or event.signature else None
    if event.kind is BlockKind.TOOL_USE:
        return None if event.torn or event.call is None else ToolUsePart(call=event.call)
    return event.image if event.kind is BlockKind.IMAGE else event.data


def fold(session_id: str, records: Iterable[Record]) -> SessionView:
    view = SessionView(session_id=session_id)
    for record in records:
        view.apply(record)
    return view


_FOLDS: dict[type[Event], Callable[[SessionView, Record, Any], None]] = {
    SessionCreated: SessionView._created,
    SessionUpdated: SessionView._updated,
    SessionCompacted: SessionView._compacted,
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
    BlockEnded: SessionView._block_ended,
    ToolReturned: SessionView._returned,
}
