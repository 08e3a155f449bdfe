"""Events of a CAS server in, canonical events out: a turn's messages, calls, sub-agents, faults and its end.

The table gives the cue of an event and its bindings; this module knows the order of events.
"""

from functools import cache
from typing import Any

import gateway.model as m
from gateway.client import NO_USAGE, cue_handlers, decodes, read_names, read_usage
from gateway.errors import BackendFailed
from gateway.ids import Mint
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import BackendEvent, DecodedItem, ParsedFrame, RemoteTurnEnd
from gateway.ports import Decoder as DecoderPort
from mappings.language import FrameDecoder, UnreadableBody

from .readers import CAS, ReceivedEvent, read_fault
from .thread_decoder import ThreadDecoder, ThreadDecoders
from .tool_decoder import ToolDecoder

TURN_BEGINNINGS = ("input.accepted.send_message", "turn.started")
"""After the end of a turn, these begin the next."""
UPDATES = ("session.updated", "session.closed.archived")
BETWEEN_TURNS = (*TURN_BEGINNINGS, *UPDATES, "stream.aborted")
"""The only events between turns."""
TURN_STOPS = ("turn.suspended", "turn.ended")
WHILE_WAITING = (*TURN_STOPS, *UPDATES, "fault.raised", "fault.retried", "session.compacted")
"""The events after which a server may still wait."""
SESSION_ENDS = ("session.closed.terminated", "session.closed.deleted")
AFTER_FAULT = (*TURN_STOPS, *UPDATES, *SESSION_ENDS)
"""The events that may follow a fault that has ended the turn."""
MALFORMED = "malformed"
"""The cue of an event that the table has in another shape: `why` says what is wrong with it."""


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
        """The connection broke, and the stream resumes after the last complete event."""
        for thread in self._turn.threads.by_scope.values():
            thread.connection_lost()

    def feed(self, frame: ParsedFrame) -> list[DecodedItem]:
        if not isinstance(frame.body, dict):
            raise BackendFailed("the upstream sent an event that is not an object")
        return self.take(read_event(frame))

    def take(self, event: ReceivedEvent) -> list[DecodedItem]:
        """The decoded items of an event."""
        cue, turn = event.cue, self._turn
        if event.is_preview:
            return turn.preview(event)
        if cue not in HANDLERS or event.id in self._had:
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
        return [*([] if cue in AFTER_FAULT else turn.mentioned()), *turn.decode(event)]

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

    def decode(self, event: ReceivedEvent) -> list[DecodedItem]:
        """The decoded items of an event; events of a sub-agent that has ended are ignored."""
        cue = event.cue
        if cue in OF_THREAD:
            thread = self.threads.thread_of(event)
            return [] if thread.over else OF_THREAD[cue](thread, event, event.given)
        part: Any = self if cue in OF_TURN else self._tools if cue in OF_TOOLS else self.threads
        events: list[DecodedItem] = HANDLERS[cue](part, event, event.given)
        return events

    def preview(self, event: ReceivedEvent) -> list[DecodedItem]:
        """The decoded items of a preview."""
        thread = self.threads.thread_of(event)
        if self.over or thread.over or event.cue not in OF_THREAD:
            return []
        self.paused = False
        events: list[DecodedItem] = OF_THREAD[event.cue](thread, event, event.given)
        return events

    # -- its end --------------------------------------------------------------------------------------------------

    @decodes(*TURN_BEGINNINGS, "input.accepted.decide_permission")
    def _goes_on(self, event: ReceivedEvent, /) -> list[DecodedItem]:
        return []

    @decodes("turn.suspended")
    def _suspended(self, event: ReceivedEvent, /, blocking: list[object] | None, usage: Any) -> list[DecodedItem]:
        asked = self._tools.asks.waiting(blocking)
        self.paused = True
        used = read_usage(usage).beyond(self._usage)
        return [*self.mentioned(), *self._finish_all(used, m.Outcome.COMPLETED), *asked]

    @decodes("turn.ended")
    def _ended(self, event: ReceivedEvent, /, stop_reason: m.StopReason | None, usage: Any) -> list[DecodedItem]:
        return self._end(self._stop(stop_reason or m.StopReason.END_TURN), read_usage(usage).beyond(self._usage))

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

    @decodes(*SESSION_ENDS)
    def _gone(self, event: ReceivedEvent, /) -> list[DecodedItem]:
        """The session was deleted, and its running turn ended with it."""
        self._fault = m.Fault(code=m.FaultCode.BACKEND, message="The server has closed the session.")
        return self._end(m.StopReason.ERROR)

    def close(self, outcome: m.Outcome, stop: m.StopReason, usage: m.Usage = NO_USAGE) -> list[DecodedItem]:
        events: list[DecodedItem] = [*self._finish_all(usage, outcome), *self._tools.answered()]
        events += [event for thread in self.threads.by_scope.values() for event in thread.abandoned(UNFINISHED)]
        events += self.threads.close(stop)
        events += self._tools.left_over()
        self.over, self.paused, self._fault = True, False, None
        return events

    def _finish_all(self, usage: m.Usage, outcome: m.Outcome) -> list[BackendEvent]:
        """End the messages that no span has ended; usage that belongs to no message goes to the agent's."""
        threads = reversed(self.threads.by_scope.items())
        return [event for scope_id, thread in threads
                for event in thread.finish(usage if scope_id == m.ROOT else NO_USAGE, outcome)]

    @decodes("message.ended")
    def _span_ended(self, event: ReceivedEvent, /, is_error: bool | None, usage: Any) -> list[DecodedItem]:
        thread, spent = self.threads.thread_of(event), read_usage(usage)
        if thread.over:
            return []
        self._usage += spent
        return [*thread.finish(spent, m.Outcome.FAILED if is_error else m.Outcome.COMPLETED)]

    # -- the session ----------------------------------------------------------------------------------------------

    @decodes(*UPDATES)
    def _updated(
        self, event: ReceivedEvent, /, title: str | None, shown: JsonObject | None,
    ) -> list[DecodedItem]:
        return [] if title is None and shown is None else [m.SessionUpdated(title=title, metadata=shown)]

    @decodes("session.compacted")
    def _compacted(self, event: ReceivedEvent, /, summary: str | None) -> list[DecodedItem]:
        if self.threads.scope_of(event.thread_id) != m.ROOT:
            return []
        return [m.SessionCompacted(compaction_id=event.id or self._mint("cmp"), summary=summary or "")]

    @decodes("fault.raised")
    def _failed(self, event: ReceivedEvent, /, fault: Any) -> list[DecodedItem]:
        """An error that ends the turn comes with its end; any other comes as soon as it is known to be one."""
        self._fault = read_fault(fault)
        return []

    @decodes("fault.retried")
    def _retried(self, event: ReceivedEvent, /, fault: Any) -> list[DecodedItem]:
        return [m.FaultRaised(fault=read_fault(fault, is_retried=True))]

    def mentioned(self) -> list[DecodedItem]:
        """A fault after which the turn went on."""
        if self._fault is None:
            return []
        fault, self._fault = self._fault, None
        return [m.FaultRaised(fault=fault)]

    @decodes("stream.aborted")
    def _broken(self, event: ReceivedEvent, /, fault: Any) -> list[DecodedItem]:
        raise BackendFailed(f"the upstream aborted its response: {read_fault(fault).message[:500]}")

    @decodes(MALFORMED)
    def _malformed(self, event: ReceivedEvent, /, why: str) -> list[DecodedItem]:
        raise BackendFailed(why)


OF_TURN, OF_THREAD, OF_TOOLS = (cue_handlers(kind) for kind in (TurnDecoder, ThreadDecoder, ToolDecoder))
HANDLERS = {**OF_TURN, **OF_THREAD, **OF_TOOLS, **cue_handlers(ThreadDecoders)}


# -- reading ----------------------------------------------------------------------------------------------------------

@cache
def frame_decoder() -> FrameDecoder:
    return CAS.frames(read_names(HANDLERS), ReceivedEvent.ENVELOPE)


def read_event(frame: ParsedFrame) -> ReceivedEvent:
    """The event of a frame; its own id, or else that of its frame."""
    try:
        read = frame_decoder().read(frame.name, frame.body)
    except UnreadableBody as error:
        found = frame_decoder().find(frame.name, frame.body)
        why = f"the upstream sent '{found.wire if found else frame.name}' in a shape that cannot be: {error}"
        read = MALFORMED, {"why": why}
    return ReceivedEvent(*(read or ("", {})), frame.id)


def listed_event(body: JsonValue) -> ReceivedEvent:
    """An event of a list."""
    return read_event(ParsedFrame("", body))
