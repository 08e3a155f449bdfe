"""Computes the state of a session from its records: one function per type of event that changes the state."""

from collections.abc import Callable, Iterable, Mapping
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
from .session_view import AskRecord, Checkpoint, HistoryEntry, OpenAsk, ScopeView, SessionView

Fold = Callable[[SessionView, Record, Any], None]
"""How one type of event changes the view."""


def apply(view: SessionView, record: Record) -> None:
    """Change the view by the next record of its session."""
    view.head, view.at = record.seq, record.at
    fold = _FOLDS.get(type(record.event))
    if fold is not None:
        fold(view, record, record.event)


def _created(view: SessionView, record: Record, event: SessionCreated) -> None:
    view.owner, view.agent, view.title = event.owner, event.agent, event.title
    view.metadata, view.settings = event.metadata, event.settings
    view.created_at = view.updated_at = record.at
    for message in event.history:
        view.entries.append(HistoryEntry(
            role=message.role, content=message.content, call_id=message.call_id, seq=record.seq, at=record.at,
        ))
    _mark(view, record)


def _updated(view: SessionView, record: Record, event: SessionUpdated) -> None:
    view.title = view.title if event.title is None else event.title
    view.metadata = view.metadata if event.metadata is None else _private_of(view.metadata) | event.metadata
    view.settings = view.settings if event.settings is None else event.settings
    view.agent = event.agent or view.agent
    view.updated_at = record.at


def _compacted(view: SessionView, record: Record, event: SessionCompacted) -> None:
    kept = len(view.entries)
    while kept and record.turn_id is not None and view.entries[kept - 1].turn_id == record.turn_id:
        kept -= 1  # the messages of the running turn are not yet history
    view.compaction, view.compacted_to, view.updated_at = event, kept, record.at


def _rewound(view: SessionView, record: Record, event: SessionRewound) -> None:
    """Back to the last checkpoint at or before that record; those after it are gone with what they marked."""
    while len(view.checkpoints) > 1 and view.checkpoints[-1].seq > event.to_seq:
        view.checkpoints.pop()
    if view.checkpoints:
        to = view.checkpoints[-1]
        view.entries = view.entries[:to.entries]
        view.past_asks = {name: past for name, past in view.past_asks.items() if past.asked.seq <= to.seq}
        view.ended, view.compaction, view.compacted_to = to.ended, to.compaction, to.compacted_to
    view.updated_at = record.at


def _mark(view: SessionView, record: Record) -> None:
    view.checkpoints.append(Checkpoint(
        seq=record.seq, at=record.at, entries=len(view.entries), turn_id=record.turn_id, ended=view.ended,
        compaction=view.compaction, compacted_to=view.compacted_to,
    ))


def _closed(view: SessionView, record: Record, event: SessionClosed) -> None:
    view.closed, view.status = event.reason, SessionStatus.CLOSED
    view.closed_at = view.updated_at = record.at


def _accepted(view: SessionView, record: Record, event: InputAccepted) -> None:
    if isinstance(event.command, SendMessage) and event.command.results:
        view.entries += [
            HistoryEntry(
                role=Role.TOOL, content=result.content, call_id=result.call_id, origin=ToolOrigin.CLIENT,
                seq=record.seq, at=record.at, turn_id=record.turn_id,
            ) for result in event.command.results
        ]
    elif isinstance(event.command, SendMessage):
        view.entries.append(HistoryEntry(
            role=Role.USER, content=event.command.content, seq=record.seq, at=record.at,
            turn_id=record.turn_id, message_id=event.command.message_id or event.command_id,
        ))
    elif isinstance(event.command, ANSWERS):
        answer = cast(Answer, event.command)
        if (past := view.past_asks.get(answer.request_id)) is not None and not past.settled:
            past.answer, past.settled = answer, record.seq


def _requested(view: SessionView, record: Record, event: InputRequested) -> None:
    asked = view.asks[event.request_id] = OpenAsk(
        request_id=event.request_id, ask=event.ask, seq=record.seq, at=record.at, turn_id=record.turn_id or "",
        scope_id=record.scope_id, call_id=event.call_id, expires_at=event.expires_at,
    )
    view.past_asks[event.request_id] = AskRecord(asked=asked)


def _resolved(view: SessionView, record: Record, event: InputResolved) -> None:
    ask, past = view.asks.pop(event.request_id, None), view.past_asks.get(event.request_id)
    if past is not None:
        past.settled = past.settled or record.seq
    if ask is not None and event.resolution is Resolution.EXPIRED:
        view.expired[event.request_id] = ask.turn_id


def _started(view: SessionView, record: Record, event: TurnStarted) -> None:
    view.status, view.turn_id = SessionStatus.RUNNING, record.turn_id
    view.turn_starts.append(record.seq)
    view.begun_at, view.stops = record.seq, view.stops[-1:]
    view.running_since = view.updated_at = record.at


def _suspended(view: SessionView, record: Record, event: TurnSuspended) -> None:
    view.status = SessionStatus.SUSPENDED
    view.stops.append(record.seq)
    _rest(view, record.at)


def _resumed(view: SessionView, record: Record, event: TurnResumed) -> None:
    view.status, view.running_since = SessionStatus.RUNNING, record.at
    view.begun_at = record.seq


def _rest(view: SessionView, at: float) -> None:
    if view.running_since is not None:
        view.active_seconds += at - view.running_since
        view.running_since = None


def _ended(view: SessionView, record: Record, event: TurnEnded) -> None:
    view.status, view.turn_id, view.ended = SessionStatus.IDLE, None, event
    view.stops.append(record.seq)
    _rest(view, record.at)
    view.usage += event.usage
    view.updated_at = record.at
    _mark(view, record)


def _message_started(view: SessionView, record: Record, event: MessageStarted) -> None:
    view.speaking[event.message_id] = HistoryEntry(
        role=event.role, content=(), seq=record.seq, at=record.at, turn_id=record.turn_id,
        scope_id=record.scope_id, message_id=event.message_id, model=event.model, annotations={},
    )


def _annotated(view: SessionView, record: Record, event: MessageAnnotated) -> None:
    if (entry := view.speaking.get(event.message_id)) is not None:
        entry.annotations[event.topic] = event.content


def _block_started(view: SessionView, record: Record, event: BlockStarted) -> None:
    if event.call is not None:
        view.call_places[event.call.call_id] = record.seq


def _block_ended(view: SessionView, record: Record, event: BlockEnded) -> None:
    if event.torn and event.call is not None:
        view.call_places.pop(event.call.call_id, None)
    entry, part = view.speaking.get(event.message_id), part_of(event)
    if entry is None or part is None:
        return
    if not entry.content:
        view.entries.append(entry)  # a message stands in history from its first whole part on
    entry.content = (*entry.content, part)  # a speaking entry's content is parts
    if event.call is not None:
        view.calls[event.call.call_id] = event.call


def _message_ended(view: SessionView, record: Record, event: MessageEnded) -> None:
    if (entry := view.speaking.pop(event.message_id, None)) is not None:
        entry.outcome, entry.stop_reason, entry.usage = event.outcome, event.stop_reason, event.usage


def _returned(view: SessionView, record: Record, event: ToolReturned) -> None:
    view.calls.pop(event.call_id, None)
    view.call_places.pop(event.call_id, None)
    view.entries.append(HistoryEntry(
        role=Role.TOOL, content=event.content, seq=record.seq, at=record.at, turn_id=record.turn_id,
        scope_id=record.scope_id, call_id=event.call_id, origin=event.origin, is_error=event.is_error,
    ))


def _opened(view: SessionView, record: Record, event: ScopeOpened) -> None:
    view.scopes[record.scope_id] = ScopeView(
        scope_id=record.scope_id, parent=event.parent, agent=event.agent, title=event.title, role=event.role,
        cause=view.call_places.get(event.call_id or ""), created_at=record.at, updated_at=record.at,
    )


def _scope_changed(view: SessionView, record: Record, event: ScopeStatusChanged) -> None:
    if (scope := view.scopes.get(record.scope_id)) is not None:
        scope.status, scope.stop_reason, scope.updated_at = event.status, event.stop_reason, record.at
        scope.archived_at = record.at if event.status is ScopeStatus.ARCHIVED else scope.archived_at


def _private_of(metadata: Mapping[str, object]) -> dict[str, object]:
    """The private metadata, which stay when a client replaces the metadata that it can see."""
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
    """The state of a session after these records, which begin with its first."""
    view = SessionView(session_id=session_id)
    for record in records:
        apply(view, record)
    return view


_FOLDS: dict[type[Event], Fold] = {
    SessionCreated: _created,
    SessionUpdated: _updated,
    SessionCompacted: _compacted,
    SessionRewound: _rewound,
    SessionClosed: _closed,
    InputAccepted: _accepted,
    InputRequested: _requested,
    InputResolved: _resolved,
    TurnStarted: _started,
    TurnSuspended: _suspended,
    TurnResumed: _resumed,
    TurnEnded: _ended,
    MessageStarted: _message_started,
    MessageAnnotated: _annotated,
    MessageEnded: _message_ended,
    BlockStarted: _block_started,
    BlockEnded: _block_ended,
    ToolReturned: _returned,
    ScopeOpened: _opened,
    ScopeStatusChanged: _scope_changed,
}
