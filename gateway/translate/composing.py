"""From what was heard to records: turns begun, suspended and ended as the engine would have done it."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from gateway.engine import missing_ends, resolution_of
from gateway.ids import Mint
from gateway.model import (
    ROOT,
    Answer,
    AnswerQuestion,
    AnyAsk,
    AnyCommand,
    AnyEvent,
    Compact,
    ContinueTurn,
    CustomEvent,
    DecidePermission,
    FaultRaised,
    Grammar,
    InputAccepted,
    InputRequested,
    InputResolved,
    Interrupt,
    MessageEnded,
    NoticePosted,
    Outcome,
    Record,
    ReturnResult,
    RollBack,
    SendMessage,
    SessionCompacted,
    SessionCreated,
    SessionUpdated,
    StopReason,
    Turn,
    TurnEnded,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
    Usage,
    call_of,
)
from gateway.ports import Said, Scoped
from gateway.upstream import Asked, Ended, Heard

AGENT = "recorded"
"""What the agent of a session is called of which only a stream is known."""
HELD = 100
"""So much that may belong to no turn is held back until it is known whether one has begun."""
BESIDE_TURNS = (SessionUpdated, SessionCompacted, NoticePosted, CustomEvent)


class Composer:
    """One session's records, from one session's heard words. Every method gives the records to write now."""

    def __init__(self, session_id: str, mint: Mint) -> None:
        self.session_id = session_id
        self.grammar = Grammar()
        self.asks: dict[str, tuple[str, Asked]] = {}
        """What is asked and not settled: by the dialect's own word for it, its id in the records and the ask."""
        self._mint = mint
        self._seq, self._at, self._started_at = 0, 0.0, 0.0
        self._turn_id: str | None = None
        self._command: SendMessage | Compact | None = None
        self._answers: dict[str, Answer] = {}
        self._held: list[Said] = []
        self._usage = Usage()

    @property
    def runs(self) -> bool:
        """Whether a turn is being told: it neither has ended nor waits."""
        return self.grammar.turn is Turn.RUNNING

    @property
    def is_suspended(self) -> bool:
        return self.grammar.turn is Turn.SUSPENDED

    def called(self, session_id: str) -> None:
        """The session's own name; records that were written keep the name they have."""
        if not self._seq:
            self.session_id = session_id

    # -- what people said -----------------------------------------------------------------------------------------

    def sent(self, command: AnyCommand, at: float) -> Iterator[Record]:
        """A message waits for its turn to be heard, an answer for the turn to go on."""
        if isinstance(command, SendMessage | Compact):
            self._command = command if not self.runs else self._command  # it was told twice, and its turn has begun
        elif isinstance(command, Interrupt):
            if self.grammar.turn is not Turn.IDLE:
                yield self._record(InputAccepted(command_id=self._mint("cmd"), command=command), at)
        elif isinstance(command, Answer) and command.request_id in self.asks:
            self._answers[command.request_id] = command

    def refused(self) -> None:
        """What was said last was not taken."""
        self._command = None

    def answer_to(self, ref: str) -> Answer:
        """What was answered, or would let the turn go on as it did."""
        return self._answers.get(ref) or _supposed(self.asks[ref][1].ask)

    # -- what the server said -------------------------------------------------------------------------------------

    def heard(self, heard: Heard, at: float) -> Iterator[Record]:
        if self.grammar.turn is Turn.IDLE and self._command is None and isinstance(heard, BESIDE_TURNS):
            self._held.append(heard)
            if len(self._held) > HELD:
                yield from self._tell_held(at)
            return
        if isinstance(heard, Asked) and self.grammar.turn is Turn.SUSPENDED and not self._answers:
            yield self._record(TurnResumed(), at)  # it asks more than it had asked when it began to wait
        given_up = isinstance(heard, Ended) and heard.outcome is Outcome.INTERRUPTED and not self._answers
        if not given_up or self.grammar.turn is Turn.IDLE:
            yield from self.goes_on(at)
        if isinstance(heard, Ended):
            yield from self._end(heard, at)
        elif isinstance(heard, Asked):
            yield from self._ask(heard, at)
        else:
            yield self._say(heard, at)

    def goes_on(self, at: float) -> Iterator[Record]:
        """A turn is at work from now on, if none was."""
        if self.grammar.turn is Turn.IDLE:
            yield from self._start(at)
        elif self.grammar.turn is Turn.SUSPENDED:
            yield from self._resume(at)

    def waits(self, at: float) -> Iterator[Record]:
        """The server waits for people; nothing happens where it has asked nothing."""
        if self.runs and self.asks:
            yield self._record(TurnSuspended(pending=tuple(request_id for request_id, _ in self.asks.values())), at)

    def finish(self, at: float) -> Iterator[Record]:
        """Nothing follows: a turn in the middle is ended; one that waits for people waits on."""
        at = self._at if self.runs else at
        yield from self._tell_held(at)
        if self.runs:
            yield from self._end(Ended(stop_reason=StopReason.INTERRUPTED, outcome=Outcome.INTERRUPTED), at)

    def begin(self, at: float) -> Iterator[Record]:
        """The first record there is."""
        if not self._seq:
            yield self._record(SessionCreated(agent=AGENT), at)

    # -- turns ----------------------------------------------------------------------------------------------------

    def _start(self, at: float) -> Iterator[Record]:
        yield from self.begin(at)
        self._turn_id, self._started_at, self._usage = self._mint("turn"), at, Usage()
        command, self._command, command_id = self._command, None, self._mint("cmd")
        if command is not None:
            yield self._record(InputAccepted(command_id=command_id, command=command), at)
        yield self._record(TurnStarted(command_id=command_id), at)
        yield from self._tell_held(at)

    def _resume(self, at: float) -> Iterator[Record]:
        for ref, (request_id, asked) in list(self.asks.items()):
            yield from self._settle(ref, request_id, asked, at)
        settled = tuple(request_id for request_id, _ in self.asks.values())
        self.asks.clear()
        self._answers.clear()
        yield self._record(TurnResumed(settled=settled), at)

    def _settle(self, ref: str, request_id: str, asked: Asked, at: float) -> Iterator[Record]:
        given = self._answers.get(ref)
        if given is not None:
            command = replace(given, request_id=request_id)
            yield self._record(InputAccepted(command_id=self._mint("cmd"), command=command), at)
        call, scope_id = call_of(asked.ask), self._scope(asked.scope_id)
        call_id = call.call_id if call is not None and call.call_id in self.grammar.calls else None
        resolution = resolution_of(given or _supposed(asked.ask))
        yield self._record(InputResolved(request_id=request_id, resolution=resolution, call_id=call_id), at, scope_id)

    def _ask(self, asked: Asked, at: float) -> Iterator[Record]:
        if asked.ref in self.asks:
            return
        call, request_id = call_of(asked.ask), self._mint("ask")
        call_id = call.call_id if call is not None and call.call_id in self.grammar.calls else None
        self.asks[asked.ref] = request_id, asked
        yield self._record(
            InputRequested(request_id=request_id, ask=asked.ask, call_id=call_id), at, self._scope(asked.scope_id))

    def _end(self, ended: Ended, at: float) -> Iterator[Record]:
        for scope_id, event in missing_ends(self.grammar, ended.outcome, ended.stop_reason):
            yield self._record(event, at, scope_id)
        if ended.fault is not None:
            yield self._record(FaultRaised(fault=ended.fault), at)
        yield self._record(TurnEnded(
            outcome=ended.outcome, stop_reason=ended.stop_reason, fault=ended.fault, result=ended.result,
            usage=self._usage, duration_ms=round((max(at, self._at) - self._started_at) * 1000),
        ), at)
        self._turn_id = None
        self.asks.clear()
        self._answers.clear()

    def _tell_held(self, at: float) -> Iterator[Record]:
        held, self._held = self._held, []
        if held:
            yield from self.begin(at)
        for said in held:
            yield self._say(said, at)

    # -- records --------------------------------------------------------------------------------------------------

    def _say(self, said: Said, at: float) -> Record:
        event, scope_id = (said.event, said.scope_id) if isinstance(said, Scoped) else (said, ROOT)
        if isinstance(event, MessageEnded):
            self._usage += event.usage
        return self._record(event, at, scope_id)

    def _record(self, event: Any, at: float, scope_id: str = ROOT) -> Record:
        self.grammar.check(event, scope_id)
        self._seq, self._at = self._seq + 1, max(at, self._at)
        said: AnyEvent = event
        return Record(
            seq=self._seq, at=self._at, session_id=self.session_id, event=said, turn_id=self._turn_id,
            scope_id=scope_id,
        )

    def _scope(self, scope_id: str) -> str:
        return scope_id if scope_id in self.grammar.scopes else ROOT


def _supposed(ask: AnyAsk) -> Answer:
    """An answer that nobody heard: people let the turn go on."""
    made: dict[str, Answer] = {
        "question": AnswerQuestion(request_id=""), "permission": DecidePermission(request_id="", granted=True),
        "client_tool": ReturnResult(request_id=""), "continuation": ContinueTurn(request_id=""),
        "rollback": RollBack(request_id=""),
    }
    return made[ask.kind]

