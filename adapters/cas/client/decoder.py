"""Events of a CAS server in, canonical events out: a turn's messages, calls, sub-agents, faults and its end."""

from collections.abc import Callable
from typing import Any

import gateway.model as m
from gateway.client import NO_USAGE
from gateway.errors import BackendFailed
from gateway.ids import Mint
from gateway.ports import DecodedItem, ParsedFrame, RemoteTurnEnd
from gateway.ports import Decoder as DecoderPort

from .readers import ReceivedEvent, event_type_of, frame_event_id, meanings, read_fault, read_usage, usage_difference
from .thread_decoder import ThreadDecoder, ThreadDecoders
from .tool_decoder import ORIGINS, ToolDecoder

PREVIEW_STEPS: dict[str, Callable[[ThreadDecoder, ReceivedEvent], list[Any]]] = {
    "event_start": ThreadDecoder.announced,
    "event_delta": ThreadDecoder.grown,
    "agent.message_start": ThreadDecoder.raw_started,
    "agent.content_block_start": ThreadDecoder.raw_block,
    "agent.content_block_delta": ThreadDecoder.raw_delta,
    "agent.content_block_stop": ThreadDecoder.raw_block_ended,
    "agent.message_delta": ThreadDecoder.raw_stop,
}
TURN_BEGINNINGS = ("user.message", "session.status_running")
"""After the end of a turn, these begin the next."""
BETWEEN_TURNS = (*TURN_BEGINNINGS, "session.updated", "error")
"""The only events between turns."""
WHILE_WAITING = ("session.status_idle", "session.updated", "session.error", "agent.thread_context_compacted")
"""The events after which a server may still wait."""
AFTER_FAULT = ("session.status_idle", "session.status_terminated", "session.deleted", "session.updated")
"""The events that may follow a fault that has ended the turn."""


class Decoder(DecoderPort):
    """Decodes one session. An event counts once, by its id, in however many streams it comes.

    The text of sub-agents is in their threads, whose events are fed here as well, in their order. Previews of a
    message become events at once, and the event that follows adds what is missing.
    """

    def __init__(self, mint: Mint) -> None:
        self._mint = mint
        self._begin()

    def _begin(self) -> None:
        self._turn = TurnDecoder(self._mint)
        self._had: set[str] = set()

    @property
    def paused(self) -> bool:
        return self._turn.paused

    @property
    def over(self) -> bool:
        """Whether the turn has ended, and the next has not begun."""
        return self._turn.over

    def answered(self) -> None:
        """The answers were sent: the server no longer waits."""
        self._turn.paused = False

    def on_reconnect(self) -> None:
        """The line was cut, and is taken up again after the last event that was whole."""
        for voice in self._turn.threads.voices.values():
            voice.connection_lost()

    def feed(self, frame: ParsedFrame) -> list[DecodedItem]:
        if not isinstance(frame.body, dict):
            raise BackendFailed("the upstream sent an event that is no object")
        kind = event_type_of(frame)
        told, step = ReceivedEvent(kind, frame_event_id(frame), frame.body), EVENT_STEPS.get(kind)
        if kind in PREVIEW_STEPS:
            return self._previewed(told)
        if step is None or told.id in self._had:
            return []
        if self._turn.over:
            if kind not in BETWEEN_TURNS:
                return []
            if kind in TURN_BEGINNINGS:
                self._begin()
        turn = self._turn
        self._had |= {told.id} if told.id else set()
        turn.paused = turn.paused and kind in WHILE_WAITING
        return [*([] if kind in AFTER_FAULT else turn.mentioned()), *step(turn, told)]

    def _previewed(self, told: ReceivedEvent) -> list[DecodedItem]:
        turn, voice = self._turn, self._turn.threads.voice(told)
        if turn.over or voice.over:
            return []
        turn.paused = False
        return [*PREVIEW_STEPS[told.type](voice, told)]

    def end(self) -> list[DecodedItem]:
        return [] if self._turn.over else self._turn.close(m.Outcome.COMPLETED, m.StopReason.END_TURN)


OUTCOMES = {m.StopReason.INTERRUPTED: m.Outcome.INTERRUPTED, m.StopReason.ERROR: m.Outcome.FAILED,
            m.StopReason.TIMEOUT: m.Outcome.FAILED}
UNFINISHED = "The turn ended before this call came back."
EXHAUSTED = "retries_exhausted"


class TurnDecoder:
    """The state of one turn, which ends with the turn."""

    def __init__(self, mint: Mint) -> None:
        self.threads = ThreadDecoders(mint)
        self.paused = False
        """The server waits for answers."""
        self.over = False
        self._mint, self._tools = mint, ToolDecoder(self.threads)
        self._usage = m.Usage()
        self._fault: m.Fault | None = None

    # -- its end --------------------------------------------------------------------------------------------------

    def _goes_on(self, told: ReceivedEvent) -> list[DecodedItem]:
        return []

    def _idle(self, told: ReceivedEvent) -> list[DecodedItem]:
        why = told.object("stop_reason").get("type")
        usage = usage_difference(read_usage(told.object("usage")), self._usage)
        if why == "requires_action":
            asked = self._tools.asks.waiting(told.object("stop_reason").get("event_ids"))
            self.paused = True
            return [*self.mentioned(), *self._finish_all(usage, m.Outcome.COMPLETED), *asked]
        return self._end(self._stop(str(why)), usage)

    def _stop(self, word: str) -> m.StopReason:
        if word == EXHAUSTED or self._fault is not None:
            return m.StopReason.ERROR
        own = self.threads.voices[m.ROOT].stop_reason
        meant = meanings().stops.get(word) or next((one for one in m.StopReason if one == word), m.StopReason.END_TURN)
        silent = meant is m.StopReason.END_TURN and own not in (None, m.StopReason.TOOL_USE)
        return own if silent and own else meant

    def _end(self, stop: m.StopReason, usage: m.Usage = NO_USAGE) -> list[DecodedItem]:
        outcome, fault = OUTCOMES.get(stop, m.Outcome.COMPLETED), self._fault
        if outcome is m.Outcome.FAILED and fault is None:
            fault = m.Fault(code=m.FaultCode.BACKEND, message="The server gave up the turn.")
        said = self.close(outcome, stop, usage)
        return [*said, RemoteTurnEnd(stop_reason=stop, outcome=outcome, fault=fault)]

    def _gone(self, told: ReceivedEvent) -> list[DecodedItem]:
        """The session is no more; whatever ran in it has ended with it."""
        self._fault = m.Fault(code=m.FaultCode.BACKEND, message="The server has closed the session.")
        return self._end(m.StopReason.ERROR)

    def close(self, outcome: m.Outcome, stop: m.StopReason, usage: m.Usage = NO_USAGE) -> list[DecodedItem]:
        said: list[DecodedItem] = [*self._finish_all(usage, outcome), *self._tools.answered()]
        said += [event for voice in self.threads.voices.values() for event in voice.abandoned(UNFINISHED)]
        said += self.threads.close(stop)
        said += self._tools.left_over()
        self.over, self.paused, self._fault = True, False, None
        return said

    def _finish_all(self, usage: m.Usage, outcome: m.Outcome) -> list[Any]:
        """End the messages that no span has ended; usage that belongs to no message goes to the agent's."""
        voices = reversed(self.threads.voices.items())
        return [event for scope_id, voice in voices
                for event in voice.finish(usage if scope_id == m.ROOT else NO_USAGE, outcome)]

    # -- the session ----------------------------------------------------------------------------------------------

    def _updated(self, told: ReceivedEvent) -> list[DecodedItem]:
        title = None if told.body.get("title") is None else told.text("title")
        metadata = None if told.body.get("metadata") is None else dict(told.object("metadata"))
        return [] if title is None and metadata is None else [m.SessionUpdated(title=title, metadata=metadata)]

    def _compacted(self, told: ReceivedEvent) -> list[DecodedItem]:
        if self.threads.scope_of(told.text("session_thread_id")) != m.ROOT:
            return []
        return [m.SessionCompacted(compaction_id=told.id or self._mint("cmp"), summary=told.text("summary"))]

    def _failed(self, told: ReceivedEvent) -> list[DecodedItem]:
        """An error that ends the turn comes with its end; any other comes as soon as it is known to be one."""
        fault, again = read_fault(told)
        if again:
            return [m.FaultRaised(fault=fault)]
        self._fault = fault
        return []

    def mentioned(self) -> list[DecodedItem]:
        """A fault after which the turn went on."""
        if self._fault is None:
            return []
        fault, self._fault = self._fault, None
        return [m.FaultRaised(fault=fault)]

    def _broken(self, told: ReceivedEvent) -> list[DecodedItem]:
        fault, _ = read_fault(told)
        raise BackendFailed(f"the upstream aborted its response: {fault.message[:500]}")

    # -- messages -------------------------------------------------------------------------------------------------

    def _span_started(self, told: ReceivedEvent) -> list[DecodedItem]:
        voice = self._speaking(told)
        return [*voice.span_started(told.text("model"))] if voice else []

    def _span_ended(self, told: ReceivedEvent) -> list[DecodedItem]:
        voice = self._speaking(told)
        if voice is None:
            return []
        usage = read_usage(told.object("model_usage") or told.object("usage"))
        self._usage += usage
        return [*voice.finish(usage, m.Outcome.FAILED if told.body.get("is_error") is True else m.Outcome.COMPLETED)]

    def _message(self, told: ReceivedEvent) -> list[DecodedItem]:
        voice = self._speaking(told)
        return [*voice.message(told)] if voice else []

    def _thinking(self, told: ReceivedEvent) -> list[DecodedItem]:
        voice = self._speaking(told)
        return [*voice.thinking(told)] if voice else []

    def _speaking(self, told: ReceivedEvent) -> ThreadDecoder | None:
        """The thread of an event; None for a sub-agent that has ended."""
        voice = self.threads.voice(told)
        return None if voice.over else voice

    # -- tools ----------------------------------------------------------------------------------------------------

    def _called(self, told: ReceivedEvent) -> list[DecodedItem]:
        voice = self._speaking(told)
        return [*self._tools.called(told, voice)] if voice else []

    def _returned(self, told: ReceivedEvent) -> list[DecodedItem]:
        return [*self._tools.returned(told)]

    def _delivered(self, told: ReceivedEvent) -> list[DecodedItem]:
        return [*self._tools.delivered(told)]

    # -- sub-agents -----------------------------------------------------------------------------------------------

    def _thread_created(self, told: ReceivedEvent) -> list[DecodedItem]:
        return [*self.threads.created(told)]

    def _thread_changed(self, told: ReceivedEvent) -> list[DecodedItem]:
        return [*self.threads.changed(told)]

    def _mail(self, told: ReceivedEvent) -> list[DecodedItem]:
        return [*self.threads.mail(told)]


EVENT_STEPS: dict[str, Callable[[TurnDecoder, ReceivedEvent], list[DecodedItem]]] = {
    "user.message": TurnDecoder._goes_on,
    "user.tool_confirmation": TurnDecoder._goes_on,
    "user.custom_tool_result": TurnDecoder._returned,
    "session.status_running": TurnDecoder._goes_on,
    "session.status_idle": TurnDecoder._idle,
    "session.status_terminated": TurnDecoder._gone,
    "session.deleted": TurnDecoder._gone,
    "session.updated": TurnDecoder._updated,
    "session.error": TurnDecoder._failed,
    "error": TurnDecoder._broken,
    "span.model_request_start": TurnDecoder._span_started,
    "span.model_request_end": TurnDecoder._span_ended,
    "agent.message": TurnDecoder._message,
    "agent.thinking": TurnDecoder._thinking,
    **dict.fromkeys(ORIGINS, TurnDecoder._called),
    "agent.tool_result": TurnDecoder._returned,
    "agent.mcp_tool_result": TurnDecoder._returned,
    "agent.artifact_delivered": TurnDecoder._delivered,
    "agent.thread_context_compacted": TurnDecoder._compacted,
    "session.thread_created": TurnDecoder._thread_created,
    "session.thread_status_running": TurnDecoder._thread_changed,
    "session.thread_status_idle": TurnDecoder._thread_changed,
    "session.thread_status_terminated": TurnDecoder._thread_changed,
    "agent.thread_message_sent": TurnDecoder._mail,
    "agent.thread_message_received": TurnDecoder._mail,
}
