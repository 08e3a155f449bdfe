"""Events of a CAS server in, canonical events out: a turn's messages, calls, sub-agents, faults and its end.

The table tells the cue of an event and its bindings; what is here is about time.
"""

from collections.abc import Callable
from typing import Any

import gateway.model as m
from gateway.client import NO_USAGE
from gateway.errors import BackendFailed
from gateway.ids import Mint
from gateway.ports import BackendEvent, DecodedItem, ParsedFrame, RemoteAsk, RemoteTurnEnd

from .readers import MALFORMED, ReceivedEvent, read_event, read_fault, read_stop_reason, read_usage, usage_difference
from .thread_decoder import STATUSES, ThreadDecoder, ThreadDecoders
from .tool_decoder import ORIGINS, ToolDecoder

PREVIEW_STEPS: dict[str, Callable[[ThreadDecoder, ReceivedEvent], list[BackendEvent]]] = {
    "preview.started": ThreadDecoder.announced,
    "preview.delta": ThreadDecoder.grown,
    "raw.message_start": ThreadDecoder.raw_started,
    "raw.start.text": ThreadDecoder.raw_block,
    "raw.start.thinking": ThreadDecoder.raw_block,
    "raw.start.tool_use": ThreadDecoder.raw_block,
    "raw.delta.text": ThreadDecoder.raw_delta,
    "raw.delta.thinking": ThreadDecoder.raw_delta,
    "raw.delta.tool_use": ThreadDecoder.raw_input,
    "raw.delta.signature": ThreadDecoder.raw_signature,
    "raw.stop": ThreadDecoder.raw_block_ended,
    "raw.message_delta": ThreadDecoder.raw_stop,
}
TURN_BEGINNINGS = ("input.accepted.send_message", "turn.started")
"""After the end of a turn, these begin the next."""
UPDATES = ("session.updated", "session.closed.archived")
BETWEEN_TURNS = (*TURN_BEGINNINGS, *UPDATES, "stream.aborted")
"""The only events between turns."""
TURN_STOPS = ("turn.suspended", "turn.ended")
WHILE_WAITING = (*TURN_STOPS, *UPDATES, "fault.raised", "fault.retried", "session.compacted")
"""The events after which a server may still wait."""
AFTER_FAULT = (*TURN_STOPS, *UPDATES, "session.closed.terminated", "session.closed.deleted")
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
        return self.take(read_event(frame))

    def take(self, event: ReceivedEvent) -> list[DecodedItem]:
        """What an event says."""
        cue, turn = event.cue, self._turn
        preview = PREVIEW_STEPS.get(cue)
        if preview is not None:
            thread = turn.threads.thread_of(event)
            if turn.over or thread.over:
                return []
            turn.paused = False
            return [*preview(thread, event)]
        step = EVENT_STEPS.get(cue)
        if step is None or event.id in self._had:
            return []
        if turn.over:
            if cue not in BETWEEN_TURNS:
                return []
            if cue in TURN_BEGINNINGS:
                self._begin()
                turn = self._turn
        if event.id:
            self._had.add(event.id)
        turn.paused = turn.paused and cue in WHILE_WAITING
        return [*([] if cue in AFTER_FAULT else turn.mentioned()), *step(turn, event)]

    def end(self) -> list[DecodedItem]:
        return [] if self._turn.over else self._turn.close(m.Outcome.COMPLETED, m.StopReason.END_TURN)


OUTCOMES = {m.StopReason.INTERRUPTED: m.Outcome.INTERRUPTED, m.StopReason.ERROR: m.Outcome.FAILED,
            m.StopReason.TIMEOUT: m.Outcome.FAILED}
UNFINISHED = "The turn ended before this call came back."


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

    def _goes_on(self, event: ReceivedEvent) -> list[DecodedItem]:
        return []

    def _suspended(self, event: ReceivedEvent) -> list[DecodedItem]:
        asked = self._tools.asks.waiting(event.given["blocking"])
        self.paused = True
        return [*self.mentioned(), *self._finish_all(self._uncounted(event), m.Outcome.COMPLETED), *asked]

    def _ended(self, event: ReceivedEvent) -> list[DecodedItem]:
        return self._end(self._stop(read_stop_reason(event.given["stop_reason"])), self._uncounted(event))

    def _uncounted(self, event: ReceivedEvent) -> m.Usage:
        """What the turn has used beyond its messages."""
        return usage_difference(read_usage(event.given["usage"]), self._usage)

    def _stop(self, meant: m.StopReason) -> m.StopReason:
        if self._fault is not None:
            return m.StopReason.ERROR
        own = self.threads.by_scope[m.ROOT].stop_reason
        silent = meant is m.StopReason.END_TURN and own not in (None, m.StopReason.TOOL_USE)
        return own if silent and own else meant

    def _end(self, stop: m.StopReason, usage: m.Usage = NO_USAGE) -> list[DecodedItem]:
        outcome, fault = OUTCOMES.get(stop, m.Outcome.COMPLETED), self._fault
        if outcome is m.Outcome.FAILED and fault is None:
            fault = m.Fault(code=m.FaultCode.BACKEND, message="The server gave up the turn.")
        events = self.close(outcome, stop, usage)
        return [*events, RemoteTurnEnd(stop_reason=stop, outcome=outcome, fault=fault)]

    def _gone(self, event: ReceivedEvent) -> list[DecodedItem]:
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

    def _updated(self, event: ReceivedEvent) -> list[DecodedItem]:
        title, metadata = event.given["title"], event.given["shown"]
        return [] if title is None and metadata is None else [m.SessionUpdated(title=title, metadata=metadata)]

    def _compacted(self, event: ReceivedEvent) -> list[DecodedItem]:
        if self.threads.scope_of(event.thread_id) != m.ROOT:
            return []
        return [m.SessionCompacted(compaction_id=event.id or self._mint("cmp"), summary=event.text("summary"))]

    def _failed(self, event: ReceivedEvent) -> list[DecodedItem]:
        """An error that ends the turn comes with its end; any other comes as soon as it is known to be one."""
        self._fault = read_fault(event)
        return []

    def _retried(self, event: ReceivedEvent) -> list[DecodedItem]:
        return [m.FaultRaised(fault=read_fault(event))]

    def mentioned(self) -> list[DecodedItem]:
        """A fault after which the turn went on."""
        if self._fault is None:
            return []
        fault, self._fault = self._fault, None
        return [m.FaultRaised(fault=fault)]

    def _broken(self, event: ReceivedEvent) -> list[DecodedItem]:
        raise BackendFailed(f"the upstream aborted its response: {read_fault(event).message[:500]}")

    def _malformed(self, event: ReceivedEvent) -> list[DecodedItem]:
        raise BackendFailed(event.text("why"))

    # -- messages -------------------------------------------------------------------------------------------------

    def _span_started(self, event: ReceivedEvent) -> list[DecodedItem]:
        thread = self._open_thread(event)
        return [*thread.span_started(event.text("model"))] if thread else []

    def _span_ended(self, event: ReceivedEvent) -> list[DecodedItem]:
        thread = self._open_thread(event)
        if thread is None:
            return []
        usage = read_usage(event.given["usage"])
        self._usage += usage
        outcome = m.Outcome.FAILED if event.given["is_error"] else m.Outcome.COMPLETED
        return [*thread.finish(usage, outcome)]

    def _message(self, event: ReceivedEvent) -> list[DecodedItem]:
        thread = self._open_thread(event)
        return [*thread.message(event)] if thread else []

    def _thinking(self, event: ReceivedEvent) -> list[DecodedItem]:
        thread = self._open_thread(event)
        return [*thread.thinking(event)] if thread else []

    def _open_thread(self, event: ReceivedEvent) -> ThreadDecoder | None:
        """The thread of an event; None for a sub-agent that has ended."""
        thread = self.threads.thread_of(event)
        return None if thread.over else thread

    # -- tools ----------------------------------------------------------------------------------------------------

    def _called(self, event: ReceivedEvent) -> list[DecodedItem]:
        thread = self._open_thread(event)
        return [*self._tools.called(event, thread)] if thread else []

    def _returned(self, event: ReceivedEvent) -> list[DecodedItem]:
        return [*self._tools.returned(event)]

    def _delivered(self, event: ReceivedEvent) -> list[DecodedItem]:
        return [*self._tools.delivered(event)]

    # -- sub-agents -----------------------------------------------------------------------------------------------

    def _thread_created(self, event: ReceivedEvent) -> list[DecodedItem]:
        return [*self.threads.created(event)]

    def _thread_changed(self, event: ReceivedEvent) -> list[DecodedItem]:
        return [*self.threads.changed(event)]

    def _mail(self, event: ReceivedEvent) -> list[DecodedItem]:
        return [*self.threads.mail(event)]


EVENT_STEPS: dict[str, Callable[[TurnDecoder, ReceivedEvent], list[DecodedItem]]] = {
    "input.accepted.send_message": TurnDecoder._goes_on,
    "input.accepted.decide_permission": TurnDecoder._goes_on,
    "input.accepted.return_result": TurnDecoder._returned,
    "turn.started": TurnDecoder._goes_on,
    "turn.suspended": TurnDecoder._suspended,
    "turn.ended": TurnDecoder._ended,
    "session.closed.terminated": TurnDecoder._gone,
    "session.closed.deleted": TurnDecoder._gone,
    **dict.fromkeys(UPDATES, TurnDecoder._updated),
    "session.compacted": TurnDecoder._compacted,
    "fault.raised": TurnDecoder._failed,
    "fault.retried": TurnDecoder._retried,
    "stream.aborted": TurnDecoder._broken,
    MALFORMED: TurnDecoder._malformed,
    "message.started": TurnDecoder._span_started,
    "message.ended": TurnDecoder._span_ended,
    "said.text": TurnDecoder._message,
    "said.thinking": TurnDecoder._thinking,
    **dict.fromkeys(ORIGINS, TurnDecoder._called),
    "tool.returned": TurnDecoder._returned,
    "tool.returned.mcp": TurnDecoder._returned,
    "artifact.delivered": TurnDecoder._delivered,
    "scope.opened": TurnDecoder._thread_created,
    **dict.fromkeys(STATUSES, TurnDecoder._thread_changed),
    "mail.sent": TurnDecoder._mail,
    "mail.received": TurnDecoder._mail,
}
