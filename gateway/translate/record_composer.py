"""Makes records from decoded items: turns start, suspend and end as they would in the engine."""

from collections.abc import Callable

from msgspec.structs import replace

import gateway.model as m
from gateway.ids import Mint
from gateway.ports import BackendEvent, DecodedItem, RemoteAsk, RemoteTurnEnd, ScopedEvent

RecordSink = Callable[[m.Record], None]
"""Receives the records of a session, in order."""
UNKNOWN_AGENT = "recorded"
"""The agent of a session of which only a stream is known."""
MAX_HELD = 100
"""At most so many events outside of a turn are held until it is known whether a turn has started."""
OUTSIDE_TURNS = (m.SessionUpdated, m.SessionCompacted, m.NoticePosted, m.CustomEvent)


class RecordComposer:
    """Makes the records of one session from its commands and its decoded items."""

    def __init__(
        self, session_id: str, mint: Mint, sink: RecordSink, created: m.SessionCreated | None = None,
    ) -> None:
        self.session_id, self._sink = session_id, sink
        self._created = created or m.SessionCreated(agent=UNKNOWN_AGENT)
        self._next_turn_id: str | None = None
        self._command_id: str | None = None
        self.grammar = m.Grammar()
        self.asks: dict[str, tuple[str, RemoteAsk]] = {}
        """The open asks by the dialect's reference: the id in the records, and the ask."""
        self._mint = mint
        self._seq, self._at, self._started_at = 0, 0.0, 0.0
        self._turn_id: str | None = None
        self._command: m.SendMessage | m.Compact | None = None
        self._answers: dict[str, m.Answer] = {}
        self._held: list[BackendEvent] = []
        self._usage = m.Usage()

    @property
    def runs(self) -> bool:
        """Whether a turn runs: it has not ended, and does not wait."""
        return self.grammar.turn is m.TurnPhase.RUNNING

    @property
    def is_suspended(self) -> bool:
        return self.grammar.turn is m.TurnPhase.SUSPENDED

    def called(self, session_id: str) -> None:
        """Set the session's own id, unless a record was written before."""
        if not self._seq:
            self.session_id = session_id

    # -- commands -------------------------------------------------------------------------------------------------

    def add_command(self, command: m.AnyCommand, at: float, command_id: str | None = None) -> None:
        """A message waits for the start of its turn, an answer for the turn to resume; the id is that of a message."""
        if isinstance(command, m.SendMessage | m.Compact):
            self._command_id = command_id
            self._command = command if not self.runs else self._command  # the recording has it twice
        elif isinstance(command, m.Interrupt):
            if self.grammar.turn is not m.TurnPhase.IDLE:
                self._record(m.InputAccepted(command_id=self._mint("cmd"), command=command), at)
        elif isinstance(command, m.Answer) and command.request_id in self.asks:
            self._answers[command.request_id] = command

    def name_turn(self, turn_id: str | None) -> None:
        """The id of the turn that starts next; None if it may have any."""
        self._next_turn_id = turn_id

    def refused(self) -> None:
        """The server has rejected the last command."""
        self._command = None

    def answer_to(self, ref: str) -> m.Answer:
        """The recorded answer, or one that lets the turn resume as it did."""
        return self._answers.get(ref) or _default_answer(self.asks[ref][1].ask)

    # -- items ----------------------------------------------------------------------------------------------------

    def add_item(self, item: DecodedItem, at: float) -> None:
        if self.grammar.turn is m.TurnPhase.IDLE and self._command is None and isinstance(item, OUTSIDE_TURNS):
            self._held.append(item)
            if len(self._held) > MAX_HELD:
                self._write_held(at)
            return
        if isinstance(item, RemoteAsk) and self.grammar.turn is m.TurnPhase.SUSPENDED and not self._answers:
            self._record(m.TurnResumed(), at)  # the server has more asks than it had when it began to wait
        given_up = isinstance(item, RemoteTurnEnd) and item.outcome is m.Outcome.INTERRUPTED and not self._answers
        if not given_up or self.grammar.turn is m.TurnPhase.IDLE:
            self.resume(at)
        if isinstance(item, RemoteTurnEnd):
            self._end(item, at)
        elif isinstance(item, RemoteAsk):
            self._ask(item, at)
        else:
            self._add(item, at)

    def resume(self, at: float) -> None:
        """Start or resume a turn, if none runs."""
        if self.grammar.turn is m.TurnPhase.IDLE:
            self._start(at)
        elif self.grammar.turn is m.TurnPhase.SUSPENDED:
            self._resume(at)

    def waits(self, at: float) -> None:
        """The server waits for people; ignored if there are no open asks."""
        if self.runs and self.asks:
            self._record(m.TurnSuspended(pending=tuple(request_id for request_id, _ in self.asks.values())), at)

    def finish(self, at: float) -> None:
        """The recording has ended: end a turn that runs; a turn that waits for people stays suspended."""
        at = self._at if self.runs else at
        self._write_held(at)
        if self.runs:
            self._end(RemoteTurnEnd(stop_reason=m.StopReason.INTERRUPTED, outcome=m.Outcome.INTERRUPTED), at)

    def begin(self, at: float) -> None:
        """Write the first record, once."""
        if not self._seq:
            self._record(self._created, at)

    # -- turns ----------------------------------------------------------------------------------------------------

    def _start(self, at: float) -> None:
        self.begin(at)
        turn_id, self._next_turn_id = self._next_turn_id, None
        self._turn_id, self._started_at, self._usage = turn_id or self._mint("turn"), at, m.Usage()
        command, self._command, command_id = self._command, None, self._command_id or self._mint("cmd")
        self._command_id = None
        if command is not None:
            self._record(m.InputAccepted(command_id=command_id, command=command), at)
        self._record(m.TurnStarted(command_id=command_id), at)
        self._write_held(at)

    def _resume(self, at: float) -> None:
        for ref, (request_id, asked) in list(self.asks.items()):
            self._settle(ref, request_id, asked, at)
        settled = tuple(request_id for request_id, _ in self.asks.values())
        self.asks.clear()
        self._answers.clear()
        self._record(m.TurnResumed(settled=settled), at)

    def _settle(self, ref: str, request_id: str, asked: RemoteAsk, at: float) -> None:
        given = self._answers.get(ref)
        if given is not None:
            command = replace(given, request_id=request_id)
            self._record(m.InputAccepted(command_id=self._mint("cmd"), command=command), at)
        call, scope_id = m.call_of(asked.ask), self._scope(asked.scope_id)
        call_id = call.call_id if call is not None and call.call_id in self.grammar.calls else None
        resolution = m.resolution_of(given or _default_answer(asked.ask))
        self._record(m.InputResolved(request_id=request_id, resolution=resolution, call_id=call_id), at, scope_id)

    def _ask(self, asked: RemoteAsk, at: float) -> None:
        if asked.ref in self.asks:
            return
        call, request_id = m.call_of(asked.ask), self._mint("ask")
        call_id = call.call_id if call is not None and call.call_id in self.grammar.calls else None
        self.asks[asked.ref] = request_id, asked
        self._record(
            m.InputRequested(request_id=request_id, ask=asked.ask, call_id=call_id), at, self._scope(asked.scope_id))

    def _end(self, ended: RemoteTurnEnd, at: float) -> None:
        for scope_id, event in m.missing_ends(self.grammar, ended.outcome, ended.stop_reason):
            self._record(event, at, scope_id)
        if ended.fault is not None:
            self._record(m.FaultRaised(fault=ended.fault), at)
        self._record(m.TurnEnded(
            outcome=ended.outcome, stop_reason=ended.stop_reason, fault=ended.fault, result=ended.result,
            usage=self._usage, duration_ms=round((max(at, self._at) - self._started_at) * 1000),
        ), at)
        self._turn_id = None
        self.asks.clear()
        self._answers.clear()

    def _write_held(self, at: float) -> None:
        held, self._held = self._held, []
        if held:
            self.begin(at)
        for item in held:
            self._add(item, at)

    # -- records --------------------------------------------------------------------------------------------------

    def _add(self, item: BackendEvent, at: float) -> None:
        event, scope_id = (item.event, item.scope_id) if isinstance(item, ScopedEvent) else (item, m.ROOT)
        if isinstance(event, m.MessageEnded):
            self._usage += event.usage
        self._record(event, at, scope_id)

    def _record(self, event: m.AnyEvent, at: float, scope_id: str = m.ROOT) -> None:
        self.grammar.check(event, scope_id)
        self._seq, self._at = self._seq + 1, max(at, self._at)
        self._sink(m.Record(
            seq=self._seq, at=self._at, session_id=self.session_id, event=event, turn_id=self._turn_id,
            scope_id=scope_id,
        ))

    def _scope(self, scope_id: str) -> str:
        return scope_id if scope_id in self.grammar.scopes else m.ROOT


def _default_answer(ask: m.AnyAsk) -> m.Answer:
    """The answer to an ask whose answer was not recorded: one that lets the turn resume."""
    made: dict[str, m.Answer] = {
        "question": m.AnswerQuestion(request_id=""), "permission": m.DecidePermission(request_id="", granted=True),
        "client_tool": m.ReturnResult(request_id=""), "continuation": m.ContinueTurn(request_id=""),
        "rollback": m.RollBack(request_id=""),
    }
    return made[ask.kind]


class RecordCopier:
    """Passes the records of one session on; a turn that was cut is ended as interrupted."""

    def __init__(self, sink: RecordSink) -> None:
        self._sink = sink
        self._grammar = m.Grammar()
        self._last: m.Record | None = None

    @property
    def session_id(self) -> str:
        return self._last.session_id if self._last is not None else ""

    @property
    def runs(self) -> bool:
        return self._grammar.turn is m.TurnPhase.RUNNING

    def take(self, record: m.Record) -> None:
        self._grammar.check(record.event, record.scope_id)
        self._last = record
        self._sink(record)

    def rest(self) -> None:
        """Nothing is held."""

    def end(self, at: float) -> None:
        """End what is open, at the time of the last record."""
        if not self.runs:
            return
        for scope_id, event in m.missing_ends(self._grammar, m.Outcome.INTERRUPTED, m.StopReason.INTERRUPTED):
            self._next(event, scope_id)
        self._next(m.TurnEnded(outcome=m.Outcome.INTERRUPTED, stop_reason=m.StopReason.INTERRUPTED))

    def _next(self, event: m.AnyEvent, scope_id: str = m.ROOT) -> None:
        assert self._last is not None, "something was open"
        self._grammar.check(event, scope_id)
        self._last = replace(self._last, seq=self._last.seq + 1, event=event, scope_id=scope_id)
        self._sink(self._last)
