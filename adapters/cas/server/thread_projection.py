"""Projects sub-agents: each is a thread of its own."""

from typing import Any

from msgspec.structs import replace

import gateway.model as m
from gateway.ports import NO_FRAMES, Frames

from .frame_writer import FrameWriter
from .stream_options import thread_id_of
from .turn_state import TurnState

THREAD_CUES = {
    "mail.sent": ("content", "is_error", "from_id", "to_id", "agent_name"),
    "mail.received": ("content", "is_error", "from_id", "to_id", "agent_name"),
}
THREAD_NAMES = {
    "scope.opened": ("parent_id", "agent_id", "agent_version", "agent_name", "caused_by"),
    "scope.status": ("agent_name", "blocking", "why"),
}


class ThreadProjection:
    """The events of sub-agents, in their own threads and in those of their parents."""

    def __init__(self, writer: FrameWriter, turn: TurnState) -> None:
        self._writer = writer
        self._turn = turn

    def opened(self, record: m.Record, event: m.ScopeOpened) -> Frames:
        name = event.title or event.agent or ""
        self._turn.scopes[record.scope_id] = (name, event.parent)
        if not self._writer.is_visible(record.scope_id, event.parent):
            return NO_FRAMES
        options = self._writer.options
        own = event.agent in (None, options.agent)
        return self._writer.write(
            record, parent_id=thread_id_of(record.session_id, event.parent), agent_name=name,
            agent_id=options.agent_id if own else f"agent_{event.agent}",
            agent_version=options.agent_version if own else 1,
            caused_by=self._turn.calls.get(event.call_id or ""),
        )

    def status_changed(self, record: m.Record, event: m.ScopeStatusChanged) -> Frames:
        """A sub-agent is blocked before it asks: the frame waits for the ask, because it names the ask."""
        released = self.release_blocked(record, record.scope_id)
        if event.status is m.ScopeStatus.BLOCKED and not self._blocking(record.scope_id):
            self._turn.blocked[record.scope_id] = record
            return released
        return (*released, *self._status(record, event))

    def release_blocked(self, record: m.Record, *scopes: str) -> Frames:
        """The frames that waited for asks of these sub-agents, or of all; they have the time of this record."""
        blocked = self._turn.blocked
        held = [blocked.pop(scope) for scope in scopes or [*blocked] if scope in blocked]
        return tuple(
            frame for number, one in enumerate(held, 1)
            for frame in self._status(replace(one, at=record.at), one.event, f"{record.event_id}-{number}")
        )

    def _status(self, record: m.Record, event: Any, event_id: str | None = None) -> Frames:
        name, parent = self._turn.scopes.get(record.scope_id, ("", m.ROOT))
        if not self._writer.is_visible(record.scope_id, parent):
            return NO_FRAMES
        return self._writer.write(record, event_id=event_id, agent_name=name, blocking=self._blocking(record.scope_id),
                                  why=event.stop_reason or m.StopReason.END_TURN)

    def _blocking(self, scope_id: str) -> list[str]:
        return [pending.event_id for pending in self._turn.asks.values() if pending.scope_id == scope_id]

    def message(self, record: m.Record, event: m.ScopeMessage) -> Frames:
        if not self._writer.is_visible(event.sender, event.recipient):
            return NO_FRAMES
        scopes = self._turn.scopes
        downward = scopes.get(event.recipient, ("", ""))[1] == event.sender
        child = event.recipient if downward else event.sender
        ids = [thread_id_of(record.session_id, scope_id) for scope_id in (event.sender, event.recipient)]
        return self._writer.write(
            record, "mail.sent" if downward else "mail.received", thread=ids[0] if downward else ids[1],
            content=event.content, is_error=event.is_error, from_id=ids[0], to_id=ids[1],
            agent_name=scopes.get(child, ("", ""))[0],
        )
