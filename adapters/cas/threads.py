"""CAS, outward: sub-agents, each a thread of its own."""

from gateway.model import ROOT, Record, ScopeMessage, ScopeOpened, ScopeStatusChanged, StopReason

from .previews import SILENCE, Frames
from .reading import thread_id_of
from .voice import Voice

CUES = {
    "mail.sent": ("content", "is_error", "from_id", "to_id", "agent_name"),
    "mail.received": ("content", "is_error", "from_id", "to_id", "agent_name"),
}
NAMES = {
    "scope.opened": ("parent_id", "agent_id", "agent_version", "agent_name", "caused_by"),
    "scope.status": ("agent_name", "blocking", "why"),
}


class Threads(Voice):
    """What happens to sub-agents, told in their own threads and in their parents'."""

    def _scope_opened(self, record: Record, event: ScopeOpened) -> Frames:
        name = event.title or event.agent or ""
        self.turn.scopes[record.scope_id] = (name, event.parent)
        if not self._heard(record.scope_id, event.parent):
            return SILENCE
        own = event.agent in (None, self.reading.agent)
        return self._say(
            record, parent_id=thread_id_of(record.session_id, event.parent), agent_name=name,
            agent_id=self.reading.agent_id if own else f"agent_{event.agent}",
            agent_version=self.reading.agent_version if own else 1,
            caused_by=self.turn.calls.get(event.call_id or ""),
        )

    def _scope_changed(self, record: Record, event: ScopeStatusChanged) -> Frames:
        name, parent = self.turn.scopes.get(record.scope_id, ("", ROOT))
        if not self._heard(record.scope_id, parent):
            return SILENCE
        blocking = [one.event_id for one in self.turn.asks.values() if one.scope_id == record.scope_id]
        return self._say(record, agent_name=name, blocking=blocking, why=event.stop_reason or StopReason.END_TURN)

    def _mail(self, record: Record, event: ScopeMessage) -> Frames:
        if not self._heard(event.sender, event.recipient):
            return SILENCE
        downward = self.turn.scopes.get(event.recipient, ("", ""))[1] == event.sender
        child = event.recipient if downward else event.sender
        ids = [thread_id_of(record.session_id, scope_id) for scope_id in (event.sender, event.recipient)]
        return self._say(
            record, "mail.sent" if downward else "mail.received", thread=ids[0] if downward else ids[1],
            content=event.content, is_error=event.is_error, from_id=ids[0], to_id=ids[1],
            agent_name=self.turn.scopes.get(child, ("", ""))[0],
        )
