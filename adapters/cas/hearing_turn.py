"""One turn of CAS as it is heard: its messages, calls and sub-agents, its faults, and how it ended."""

from collections.abc import Callable
from typing import Any

from gateway.errors import BackendFailed
from gateway.ids import Mint
from gateway.model import (
    ROOT,
    Fault,
    FaultCode,
    FaultRaised,
    Outcome,
    SessionCompacted,
    SessionUpdated,
    StopReason,
    Usage,
)
from gateway.speech import NOTHING
from gateway.upstream import Ended, Heard

from .hearing_reading import Told, fault_of, rest_of, usage_of, words
from .hearing_threads import Threads
from .hearing_tools import ORIGINS, Tools
from .hearing_voice import Voice

OUTCOMES = {StopReason.INTERRUPTED: Outcome.INTERRUPTED, StopReason.ERROR: Outcome.FAILED,
            StopReason.TIMEOUT: Outcome.FAILED}
UNFINISHED = "The turn ended before this call came back."
EXHAUSTED = "retries_exhausted"


class HeardTurn:
    """What was heard of a turn so far; whatever is kept here is over when the turn is."""

    def __init__(self, mint: Mint) -> None:
        self.threads = Threads(mint)
        self.paused = False
        """The server waits for answers."""
        self.over = False
        self._mint, self._tools = mint, Tools(self.threads)
        self._usage = Usage()
        self._fault: Fault | None = None

    # -- its end --------------------------------------------------------------------------------------------------

    def _goes_on(self, told: Told) -> list[Heard]:
        return []

    def _idle(self, told: Told) -> list[Heard]:
        why = told.object("stop_reason").get("type")
        usage = rest_of(usage_of(told.object("usage")), self._usage)
        if why == "requires_action":
            asked = self._tools.asks.waiting(told.object("stop_reason").get("event_ids"))
            self.paused = True
            return [*self.mentioned(), *self._finish_all(usage, Outcome.COMPLETED), *asked]
        return self._end(self._stop(str(why)), usage)

    def _stop(self, word: str) -> StopReason:
        if word == EXHAUSTED or self._fault is not None:
            return StopReason.ERROR
        own = self.threads.voices[ROOT].stop_reason
        meant = words().stops.get(word) or next((one for one in StopReason if one == word), StopReason.END_TURN)
        silent = meant is StopReason.END_TURN and own not in (None, StopReason.TOOL_USE)
        return own if silent and own else meant

    def _end(self, stop: StopReason, usage: Usage = NOTHING) -> list[Heard]:
        outcome, fault = OUTCOMES.get(stop, Outcome.COMPLETED), self._fault
        if outcome is Outcome.FAILED and fault is None:
            fault = Fault(code=FaultCode.BACKEND, message="The server gave up the turn.")
        said = self.close(outcome, stop, usage)
        return [*said, Ended(stop_reason=stop, outcome=outcome, fault=fault)]

    def _gone(self, told: Told) -> list[Heard]:
        """The session is no more; whatever ran in it has ended with it."""
        self._fault = Fault(code=FaultCode.BACKEND, message="The server has closed the session.")
        return self._end(StopReason.ERROR)

    def close(self, outcome: Outcome, stop: StopReason, usage: Usage = NOTHING) -> list[Heard]:
        said: list[Heard] = [*self._finish_all(usage, outcome), *self._tools.answered()]
        said += [event for voice in self.threads.voices.values() for event in voice.abandoned(UNFINISHED)]
        said += self.threads.close(stop)
        said += self._tools.left_over()
        self.over, self.paused, self._fault = True, False, None
        return said

    def _finish_all(self, usage: Usage, outcome: Outcome) -> list[Any]:
        """Messages that no span has ended; what was spent and not told of is the agent's own."""
        voices = reversed(self.threads.voices.items())
        return [event for scope_id, voice in voices
                for event in voice.finish(usage if scope_id == ROOT else NOTHING, outcome)]

    # -- the session ----------------------------------------------------------------------------------------------

    def _updated(self, told: Told) -> list[Heard]:
        title = None if told.body.get("title") is None else told.text("title")
        metadata = None if told.body.get("metadata") is None else dict(told.object("metadata"))
        return [] if title is None and metadata is None else [SessionUpdated(title=title, metadata=metadata)]

    def _compacted(self, told: Told) -> list[Heard]:
        if self.threads.scope_of(told.text("session_thread_id")) != ROOT:
            return []
        return [SessionCompacted(compaction_id=told.id or self._mint("cmp"), summary=told.text("summary"))]

    def _failed(self, told: Told) -> list[Heard]:
        """An error that ends the turn is told with its end; one that does not is told as soon as that is known."""
        fault, again = fault_of(told)
        if again:
            return [FaultRaised(fault=fault)]
        self._fault = fault
        return []

    def mentioned(self) -> list[Heard]:
        """A fault after which the turn went on."""
        if self._fault is None:
            return []
        fault, self._fault = self._fault, None
        return [FaultRaised(fault=fault)]

    def _broken(self, told: Told) -> list[Heard]:
        fault, _ = fault_of(told)
        raise BackendFailed(f"the upstream broke off: {fault.message[:500]}")

    # -- messages -------------------------------------------------------------------------------------------------

    def _span_started(self, told: Told) -> list[Heard]:
        voice = self._speaking(told)
        return [*voice.span_started(told.text("model"))] if voice else []

    def _span_ended(self, told: Told) -> list[Heard]:
        voice = self._speaking(told)
        if voice is None:
            return []
        usage = usage_of(told.object("model_usage") or told.object("usage"))
        self._usage += usage
        return [*voice.finish(usage, Outcome.FAILED if told.body.get("is_error") is True else Outcome.COMPLETED)]

    def _message(self, told: Told) -> list[Heard]:
        voice = self._speaking(told)
        return [*voice.message(told)] if voice else []

    def _thinking(self, told: Told) -> list[Heard]:
        voice = self._speaking(told)
        return [*voice.thinking(told)] if voice else []

    def _speaking(self, told: Told) -> Voice | None:
        """Whose words these are; a sub-agent that has ended has none."""
        voice = self.threads.voice(told)
        return None if voice.over else voice

    # -- tools ----------------------------------------------------------------------------------------------------

    def _called(self, told: Told) -> list[Heard]:
        voice = self._speaking(told)
        return [*self._tools.called(told, voice)] if voice else []

    def _returned(self, told: Told) -> list[Heard]:
        return [*self._tools.returned(told)]

    def _delivered(self, told: Told) -> list[Heard]:
        return [*self._tools.delivered(told)]

    # -- sub-agents -----------------------------------------------------------------------------------------------

    def _thread_created(self, told: Told) -> list[Heard]:
        return [*self.threads.created(told)]

    def _thread_changed(self, told: Told) -> list[Heard]:
        return [*self.threads.changed(told)]

    def _mail(self, told: Told) -> list[Heard]:
        return [*self.threads.mail(told)]


STEPS: dict[str, Callable[[HeardTurn, Told], list[Heard]]] = {
    "user.message": HeardTurn._goes_on,
    "user.tool_confirmation": HeardTurn._goes_on,
    "user.custom_tool_result": HeardTurn._returned,
    "session.status_running": HeardTurn._goes_on,
    "session.status_idle": HeardTurn._idle,
    "session.status_terminated": HeardTurn._gone,
    "session.deleted": HeardTurn._gone,
    "session.updated": HeardTurn._updated,
    "session.error": HeardTurn._failed,
    "error": HeardTurn._broken,
    "span.model_request_start": HeardTurn._span_started,
    "span.model_request_end": HeardTurn._span_ended,
    "agent.message": HeardTurn._message,
    "agent.thinking": HeardTurn._thinking,
    **dict.fromkeys(ORIGINS, HeardTurn._called),
    "agent.tool_result": HeardTurn._returned,
    "agent.mcp_tool_result": HeardTurn._returned,
    "agent.artifact_delivered": HeardTurn._delivered,
    "agent.thread_context_compacted": HeardTurn._compacted,
    "session.thread_created": HeardTurn._thread_created,
    "session.thread_status_running": HeardTurn._thread_changed,
    "session.thread_status_idle": HeardTurn._thread_changed,
    "session.thread_status_terminated": HeardTurn._thread_changed,
    "agent.thread_message_sent": HeardTurn._mail,
    "agent.thread_message_received": HeardTurn._mail,
}
