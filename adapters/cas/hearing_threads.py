"""CAS, heard: threads as the scopes of sub-agents, opened when they are first told of."""

from gateway.ids import Mint
from gateway.model import ROOT, ScopeMessage, ScopeOpened, ScopeStatus, ScopeStatusChanged, StopReason
from gateway.ports import Said

from .hearing_reading import Told, whole, words
from .hearing_voice import Voice

COORDINATOR = "coordinator"
STATUSES = {
    "session.thread_status_running": ScopeStatus.RUNNING,
    "session.thread_status_idle": ScopeStatus.IDLE,
    "session.thread_status_terminated": ScopeStatus.ENDED,
}
"""What a status event says where it has no status of its own."""


class Threads:
    """Who speaks in a turn: the agent itself, and the threads it has had a hand in."""

    def __init__(self, mint: Mint) -> None:
        self._mint = mint
        self.voices: dict[str, Voice] = {ROOT: Voice(mint)}
        self._scopes: dict[str, str] = {}

    def scope_of(self, thread_id: str) -> str:
        """Threads that nobody has told of are the coordinator's."""
        return self._scopes.get(thread_id, ROOT)

    def voice(self, told: Told) -> Voice:
        return self.voices[self.scope_of(told.text("session_thread_id"))]

    def voice_of_call(self, call_id: str) -> Voice | None:
        return next((voice for voice in self.voices.values() if call_id in voice.scribe.open_calls), None)

    def created(self, told: Told) -> list[Said]:
        thread_id = told.text("session_thread_id")
        if not thread_id:
            raise told.wrong("it does not name the thread")
        if thread_id in self._scopes:
            return []
        if told.text("role") == COORDINATOR:
            self._scopes[thread_id] = ROOT
            return []
        return self._open(thread_id, told)

    def _open(self, thread_id: str, told: Told) -> list[Said]:
        scope_id = self._scopes[thread_id] = f"scope_{thread_id.removeprefix('sthr_')}"
        voice = self.voices[scope_id] = Voice(self._mint, scope_id)
        parent = self.scope_of(told.text("parent_thread_id"))
        return [voice.scribe.pen.say(ScopeOpened(
            parent=ROOT if self.voices[parent].over or parent == scope_id else parent,
            call_id=told.text("created_by_tool_use_id") or None, title=told.text("agent_name") or None,
            agent=told.text("agent_id").removeprefix("agent_") or None, role=told.text("role") or "child",
        ))]

    def changed(self, told: Told) -> list[Said]:
        """A thread that goes on from an earlier turn is opened anew: scopes live as long as a turn."""
        thread_id, status = told.text("session_thread_id"), _status(told)
        if not thread_id or told.text("role") == COORDINATOR:
            return []
        known = thread_id in self._scopes
        if not known and status is ScopeStatus.ENDED:
            return []  # it was put away, long after it had said its last
        said = [] if known else self._open(thread_id, told)
        scope_id = self._scopes[thread_id]
        voice = self.voices[scope_id]
        if scope_id == ROOT or voice.over:
            return said
        if status is not ScopeStatus.RUNNING:
            said += voice.finish()
        voice.over = status is ScopeStatus.ENDED
        return [*said, voice.scribe.pen.say(ScopeStatusChanged(status=status, stop_reason=_why(told, status)))]

    def mail(self, told: Told) -> list[Said]:
        sender, recipient = (self.scope_of(told.text(f"{end}_session_thread_id")) for end in ("from", "to"))
        is_error, content = told.body.get("is_error") is True, whole(told.content())
        message = ScopeMessage(sender=sender, recipient=recipient, content=content, is_error=is_error)
        return [self.voices[sender].scribe.pen.say(message)]

    def close(self, why: StopReason) -> list[Said]:
        """The ends of the threads that are still there, youngest first."""
        said = []
        for scope_id, voice in reversed(self.voices.items()):
            if scope_id != ROOT and not voice.over:
                voice.over = True
                said.append(voice.scribe.pen.say(ScopeStatusChanged(status=ScopeStatus.ENDED, stop_reason=why)))
        return said


def _status(told: Told) -> ScopeStatus:
    status = words().scopes.get(told.text("status"), STATUSES[told.type])
    if told.object("stop_reason").get("type") == "requires_action":
        return ScopeStatus.BLOCKED
    return ScopeStatus.ENDED if status is ScopeStatus.ARCHIVED else status


def _why(told: Told, status: ScopeStatus) -> StopReason | None:
    if status is ScopeStatus.RUNNING:
        return None
    if status is ScopeStatus.BLOCKED:
        return StopReason.NEEDS_INPUT
    return words().stops.get(str(told.object("stop_reason").get("type")), StopReason.END_TURN)
