"""Sessions that come back from the log: their state, and turns that the server left behind when it stopped."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.errors import Interrupted
from gateway.model import (
    ANSWERS,
    ROOT,
    Answer,
    AnyAsk,
    Compact,
    Entry,
    InputAccepted,
    InputRequested,
    InputResolved,
    MessageEnded,
    Outcome,
    Record,
    SendMessage,
    SessionStatus,
    SessionView,
    StopReason,
    TurnEnded,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
    Usage,
    Withdraw,
    call_of,
)
from gateway.time_slices import sliced

from .closing import say_end

if TYPE_CHECKING:
    from .session import Session

Requests = dict[str, AnyAsk]
"""What was asked at one pause, by the ids of the asks."""
FOLDED = 2048
"""How many records a session takes in at a time when it comes back."""
GONE = "The server stopped while this turn was running."
CHANGED = "The agent did not ask again what it had asked before the server stopped."


async def restore(session: "Session", records: Sequence[Record], head: int) -> None:
    """Take the records in; without a turn at work, those that are no deltas are enough."""
    async for some in sliced(records, FOLDED):
        for record in some:
            session.grammar.check(record.event, record.scope_id)
            session.view.apply(record)
    session.view.head = session.safe = session.told = head


async def restore_idle(session: "Session", spine: Sequence[Record], head: int) -> None:
    """Take the spine of the log in where nothing is open: the grammar has nothing to remember."""
    await fold(session.view, spine)
    session.view.head = session.safe = session.told = head


async def fold(view: SessionView, records: Sequence[Record]) -> None:
    async for some in sliced(records, FOLDED):
        for record in some:
            view.apply(record)


class Past:
    """A turn as far as the log has it, for an agent that runs it anew."""

    def __init__(self, turn_id: str, records: Sequence[Record]) -> None:
        self.pauses: list[Requests] = []
        self.answers: dict[str, Answer] = {}
        self.usage = Usage()
        self.command: SendMessage | Compact | None = None
        self.message_seq = 0
        self.started_at = 0.0
        self.is_paused = False
        self._at = 0
        asked: Requests = {}
        for record in records:
            if record.turn_id == turn_id:
                asked = self._take(record, asked)

    def _take(self, record: Record, asked: Requests) -> Requests:
        match record.event:
            case InputAccepted(command=command):
                self._accepted(record, command)
            case TurnStarted():
                self.started_at = record.at
            case InputRequested(request_id=request_id, ask=ask):
                asked[request_id] = ask
            case InputResolved(request_id=request_id):
                self.answers.setdefault(request_id, Withdraw(request_id=request_id))
            case TurnSuspended():
                self.pauses.append(asked)
                self.is_paused, asked = True, {}
            case TurnResumed():
                self.is_paused = False
            case MessageEnded(usage=usage):
                self.usage += usage
        return asked

    def _accepted(self, record: Record, command: object) -> None:
        if isinstance(command, SendMessage | Compact) and self.command is None:
            self.command, self.message_seq = command, record.seq
        elif isinstance(command, ANSWERS):
            self.answers[command.request_id] = command  # type: ignore[attr-defined, assignment]  # ANSWERS are answers

    def history(self, entries: Sequence[Entry]) -> tuple[Entry, ...]:
        """What the agent was given when the turn began."""
        return tuple(entry for entry in entries if entry.scope_id == ROOT and entry.seq <= self.message_seq)

    @property
    def last(self) -> Requests:
        """What the turn waits for, settled or not."""
        return self.pauses[-1]

    def next(self, asks: Sequence[AnyAsk]) -> list[Answer] | None:
        """What was answered to these, in their order; None where the turn was left waiting."""
        if self._at >= len(self.pauses) or not _same(self.pauses[self._at], asks):
            raise Interrupted(CHANGED)
        requests = self.pauses[self._at]
        self._at += 1
        return None if self._at == len(self.pauses) else [self.answers[request_id] for request_id in requests]


def _same(requests: Requests, asks: Sequence[AnyAsk]) -> bool:
    """Whether these are the asks of then: as many, of the same kinds, about the same calls."""
    return [_mark(ask) for ask in requests.values()] == [_mark(ask) for ask in asks]


def _mark(ask: AnyAsk) -> tuple[str, str | None]:
    call = call_of(ask)
    return ask.kind, call.call_id if call else None


def revive(session: "Session", records: Sequence[Record]) -> None:
    """Close a turn that ran; let one that waits for people wait on."""
    from .turn import TurnRun

    view, house = session.view, session.house
    if view.turn_id is None:
        return
    past = Past(view.turn_id, records)
    card, backend = house.agents.get(view.agent), house.backends.get(view.agent)
    if view.status is not SessionStatus.SUSPENDED or card is None or backend is None or past.command is None:
        _close(session, view.turn_id, past)
        return
    session.run = TurnRun(session, view.turn_id, past.command, backend, card, past)
    session.run.wait_on()


def _close(session: "Session", turn_id: str, past: Past) -> None:
    """End a turn that nobody runs any more."""
    took = round((session.view.at - past.started_at) * 1000)
    ended = TurnEnded(
        outcome=Outcome.FAILED, stop_reason=StopReason.ERROR, fault=Interrupted(GONE).fault, usage=past.usage,
        duration_ms=took,
    )
    say_end(session, turn_id, ended)
    session.turn_over(turn_id, ended)
