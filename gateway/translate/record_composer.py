"""From what was heard to records: turns begun, suspended and ended as the engine would have done it.

Records that were records before: checked, passed on, and ended where they were cut off.
"""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

import gateway.model as m
from gateway.ids import Mint
from gateway.ports import BackendEvent, DecodedItem, RemoteAsk, RemoteTurnEnd, ScopedEvent

UNKNOWN_AGENT = "recorded"
"""What the agent of a session is called of which only a stream is known."""
MAX_HELD = 100
"""So much that may belong to no turn is held back until it is known whether one has begun."""
OUTSIDE_TURNS = (m.SessionUpdated, m.SessionCompacted, m.NoticePosted, m.CustomEvent)


class RecordComposer:
    """One session's records, from one session's heard words. Every method gives the records to write now."""

    def __init__(self, session_id: str, mint: Mint) -> None:
        self.session_id = session_id
        self.grammar = m.Grammar()
        self.asks: dict[str, tuple[str, RemoteAsk]] = {}
        """What is asked and not settled: by the dialect's own word for it, its id in the records and the ask."""
        self._mint = mint
        self._seq, self._at, self._started_at = 0, 0.0, 0.0
        self._turn_id: str | None = None
        self._command: m.SendMessage | m.Compact | None = None
        self._answers: dict[str, m.Answer] = {}
        self._held: list[BackendEvent] = []
        self._usage = m.Usage()

    @property
    def runs(self) -> bool:
        """Whether a turn is being told: it neither has ended nor waits."""
        return self.grammar.turn is m.TurnPhase.RUNNING

    @property
    def is_suspended(self) -> bool:
        return self.grammar.turn is m.TurnPhase.SUSPENDED

    def called(self, session_id: str) -> None:
        """The session's own name; records that were written keep the name they have."""
        if not self._seq:
            self.session_id = session_id

    # -- what people said -----------------------------------------------------------------------------------------

    def add_command(self, command: m.AnyCommand, at: float) -> Iterator[m.Record]:
        """A message waits for its turn to be heard, an answer for the turn to go on."""
        if isinstance(command, m.SendMessage | m.Compact):
            self._command = command if not self.runs else self._command  # it was told twice, and its turn has begun
        elif isinstance(command, m.Interrupt):
            if self.grammar.turn is not m.TurnPhase.IDLE:
                yield self._record(m.InputAccepted(command_id=self._mint("cmd"), command=command), at)
        elif isinstance(command, m.Answer) and command.request_id in self.asks:
            self._answers[command.request_id] = command

    def refused(self) -> None:
        """What was said last was not taken."""
        self._command = None

    def answer_to(self, ref: str) -> m.Answer:
        """What was answered, or would let the turn go on as it did."""
        return self._answers.get(ref) or _default_answer(self.asks[ref][1].ask)

    # -- what the server said -------------------------------------------------------------------------------------

    def add_item(self, heard: DecodedItem, at: float) -> Iterator[m.Record]:
        if self.grammar.turn is m.TurnPhase.IDLE and self._command is None and isinstance(heard, OUTSIDE_TURNS):
            self._held.append(heard)
            if len(self._held) > MAX_HELD:
                yield from self._tell_held(at)
            return
        if isinstance(heard, RemoteAsk) and self.grammar.turn is m.TurnPhase.SUSPENDED and not self._answers:
            yield self._record(m.TurnResumed(), at)  # it asks more than it had asked when it began to wait
        given_up = isinstance(heard, RemoteTurnEnd) and heard.outcome is m.Outcome.INTERRUPTED and not self._answers
        if not given_up or self.grammar.turn is m.TurnPhase.IDLE:
            yield from self.resume(at)
        if isinstance(heard, RemoteTurnEnd):
            yield from self._end(heard, at)
        elif isinstance(heard, RemoteAsk):
            yield from self._ask(heard, at)
        else:
            yield self._say(heard, at)

    def resume(self, at: float) -> Iterator[m.Record]:
        """A turn is at work from now on, if none was."""
        if self.grammar.turn is m.TurnPhase.IDLE:
            yield from self._start(at)
        elif self.grammar.turn is m.TurnPhase.SUSPENDED:
            yield from self._resume(at)

    def waits(self, at: float) -> Iterator[m.Record]:
        """The server waits for people; nothing happens where it has asked nothing."""
        if self.runs and self.asks:
            yield self._record(m.TurnSuspended(pending=tuple(request_id for request_id, _ in self.asks.values())), at)

    def finish(self, at: float) -> Iterator[m.Record]:
        """Nothing follows: a turn in the middle is ended; one that waits for people waits on."""
        at = self._at if self.runs else at
        yield from self._tell_held(at)
        if self.runs:
            yield from self._end(RemoteTurnEnd(stop_reason=m.StopReason.INTERRUPTED, outcome=m.Outcome.INTERRUPTED), at)

    def begin(self, at: float) -> Iterator[m.Record]:
        """The first record there is."""
        if not self._seq:
            yield self._record(m.SessionCreated(agent=UNKNOWN_AGENT), at)

    # -- turns ----------------------------------------------------------------------------------------------------

    def _start(self, at: float) -> Iterator[m.Record]:
        yield from self.begin(at)
        self._turn_id, self._started_at, self._usage = self._mint("turn"), at, m.Usage()
        command, self._command, command_id = self._command, None, self._mint("cmd")
        if command is not None:
            yield self._record(m.InputAccepted(command_id=command_id, command=command), at)
        yield self._record(m.TurnStarted(command_id=command_id), at)
        yield from self._tell_held(at)

    def _resume(self, at: float) -> Iterator[m.Record]:
        for ref, (request_id, asked) in list(self.asks.items()):
            yield from self._settle(ref, request_id, asked, at)
        settled = tuple(request_id for request_id, _ in self.asks.values())
        self.asks.clear()
        self._answers.clear()
        yield self._record(m.TurnResumed(settled=settled), at)

    def _settle(self, ref: str, request_id: str, asked: RemoteAsk, at: float) -> Iterator[m.Record]:
        given = self._answers.get(ref)
        if given is not None:
            command = replace(given, request_id=request_id)
            yield self._record(m.InputAccepted(command_id=self._mint("cmd"), command=command), at)
        call, scope_id = m.call_of(asked.ask), self._scope(asked.scope_id)
        call_id = call.call_id if call is not None and call.call_id in self.grammar.calls else None
        resolution = m.resolution_of(given or _default_answer(asked.ask))
        yield self._record(m.InputResolved(request_id=request_id, resolution=resolution, call_id=call_id), at, scope_id)

    def _ask(self, asked: RemoteAsk, at: float) -> Iterator[m.Record]:
        if asked.ref in self.asks:
            return
        call, request_id = m.call_of(asked.ask), self._mint("ask")
        call_id = call.call_id if call is not None and call.call_id in self.grammar.calls else None
        self.asks[asked.ref] = request_id, asked
        yield self._record(
            m.InputRequested(request_id=request_id, ask=asked.ask, call_id=call_id), at, self._scope(asked.scope_id))

    def _end(self, ended: RemoteTurnEnd, at: float) -> Iterator[m.Record]:
        for scope_id, event in m.missing_ends(self.grammar, ended.outcome, ended.stop_reason):
            yield self._record(event, at, scope_id)
        if ended.fault is not None:
            yield self._record(m.FaultRaised(fault=ended.fault), at)
        yield self._record(m.TurnEnded(
            outcome=ended.outcome, stop_reason=ended.stop_reason, fault=ended.fault, result=ended.result,
            usage=self._usage, duration_ms=round((max(at, self._at) - self._started_at) * 1000),
        ), at)
        self._turn_id = None
        self.asks.clear()
        self._answers.clear()

    def _tell_held(self, at: float) -> Iterator[m.Record]:
        held, self._held = self._held, []
        if held:
            yield from self.begin(at)
        for said in held:
            yield self._say(said, at)

    # -- records --------------------------------------------------------------------------------------------------

    def _say(self, said: BackendEvent, at: float) -> m.Record:
        event, scope_id = (said.event, said.scope_id) if isinstance(said, ScopedEvent) else (said, m.ROOT)
        if isinstance(event, m.MessageEnded):
            self._usage += event.usage
        return self._record(event, at, scope_id)

    def _record(self, event: Any, at: float, scope_id: str = m.ROOT) -> m.Record:
        self.grammar.check(event, scope_id)
        self._seq, self._at = self._seq + 1, max(at, self._at)
        said: m.AnyEvent = event
        return m.Record(
            seq=self._seq, at=self._at, session_id=self.session_id, event=said, turn_id=self._turn_id,
            scope_id=scope_id,
        )

    def _scope(self, scope_id: str) -> str:
        return scope_id if scope_id in self.grammar.scopes else m.ROOT


def _default_answer(ask: m.AnyAsk) -> m.Answer:
    """An answer that nobody heard: people let the turn go on."""
    made: dict[str, m.Answer] = {
        "question": m.AnswerQuestion(request_id=""), "permission": m.DecidePermission(request_id="", granted=True),
        "client_tool": m.ReturnResult(request_id=""), "continuation": m.ContinueTurn(request_id=""),
        "rollback": m.RollBack(request_id=""),
    }
    return made[ask.kind]


class RecordCopier:
    """One session; a turn that was in the middle is closed as an interrupted one."""

    def __init__(self) -> None:
        self._grammar = m.Grammar()
        self._last: m.Record | None = None

    @property
    def session_id(self) -> str:
        return self._last.session_id if self._last is not None else ""

    @property
    def runs(self) -> bool:
        return self._grammar.turn is m.TurnPhase.RUNNING

    def take(self, record: m.Record) -> Iterator[m.Record]:
        self._grammar.check(record.event, record.scope_id)
        self._last = record
        yield record

    def rest(self) -> Iterator[m.Record]:
        """Nothing is held back."""
        yield from ()

    def end(self, at: float) -> Iterator[m.Record]:
        """The ends of what is open, at the time of the last record."""
        if not self.runs:
            return
        for scope_id, event in m.missing_ends(self._grammar, m.Outcome.INTERRUPTED, m.StopReason.INTERRUPTED):
            yield self._next(event, scope_id)
        yield self._next(m.TurnEnded(outcome=m.Outcome.INTERRUPTED, stop_reason=m.StopReason.INTERRUPTED))

    def _next(self, event: Any, scope_id: str = m.ROOT) -> m.Record:
        assert self._last is not None, "something was open"
        self._grammar.check(event, scope_id)
        self._last = replace(self._last, seq=self._last.seq + 1, event=event, scope_id=scope_id)
        return self._last
