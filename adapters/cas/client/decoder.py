"""Events of a CAS server in, canonical events out: a turn's messages, calls, sub-agents, faults and its end."""

from collections.abc import Callable
from typing import Any

import gateway.model as m
from gateway.client import NO_USAGE
from gateway.errors import BackendFailed
from gateway.ids import Mint
from gateway.ports import DecodedItem, ParsedFrame, RemoteAsk, RemoteTurnEnd

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


class Decoder:
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

    def on_answer(self, asked: RemoteAsk, answer: m.Answer) -> None:
        """The events of the server show what becomes of an answer."""

    def configure(self, settings: m.Settings) -> None:
        """The events of the server contain what is needed of the settings."""

    def on_reconnect(self) -> None:
        """The line was cut, and is taken up again after the last event that was whole."""
        for thread in self._turn.threads.by_scope.values():
            thread.connection_lost()

    def feed(self, frame: ParsedFrame) -> list[DecodedItem]:
        if not isinstance(frame.body, dict):
            raise BackendFailed("the upstream sent an event that is no object")
        kind = event_type_of(frame)
        received, step = ReceivedEvent(kind, frame_event_id(frame), frame.body), EVENT_STEPS.get(kind)
        if kind in PREVIEW_STEPS:
            return self._previewed(received)
        if step is None or received.id in self._had:
            return []
        if self._turn.over:
            if kind not in BETWEEN_TURNS:
                return []
            if kind in TURN_BEGINNINGS:
                self._begin()
        turn = self._turn
        self._had |= {received.id} if received.id else set()
        turn.paused = turn.paused and kind in WHILE_WAITING
        return [*([] if kind in AFTER_FAULT else turn.mentioned()), *step(turn, received)]

    def _previewed(self, received: ReceivedEvent) -> list[DecodedItem]:
        turn, thread = self._turn, self._turn.threads.thread_of(received)
        if turn.over or thread.over:
            return []
        turn.paused = False
        return [*PREVIEW_STEPS[received.type](thread, received)]

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

    def _goes_on(self, received: ReceivedEvent) -> list[DecodedItem]:
        return []

    def _idle(self, received: ReceivedEvent) -> list[DecodedItem]:
        why = received.object("stop_reason").get("type")
        usage = usage_difference(read_usage(received.object("usage")), self._usage)
        if why == "requires_action":
            asked = self._tools.asks.waiting(received.object("stop_reason").get("event_ids"))
            self.paused = True
            return [*self.mentioned(), *self._finish_all(usage, m.Outcome.COMPLETED), *asked]
        return self._end(self._stop(str(why)), usage)

    def _stop(self, word: str) -> m.StopReason:
        if word == EXHAUSTED or self._fault is not None:
            return m.StopReason.ERROR
        own = self.threads.by_scope[m.ROOT].stop_reason
        meant = meanings().stops.get(word) or next((one for one in m.StopReason if one == word), m.StopReason.END_TURN)
        silent = meant is m.StopReason.END_TURN and own not in (None, m.StopReason.TOOL_USE)
        return own if silent and own else meant

    def _end(self, stop: m.StopReason, usage: m.Usage = NO_USAGE) -> list[DecodedItem]:
        outcome, fault = OUTCOMES.get(stop, m.Outcome.COMPLETED), self._fault
        if outcome is m.Outcome.FAILED and fault is None:
            fault = m.Fault(code=m.FaultCode.BACKEND, message="The server gave up the turn.")
        events = self.close(outcome, stop, usage)
        return [*events, RemoteTurnEnd(stop_reason=stop, outcome=outcome, fault=fault)]

    def _gone(self, received: ReceivedEvent) -> list[DecodedItem]:
        """The session is no more; whatever ran in it has ended with it."""
        self._fault = m.Fault(code=m.FaultCode.BACKEND, message="The server has closed the session.")
        return self._end(m.StopReason.ERROR)

    def close(self, outcome: m.Outcome, stop: m.StopReason, usage: m.Usage = NO_USAGE) -> list[DecodedItem]:
        events: list[DecodedItem] = [*self._finish_all(usage, outcome), *self._tools.answered()]
        events += [event for thread in self.threads.by_scope.values() for event in thread.abandoned(UNFINISHED)]
        events += self.threads.close(stop)
        events += self._tools.left_over()
        self.over, self.paused, self._fault = True, False, None
        return events

    def _finish_all(self, usage: m.Usage, outcome: m.Outcome) -> list[Any]:
        """End the messages that no span has ended; usage that belongs to no message goes to the agent's."""
        threads = reversed(self.threads.by_scope.items())
        return [event for scope_id, thread in threads
                for event in thread.finish(usage if scope_id == m.ROOT else NO_USAGE, outcome)]

    # -- the session ----------------------------------------------------------------------------------------------

    def _updated(self, received: ReceivedEvent) -> list[DecodedItem]:
        title = None if received.body.get("title") is None else received.text("title")
        metadata = None if received.body.get("metadata") is None else dict(received.object("metadata"))
        return [] if title is None and metadata is None else [m.SessionUpdated(title=title, metadata=metadata)]

    def _compacted(self, received: ReceivedEvent) -> list[DecodedItem]:
        if self.threads.scope_of(received.text("session_thread_id")) != m.ROOT:
            return []
        return [m.SessionCompacted(compaction_id=received.id or self._mint("cmp"), summary=received.text("summary"))]

    def _failed(self, received: ReceivedEvent) -> list[DecodedItem]:
        """An error that ends the turn comes with its end; any other comes as soon as it is known to be one."""
        fault, again = read_fault(received)
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

    def _broken(self, received: ReceivedEvent) -> list[DecodedItem]:
        fault, _ = read_fault(received)
        raise BackendFailed(f"the upstream aborted its response: {fault.message[:500]}")

    # -- messages -------------------------------------------------------------------------------------------------

    def _span_started(self, received: ReceivedEvent) -> list[DecodedItem]:
        thread = self._open_thread(received)
        return [*thread.span_started(received.text("model"))] if thread else []

    def _span_ended(self, received: ReceivedEvent) -> list[DecodedItem]:
        thread = self._open_thread(received)
        if thread is None:
            return []
        usage = read_usage(received.object("model_usage") or received.object("usage"))
        self._usage += usage
        outcome = m.Outcome.FAILED if received.body.get("is_error") is True else m.Outcome.COMPLETED
        return [*thread.finish(usage, outcome)]

    def _message(self, received: ReceivedEvent) -> list[DecodedItem]:
        thread = self._open_thread(received)
        return [*thread.message(received)] if thread else []

    def _thinking(self, received: ReceivedEvent) -> list[DecodedItem]:
        thread = self._open_thread(received)
        return [*thread.thinking(received)] if thread else []

    def _open_thread(self, received: ReceivedEvent) -> ThreadDecoder | None:
        """The thread of an event; None for a sub-agent that has ended."""
        thread = self.threads.thread_of(received)
        return None if thread.over else thread

    # -- tools ----------------------------------------------------------------------------------------------------

    def _called(self, received: ReceivedEvent) -> list[DecodedItem]:
        thread = self._open_thread(received)
        return [*self._tools.called(received, thread)] if thread else []

    def _returned(self, received: ReceivedEvent) -> list[DecodedItem]:
        return [*self._tools.returned(received)]

    def _delivered(self, received: ReceivedEvent) -> list[DecodedItem]:
        return [*self._tools.delivered(received)]

    # -- sub-agents -----------------------------------------------------------------------------------------------

    def _thread_created(self, received: ReceivedEvent) -> list[DecodedItem]:
        return [*self.threads.created(received)]

    def _thread_changed(self, received: ReceivedEvent) -> list[DecodedItem]:
        return [*self.threads.changed(received)]

    def _mail(self, received: ReceivedEvent) -> list[DecodedItem]:
        return [*self.threads.mail(received)]


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
