"""One turn with an AG-UI agent: what is heard, what was said so far, and what is asked of people in between."""

from collections.abc import Sequence

from gateway.model import (
    Answer,
    AnyAsk,
    ClientToolAsk,
    DecidePermission,
    Entry,
    Record,
    ReturnResult,
    SessionView,
    StopReason,
    ToolStatus,
    call_of,
)
from gateway.ports import Said, Scoped, Turn
from gateway.speech import Pen

from .hearing import Hearing
from .interrupts import Resume, Settled, asks_for, resume
from .memory import Memory
from .wire import Interrupt

Pending = tuple[AnyAsk, Interrupt | None]
"""What is asked, and the interrupt it is about; None where a client's tool is waited for."""


class Talk:
    """The turn as it goes on from run to run."""

    def __init__(self, turn: Turn, memory: Memory) -> None:
        self.turn, self.memory = turn, memory
        client_tools = frozenset(tool.name for tool in turn.settings.client_tools)
        self.hearing = Hearing(turn.mint, client_tools, memory.state)
        self.told: list[Said] = []
        """What the last answers made of the calls they were about."""
        self._view = SessionView(session_id=turn.session_id)

    @property
    def entries(self) -> list[Entry]:
        """The conversation up to now, this turn's part of it as its own events tell it."""
        return [*self.turn.history, *self._view.entries]

    @property
    def ids(self) -> dict[str, str]:
        return {**self.memory.ids, **self.hearing.ids}

    def note(self, told: list[Said]) -> list[Said]:
        """Remember what the agent itself says."""
        for said in told:
            if not isinstance(said, Scoped):
                self._view.apply(Record(
                    seq=self._view.head + 1, at=0.0, session_id=self.turn.session_id, turn_id=self.turn.turn_id,
                    event=said,
                ))
        return told

    # -- asking ---------------------------------------------------------------------------------------------------

    def pending(self) -> list[Pending]:
        """All that the run leaves to people and their tools."""
        waiting = self.hearing.waiting_calls
        asked: list[Pending] = [(ClientToolAsk(call=call), None) for call in waiting]
        calls = {call_id: call for call_id, (_, call) in self.hearing.open_calls.items() if call not in waiting}
        for interrupt in self.hearing.interrupts:
            asked += [(ask, interrupt) for ask in asks_for(interrupt, calls)]
        return asked

    def pause(self, pending: Sequence[Pending]) -> list[Said]:
        """The run is over; where people are asked, the calls they are asked about stay open.

        An interrupted run goes on: then all its calls stay open, for what comes of them is told by the next run.
        """
        waits_for = dict.fromkeys(call.call_id for ask, _ in pending if (call := call_of(ask)) is not None)
        said = self.note(self.hearing.leave(self.hearing.open_calls if self.hearing.interrupts else waits_for))
        if not pending:
            said += self.note(self.hearing.end_scopes())
        self.memory.learn(thread_id=self.hearing.thread_id, state=self.hearing.shared.state, ids=self.hearing.ids)
        said += self.memory.kept(self.turn, [interrupt for _, interrupt in pending])
        for call_id in waits_for:
            said += self.hearing.open_calls[call_id][0].scribe.status(call_id, ToolStatus.AWAITING_INPUT)
        return said

    def settle(self, pending: Sequence[Pending], answers: Sequence[Answer]) -> Resume:
        """The agent's answers, for its next run; what the others make of their calls is `told`."""
        self.told = []
        settled: list[Settled] = []
        for (ask, interrupt), answer in zip(pending, answers, strict=True):
            if isinstance(answer, DecidePermission) and not answer.granted and (call := call_of(ask)) is not None:
                self.hearing.denied.add(call.call_id)
            if interrupt is not None:
                settled.append((interrupt, ask, answer))
            elif isinstance(ask, ClientToolAsk):
                self.told += self.note(self._returned(ask, answer))
        return resume(settled)

    def _returned(self, ask: ClientToolAsk, answer: Answer) -> list[Said]:
        voice, _ = self.hearing.open_calls[ask.call.call_id]
        if isinstance(answer, ReturnResult):
            return voice.scribe.returned(ask.call.call_id, answer.content, is_error=answer.is_error)
        return voice.scribe.returned(ask.call.call_id, "Tool call cancelled", is_error=True)

    def give_up(self) -> list[Said]:
        """So many runs are enough."""
        pen = Pen(self.turn)
        left = [*self.hearing.leave(set()), *self.hearing.end_scopes()]
        return [*left, pen.start_message(), pen.end_message(stop_reason=StopReason.MAX_STEPS)]

