"""Records in, the state of a session out: the only reader of history."""

from collections.abc import Callable, Iterable
from typing import Any, cast

from .commands import ANSWERS, Answer, SendMessage
from .content import AnyPart, TextPart, ThinkingPart, ToolUsePart
from .enums import BlockKind, Resolution, Role, ScopeStatus, SessionStatus, ToolOrigin
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
from .record import PRIVATE, Record
from .session_view import AskRecord, Checkpoint, HistoryEntry, OpenAsk, ScopeView, SessionState


class SessionView(SessionState, kw_only=True):
    """A session as its records tell it; `apply` takes the next record."""

    def apply(self, record: Record) -> None:
        self.head, self.at = record.seq, record.at
        fold = _FOLDS.get(type(record.event))
        if fold is not None:
            fold(self, record, record.event)

    # -- one fold per event that leaves a trace -------------------------------------------------------------------

    def _created(self, record: Record, event: SessionCreated) -> None:
        self.owner, self.agent, self.title = event.owner, event.agent, event.title
        self.metadata, self.settings = event.metadata, event.settings
        self.created_at = self.updated_at = record.at
        for message in event.history:
            self.entries.append(HistoryEntry(
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
            self.past_asks = {name: past for name, past in self.past_asks.items() if past.asked.seq <= to.seq}
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
        if isinstance(event.command, SendMessage) and event.command.results:
            self.entries += [
                HistoryEntry(
                    role=Role.TOOL, content=result.content, call_id=result.call_id, origin=ToolOrigin.CLIENT,
                    seq=record.seq, at=record.at, turn_id=record.turn_id,
                ) for result in event.command.results
            ]
        elif isinstance(event.command, SendMessage):
            self.entries.append(HistoryEntry(
                role=Role.USER, content=event.command.content, seq=record.seq, at=record.at,
                turn_id=record.turn_id, message_id=event.command.message_id or event.command_id,
            ))
        elif isinstance(event.command, ANSWERS):
            answer = cast(Answer, event.command)
            if (past := self.past_asks.get(answer.request_id)) is not None and not past.settled:
                past.answer, past.settled = answer, record.seq

    def _requested(self, record: Record, event: InputRequested) -> None:
        asked = self.asks[event.request_id] = OpenAsk(
            request_id=event.request_id, ask=event.ask, seq=record.seq, at=record.at, turn_id=record.turn_id or "",
            scope_id=record.scope_id, call_id=event.call_id, expires_at=event.expires_at,
        )
        self.past_asks[event.request_id] = AskRecord(asked=asked)

    def _resolved(self, record: Record, event: InputResolved) -> None:
        ask, past = self.asks.pop(event.request_id, None), self.past_asks.get(event.request_id)
        if past is not None:
            past.settled = past.settled or record.seq
        if ask is not None and event.resolution is Resolution.EXPIRED:
            self.expired[event.request_id] = ask.turn_id

    def _started(self, record: Record, event: TurnStarted) -> None:
        self.status, self.turn_id = SessionStatus.RUNNING, record.turn_id
        self.turn_starts.append(record.seq)
        self.begun_at, self.stops = record.seq, self.stops[-1:]
        self.running_since = self.updated_at = record.at

    def _suspended(self, record: Record, event: TurnSuspended) -> None:
        self.status = SessionStatus.SUSPENDED
        self.stops.append(record.seq)
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
        self.stops.append(record.seq)
        self._rest(record.at)
        self.usage += event.usage
        self.updated_at = record.at
        self._mark(record)

    def _message_started(self, record: Record, event: MessageStarted) -> None:
        self.speaking[event.message_id] = HistoryEntry(
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
        self.entries.append(HistoryEntry(
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


def part_of(event: BlockEnded) -> AnyPart | None:
    """What a block leaves in its message; a torn call and an empty block leave nothing."""
    if event.kind is BlockKind.TEXT:
        return TextPart(text=event.text) if event.text else None
    if event.kind is BlockKind.THINKING:
        return ThinkingPart(text=event.text or "", signature=event.signature) if event.text or event.signature else None
    if event.kind is BlockKind.TOOL_USE:
        return None if event.torn or event.call is None else ToolUsePart(call=event.call)
    return event.image if event.kind is BlockKind.IMAGE else event.data


def without_rewound(records: Iterable[Record]) -> list[Record]:
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
