"""CAS, heard: the events of a server in, words of the house out. No clock, no socket."""

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
from gateway.upstream import Ended, Frame, Heard

from .hearing_frames import event_id_of, type_of
from .hearing_reading import Told, fault_of, rest_of, usage_of, words
from .hearing_threads import Threads
from .hearing_tools import ORIGINS, Tools
from .hearing_voice import Voice

OUTCOMES = {StopReason.INTERRUPTED: Outcome.INTERRUPTED, StopReason.ERROR: Outcome.FAILED,
            StopReason.TIMEOUT: Outcome.FAILED}
UNFINISHED = "The turn ended before this call came back."
EXHAUSTED = "retries_exhausted"


class CasHearing:
    """One session heard. An event is heard once, however many streams tell it: its id is how it is known.

    The words of sub-agents stand in their threads: whoever has those feeds them too, each event before it is due.
    What is told of a message while it is written is said at once, and the event that follows adds what is missing.
    """

    def __init__(self, mint: Mint) -> None:
        self._mint = mint
        self._paused = False
        self._begin()

    def _begin(self) -> None:
        """Everything here is over when the turn is."""
        self._threads = Threads(self._mint)
        self._tools = Tools(self._threads)
        self._had: set[str] = set()
        self._usage = Usage()
        self._fault: Fault | None = None
        self._over = False

    @property
    def paused(self) -> bool:
        return self._paused

    @property
    def over(self) -> bool:
        """Whether the turn has ended, and the next has not begun."""
        return self._over

    def answered(self) -> None:
        """The answers are on their way: the server does not wait any more."""
        self._paused = False

    def interrupted(self) -> None:
        """The line was cut, and is taken up again after the last event that was whole."""
        for voice in self._threads.voices.values():
            voice.interrupted()

    def feed(self, frame: Frame) -> list[Heard]:
        if not isinstance(frame.body, dict):
            raise BackendFailed("the upstream sent an event that is no object")
        kind = type_of(frame)
        told, step = Told(kind, event_id_of(frame), frame.body), _STEPS.get(kind)
        if kind in PREVIEWS:
            return self._previewed(told)
        if step is None or told.id in self._had:
            return []
        if self._over:
            if kind not in OPENING:
                return []
            if kind in BEGINNING:
                self._begin()
        self._had |= {told.id} if told.id else set()
        self._paused = self._paused and kind in STILL
        return [*([] if kind in ENDING else self._mentioned()), *step(self, told)]

    def _previewed(self, told: Told) -> list[Heard]:
        voice = self._threads.voice(told)
        if self._over or voice.over:
            return []
        self._paused = False
        return [*PREVIEWS[told.type](voice, told)]

    def end(self) -> list[Heard]:
        return [] if self._over else self._close(Outcome.COMPLETED, StopReason.END_TURN)

    # -- the turn -------------------------------------------------------------------------------------------------

    def _goes_on(self, told: Told) -> list[Heard]:
        return []

    def _idle(self, told: Told) -> list[Heard]:
        why = told.object("stop_reason").get("type")
        usage = rest_of(usage_of(told.object("usage")), self._usage)
        if why == "requires_action":
            asked = self._tools.asks.waiting(told.object("stop_reason").get("event_ids"))
            self._paused = True
            return [*self._mentioned(), *self._finish_all(usage, Outcome.COMPLETED), *asked]
        return self._end(self._stop(str(why)), usage)

    def _stop(self, word: str) -> StopReason:
        if word == EXHAUSTED or self._fault is not None:
            return StopReason.ERROR
        own = self._threads.voices[ROOT].stop_reason
        meant = words().stops.get(word) or next((one for one in StopReason if one == word), StopReason.END_TURN)
        silent = meant is StopReason.END_TURN and own not in (None, StopReason.TOOL_USE)
        return own if silent and own else meant

    def _end(self, stop: StopReason, usage: Usage = NOTHING) -> list[Heard]:
        outcome, fault = OUTCOMES.get(stop, Outcome.COMPLETED), self._fault
        if outcome is Outcome.FAILED and fault is None:
            fault = Fault(code=FaultCode.BACKEND, message="The server gave up the turn.")
        said = self._close(outcome, stop, usage)
        return [*said, Ended(stop_reason=stop, outcome=outcome, fault=fault)]

    def _gone(self, told: Told) -> list[Heard]:
        """The session is no more; whatever ran in it has ended with it."""
        self._fault = Fault(code=FaultCode.BACKEND, message="The server has closed the session.")
        return self._end(StopReason.ERROR)

    def _close(self, outcome: Outcome, stop: StopReason, usage: Usage = NOTHING) -> list[Heard]:
        said: list[Heard] = [*self._finish_all(usage, outcome)]
        said += [event for voice in self._threads.voices.values() for event in voice.abandoned(UNFINISHED)]
        said += self._threads.close(stop)
        said += self._tools.left_over()
        self._over, self._paused, self._fault = True, False, None
        return said

    def _finish_all(self, usage: Usage, outcome: Outcome) -> list[Any]:
        """Messages that no span has ended; what was spent and not told of is the agent's own."""
        voices = reversed(self._threads.voices.items())
        return [event for scope_id, voice in voices
                for event in voice.finish(usage if scope_id == ROOT else NOTHING, outcome)]

    # -- the session ----------------------------------------------------------------------------------------------

    def _updated(self, told: Told) -> list[Heard]:
        title = None if told.body.get("title") is None else told.text("title")
        metadata = None if told.body.get("metadata") is None else dict(told.object("metadata"))
        return [] if title is None and metadata is None else [SessionUpdated(title=title, metadata=metadata)]

    def _compacted(self, told: Told) -> list[Heard]:
        if self._threads.scope_of(told.text("session_thread_id")) != ROOT:
            return []
        return [SessionCompacted(compaction_id=told.id or self._mint("cmp"), summary=told.text("summary"))]

    def _failed(self, told: Told) -> list[Heard]:
        """An error that ends the turn is told with its end; one that does not is told as soon as that is known."""
        fault, again = fault_of(told)
        if again:
            return [FaultRaised(fault=fault)]
        self._fault = fault
        return []

    def _mentioned(self) -> list[Heard]:
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
        voice = self._threads.voice(told)
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
        return [*self._threads.created(told)]

    def _thread_changed(self, told: Told) -> list[Heard]:
        return [*self._threads.changed(told)]

    def _mail(self, told: Told) -> list[Heard]:
        return [*self._threads.mail(told)]


PREVIEWS: dict[str, Callable[[Voice, Told], list[Any]]] = {
    "event_start": Voice.announced,
    "event_delta": Voice.grown,
    "agent.message_start": Voice.raw_started,
    "agent.content_block_start": Voice.raw_block,
    "agent.content_block_delta": Voice.raw_delta,
    "agent.content_block_stop": Voice.raw_block_ended,
    "agent.message_delta": Voice.raw_stop,
}

_STEPS: dict[str, Callable[[CasHearing, Told], list[Heard]]] = {
    "user.message": CasHearing._goes_on,
    "user.tool_confirmation": CasHearing._goes_on,
    "user.custom_tool_result": CasHearing._returned,
    "session.status_running": CasHearing._goes_on,
    "session.status_idle": CasHearing._idle,
    "session.status_terminated": CasHearing._gone,
    "session.deleted": CasHearing._gone,
    "session.updated": CasHearing._updated,
    "session.error": CasHearing._failed,
    "error": CasHearing._broken,
    "span.model_request_start": CasHearing._span_started,
    "span.model_request_end": CasHearing._span_ended,
    "agent.message": CasHearing._message,
    "agent.thinking": CasHearing._thinking,
    **dict.fromkeys(ORIGINS, CasHearing._called),
    "agent.tool_result": CasHearing._returned,
    "agent.mcp_tool_result": CasHearing._returned,
    "agent.artifact_delivered": CasHearing._delivered,
    "agent.thread_context_compacted": CasHearing._compacted,
    "session.thread_created": CasHearing._thread_created,
    "session.thread_status_running": CasHearing._thread_changed,
    "session.thread_status_idle": CasHearing._thread_changed,
    "session.thread_status_terminated": CasHearing._thread_changed,
    "agent.thread_message_sent": CasHearing._mail,
    "agent.thread_message_received": CasHearing._mail,
}
BEGINNING = ("user.message", "session.status_running")
"""After the end of a turn, these begin the next."""
OPENING = (*BEGINNING, "session.updated", "error")
"""All that is heard between turns."""
STILL = ("session.status_idle", "session.updated", "session.error", "agent.thread_context_compacted")
"""What a server may say and still wait."""
ENDING = ("session.status_idle", "session.status_terminated", "session.deleted", "session.updated")
"""What a fault may be followed by and still have been the end of the turn."""
