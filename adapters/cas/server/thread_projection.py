"""CAS, outward: sub-agents, each a thread of its own."""

from typing import Any

from msgspec.structs import replace

import gateway.model as m

from .frame_writer import FrameWriter
from .previews import NO_FRAMES, Frames
from .stream_options import thread_id_of

THREAD_CUES = {
    "mail.sent": ("content", "is_error", "from_id", "to_id", "agent_name"),
    "mail.received": ("content", "is_error", "from_id", "to_id", "agent_name"),
}
THREAD_NAMES = {
    "scope.opened": ("parent_id", "agent_id", "agent_version", "agent_name", "caused_by"),
    "scope.status": ("agent_name", "blocking", "why"),
}


class ThreadProjection(FrameWriter):
    """What happens to sub-agents, told in their own threads and in their parents'."""

    def _scope_opened(self, record: m.Record, event: m.ScopeOpened) -> Frames:
        name = event.title or event.agent or ""
        self.turn.scopes[record.scope_id] = (name, event.parent)
        if not self.is_visible(record.scope_id, event.parent):
            return NO_FRAMES
        own = event.agent in (None, self.options.agent)
        return self.write(
            record, parent_id=thread_id_of(record.session_id, event.parent), agent_name=name,
            agent_id=self.options.agent_id if own else f"agent_{event.agent}",
            agent_version=self.options.agent_version if own else 1,
            caused_by=self.turn.calls.get(event.call_id or ""),
        )

    def _scope_changed(self, record: m.Record, event: m.ScopeStatusChanged) -> Frames:
        """That a sub-agent waits is told when it is known for what: it says so before it asks."""
        late = self._waits(record, record.scope_id)
        if event.status is m.ScopeStatus.BLOCKED and not self._blocking(record.scope_id):
            self.turn.blocked[record.scope_id] = record
            return late
        return (*late, *self._status(record, event))

    def _waits(self, record: m.Record, *scopes: str) -> Frames:
        """What was held of these sub-agents, or of all: as if it had happened just before this record."""
        held = [self.turn.blocked.pop(scope) for scope in scopes or [*self.turn.blocked] if scope in self.turn.blocked]
        return tuple(
            frame for number, one in enumerate(held, 1)
            for frame in self._status(replace(one, at=record.at), one.event, f"{record.event_id}-{number}")
        )

    def _status(self, record: m.Record, event: Any, event_id: str | None = None) -> Frames:
        name, parent = self.turn.scopes.get(record.scope_id, ("", m.ROOT))
        if not self.is_visible(record.scope_id, parent):
            return NO_FRAMES
        return self.write(record, event_id=event_id, agent_name=name, blocking=self._blocking(record.scope_id),
                         why=event.stop_reason or m.StopReason.END_TURN)

    def _blocking(self, scope_id: str) -> list[str]:
        return [one.event_id for one in self.turn.asks.values() if one.scope_id == scope_id]

    def _mail(self, record: m.Record, event: m.ScopeMessage) -> Frames:
        if not self.is_visible(event.sender, event.recipient):
            return NO_FRAMES
        downward = self.turn.scopes.get(event.recipient, ("", ""))[1] == event.sender
        child = event.recipient if downward else event.sender
        ids = [thread_id_of(record.session_id, scope_id) for scope_id in (event.sender, event.recipient)]
        return self.write(
            record, "mail.sent" if downward else "mail.received", thread=ids[0] if downward else ids[1],
            content=event.content, is_error=event.is_error, from_id=ids[0], to_id=ids[1],
            agent_name=self.turn.scopes.get(child, ("", ""))[0],
        )
