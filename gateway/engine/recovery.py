"""Recovery: sessions that are read from the log again, and turns that were open when the server stopped."""

from collections.abc import Sequence

import gateway.model as m
from gateway.errors import Interrupted
from gateway.time_slices import sliced

from .runtime import SessionWriter

AsksById = dict[str, m.AnyAsk]
"""The asks of one pause by their ids."""
RECORDS_PER_SLICE = 2048
"""How many records are applied in one step of the event loop."""
SERVER_STOPPED = "The server stopped while this turn was running."
AGENT_CHANGED = "The agent did not ask again what it had asked before the server stopped."


async def restore_running(session: SessionWriter, records: Sequence[m.Record], head: int) -> None:
    """Apply all records of a session that has an open turn, to its view and to its grammar."""
    async for some in sliced(records, RECORDS_PER_SLICE):
        for record in some:
            session.grammar.check(record.event, record.scope_id)
            m.apply(session.view, record)
    session.view.head = session.stored_seq = session.changed_seq = head


async def restore_idle(session: SessionWriter, records: Sequence[m.Record], head: int) -> None:
    """Apply the records of a session without an open turn; deltas may be missing, and the grammar needs no records."""
    await apply_records(session.view, records)
    session.view.head = session.stored_seq = session.changed_seq = head


async def apply_records(view: m.SessionView, records: Sequence[m.Record]) -> None:
    """Apply records to a view, in slices of time between which others run."""
    async for some in sliced(records, RECORDS_PER_SLICE):
        for record in some:
            m.apply(view, record)


class TurnHistory:
    """The records of an open turn, for an agent that runs the turn again."""

    def __init__(self, turn_id: str, records: Sequence[m.Record]) -> None:
        self.pauses: list[AsksById] = []
        self.answers: dict[str, m.Answer] = {}
        self.usage = m.Usage()
        self.memories: tuple[m.MemoryRef, ...] = ()
        self.command: m.SendMessage | m.Compact | None = None
        self.message_seq = 0
        self.started_at = 0.0
        self.trace: str | None = None
        self.agent: str | None = None
        """The agent that runs the turn, if it is not the agent of the session."""
        self.is_paused = False
        self._at = 0
        asked: AsksById = {}
        for record in records:
            if record.turn_id == turn_id:
                asked = self._take(record, asked)

    def _take(self, record: m.Record, asked: AsksById) -> AsksById:
        match record.event:
            case m.InputAccepted(command=command):
                self._accepted(record, command)
            case m.TurnStarted(trace=trace, agent=agent):
                self.started_at, self.trace, self.agent = record.at, trace, agent
            case m.InputRequested(request_id=request_id, ask=ask):
                asked[request_id] = ask
            case m.InputResolved(request_id=request_id):
                self.answers.setdefault(request_id, m.Withdraw(request_id=request_id))
            case m.TurnSuspended():
                self.pauses.append(asked)
                self.is_paused, asked = True, {}
            case m.TurnResumed():
                self.is_paused = False
            case m.MessageAnnotated(topic=m.AnnotationTopic.MEMORY_REFS, content=content) if not self.memories:
                self.memories = m.read_memory_refs(content)
            case m.MessageEnded(usage=usage):
                self.usage += usage
        return asked

    def _accepted(self, record: m.Record, command: object) -> None:
        if isinstance(command, m.SendMessage | m.Compact) and self.command is None:
            self.command, self.message_seq = command, record.seq
        elif isinstance(command, m.ANSWERS):
            self.answers[command.request_id] = command  # type: ignore[attr-defined, assignment]  # ANSWERS are answers

    def history(self, entries: Sequence[m.HistoryEntry]) -> tuple[m.HistoryEntry, ...]:
        """The history that the agent was given when the turn began."""
        return tuple(entry for entry in entries if entry.scope_id == m.ROOT and entry.seq <= self.message_seq)

    @property
    def last(self) -> AsksById:
        """The asks that the turn waits for, settled or not."""
        return self.pauses[-1]

    def next(self, asks: Sequence[m.AnyAsk]) -> list[m.Answer] | None:
        """The answers to these asks, in their order; None at the pause at which the server stopped."""
        if self._at >= len(self.pauses) or not _same_asks(self.pauses[self._at], asks):
            raise Interrupted(AGENT_CHANGED)
        requests = self.pauses[self._at]
        self._at += 1
        return None if self._at == len(self.pauses) else [self.answers[request_id] for request_id in requests]


def _same_asks(requests: AsksById, asks: Sequence[m.AnyAsk]) -> bool:
    """Whether the agent asks again what it asked before: as many asks, of the same kinds, about the same calls."""
    return [_ask_key(ask) for ask in requests.values()] == [_ask_key(ask) for ask in asks]


def _ask_key(ask: m.AnyAsk) -> tuple[str, str | None]:
    call = m.call_of(ask)
    return ask.kind, call.call_id if call else None


def close_turn(session: SessionWriter, turn_id: str, past: TurnHistory) -> None:
    """End a turn that ran when the server stopped."""
    took = round((session.view.at - past.started_at) * 1000)
    ended = m.TurnEnded(
        outcome=m.Outcome.FAILED,
        stop_reason=m.StopReason.ERROR,
        fault=Interrupted(SERVER_STOPPED).fault,
        usage=past.usage,
        duration_ms=took,
    )
    append_turn_end(session, turn_id, ended)
    session.turn_ended(turn_id, ended)


def append_turn_end(session: SessionWriter, turn_id: str, ended: m.TurnEnded) -> None:
    """Close what is open, append the fault if there is one, and end the turn."""
    for scope_id, event in m.missing_ends(session.grammar, ended.outcome, ended.stop_reason):
        session.append(event, scope_id, turn_id)
    if ended.fault is not None:
        session.append(m.FaultRaised(fault=ended.fault), turn_id=turn_id)
    session.append(ended, turn_id=turn_id)
