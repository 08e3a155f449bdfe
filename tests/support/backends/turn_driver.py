"""A turn for backends under test: every event is held to the grammar, every ask has an answer at hand."""

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

import gateway.model as m
from gateway.backends import DEMO_CARD, DemoBackend
from gateway.client import BackendOutputs, events_of
from gateway.ports import Backend, ScopedEvent

Answering = Callable[[m.AnyAsk, str], m.Answer]


def kindly(ask: m.AnyAsk, request_id: str) -> m.Answer:
    """Yes to everything."""
    match ask:
        case m.QuestionAsk():
            return m.AnswerQuestion(request_id=request_id, selections={"0": (1,), "1": (0, 2)})
        case m.PermissionAsk():
            return m.DecidePermission(request_id=request_id, granted=True)
        case m.ClientToolAsk():
            return m.ReturnResult(request_id=request_id, content="done by the client")
        case m.ContinuationAsk():
            return m.ContinueTurn(request_id=request_id)
    return m.RollBack(request_id=request_id, option="step")


class FakeTurn:
    """Ports' Turn, recording; ids are counted."""

    session_id, turn_id = "sess_1", "turn_1"

    def __init__(
        self, command: m.SendMessage | m.Compact, *, settings: m.Settings | None = None, agent: m.AgentCard = DEMO_CARD,
        history: Sequence[m.HistoryEntry] = (), answering: Answering = kindly, memories: Sequence[m.MemoryRef] = (),
    ) -> None:
        self.command, self.agent, self.history, self.memories = command, agent, history, memories
        self.settings = settings or m.Settings()
        self.grammar = m.Grammar()
        self.records: list[m.Record] = []
        self.asks: list[tuple[m.AnyAsk, ...]] = []
        self._answering, self._numbers = answering, count(1)
        self.record(m.TurnStarted(command_id="cmd_1"))

    def record(self, event: m.Event, scope_id: str = m.ROOT) -> None:
        self.grammar.check(event, scope_id)
        record = m.Record(
            seq=len(self.records) + 1, at=1.0, session_id=self.session_id, turn_id=self.turn_id,
            scope_id=scope_id, event=event,  # type: ignore[arg-type]
        )
        if not event.name.endswith(".delta"):
            assert m.decode_record(m.encode_record(record)) == record, (
                "what is said can be written to the log and read back"
            )
        self.records.append(record)

    def mint(self, prefix: str) -> str:
        return f"{prefix}_{next(self._numbers)}"

    async def ask(self, *asks: m.AnyAsk, scope_id: str = m.ROOT) -> list[m.Answer]:
        self.asks.append(asks)
        ids = [self.mint("ask") for _ in asks]
        for ask, request_id in zip(asks, ids, strict=True):
            call = m.call_of(ask)
            self.record(m.InputRequested(request_id=request_id, ask=ask, call_id=call and call.call_id), scope_id)
        self.record(m.TurnSuspended(pending=tuple(ids)))
        for request_id in ids:
            self.record(m.InputResolved(request_id=request_id, resolution=m.Resolution.ANSWERED), scope_id)
        self.record(m.TurnResumed(settled=tuple(ids)))
        return [self._answering(ask, request_id) for ask, request_id in zip(asks, ids, strict=True)]

    async def read_skill(self, name: str, path: str = m.SKILL_FILE) -> m.SkillFile:
        return m.SkillFile(name=name, path=path, size=4, text="text")

    # -- what was said --------------------------------------------------------------------------------------------

    @property
    def events(self) -> list[Any]:
        return [record.event for record in self.records]

    def all(self, kind: type[m.Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def text(self) -> str:
        """All that the agent itself said in text blocks."""
        return "".join(
            record.event.text or "" for record in self.records
            if isinstance(record.event, m.BlockEnded) and record.event.kind == "text" and record.scope_id == m.ROOT
        )

    @property
    def stops(self) -> list[m.StopReason]:
        return [event.stop_reason for event in self.all(m.MessageEnded)]

    @property
    def results(self) -> list[str]:
        return [str(event.content) for event in self.all(m.ToolReturned)]

    @property
    def view(self) -> m.SessionView:
        return m.fold(self.session_id, self.records)

    @property
    def outline(self) -> list[str]:
        """Names and variants, deltas left out."""
        return [f"{e.name}.{e.variant}".rstrip(".") for e in self.events if e.name != "block.delta"]


async def record_all(outputs: BackendOutputs, turn: FakeTurn) -> None:
    """Record every event of a backend until it ends or raises."""
    async for output in outputs:
        for said in events_of(output):
            event, scope_id = (said.event, said.scope_id) if isinstance(said, ScopedEvent) else (said, m.ROOT)
            assert type(event) in m.BACKEND_EVENTS
            turn.record(event, scope_id)


async def play(backend: Backend, turn: FakeTurn) -> FakeTurn:
    """Run the backend to its end; the turn must then be fit to be ended."""
    await record_all(backend.run(turn), turn)
    turn.record(m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN))
    return turn


async def tell(message: Any, *, backend: Backend | None = None, **given: Any) -> FakeTurn:
    """What the demo agent makes of a message."""
    command = message if isinstance(message, m.SendMessage | m.Compact) else m.SendMessage(content=message)
    return await play(backend or demo(), FakeTurn(command, **given))


def demo(sleeps: list[float] | None = None, delay: float = 0.0) -> DemoBackend:
    """The demo agent with a clock that stands still and sleeps that take no time."""
    async def sleep(seconds: float) -> None:
        if sleeps is not None:
            sleeps.append(seconds)

    return DemoBackend(delay=delay, clock=lambda: 1_700_000_000.0, sleep=sleep)


def kinds(events: Iterable[m.Event]) -> set[tuple[str, str]]:
    return {(event.name, event.variant) for event in events}
