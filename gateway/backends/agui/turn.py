"""What a session remembers of its AG-UI agent from turn to turn: the thread, the state, and what is waited for.

One turn with an AG-UI agent: what is heard, what was said so far, and what is asked of people in between.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import structlog
from msgspec import Struct

import gateway.model as m
from gateway.client import EventWriter
from gateway.ports import BackendEvent, ScopedEvent, Turn

from .decoder import AguiDecoder
from .interrupts import RunResume, SettledAsk, asks_for, run_resume
from .wire import RunInterrupt

log = structlog.get_logger("dragoman.agui")
METADATA_KEY = "agui"
"""Under this name it stands in the session's private metadata."""
MAX_STATE_BYTES = 1024 * 1024
"""State of more bytes than this is not remembered beyond its turn."""
MAX_MESSAGE_IDS = 200
"""Of so many messages the agent's own ids are remembered, the latest."""


class AguiSessionState(Struct, kw_only=True, omit_defaults=True):
    """Kept with the session, for one address; another agent begins anew."""

    url: str = ""
    thread_id: str = ""
    state: Any = {}
    ids: dict[str, str] = {}
    waiting: list[RunInterrupt | None] = []
    """What the asks of a turn that waits are about, in their order; None where a client's tool is waited for."""

    @classmethod
    def of(cls, turn: Turn, url: str) -> "AguiSessionState":
        kept = (turn.metadata.get(m.PRIVATE) or {}).get(METADATA_KEY)
        try:
            memory = msgspec.convert(kept or {}, cls)
        except msgspec.ValidationError:
            memory = cls()
        return memory if memory.url == url else cls(url=url, thread_id=turn.session_id)

    def update(self, *, thread_id: str | None, state: Any, ids: Mapping[str, str]) -> None:
        self.thread_id = thread_id or self.thread_id
        self.state = state
        together = {**self.ids, **ids}
        self.ids = dict(list(together.items())[-MAX_MESSAGE_IDS:])

    def metadata_update(self, turn: Turn, waiting: Sequence[RunInterrupt | None] = ()) -> list[m.SessionUpdated]:
        """What must be said for this to be remembered; nothing where nothing has changed."""
        self.waiting = list(waiting)
        told: dict[str, Any] = msgspec.to_builtins(self)
        if len(msgspec.json.encode(told.get("state"))) > MAX_STATE_BYTES:
            log.warning("the agent's state is too large to be remembered", session=turn.session_id)
            told.pop("state")
        private = turn.metadata.get(m.PRIVATE) or {}
        if private.get(METADATA_KEY) == told:
            return []
        return [m.SessionUpdated(metadata={**turn.metadata, m.PRIVATE: {**private, METADATA_KEY: told}})]


PendingAsk = tuple[m.AnyAsk, RunInterrupt | None]
"""What is asked, and the interrupt it is about; None where a client's tool is waited for."""


class AguiTurn:
    """The turn as it goes on from run to run."""

    def __init__(self, turn: Turn, memory: AguiSessionState) -> None:
        self.turn, self.memory = turn, memory
        client_tools = frozenset(tool.name for tool in turn.settings.client_tools)
        self.decoder = AguiDecoder(turn.mint, client_tools, memory.state)
        self.client_results: list[BackendEvent] = []
        """What the last answers made of the calls they were about."""
        self._view = m.SessionView(session_id=turn.session_id)

    @property
    def entries(self) -> list[m.HistoryEntry]:
        """The conversation up to now, this turn's part of it as its own events tell it."""
        return [*self.turn.history, *self._view.entries]

    @property
    def ids(self) -> dict[str, str]:
        return {**self.memory.ids, **self.decoder.ids}

    def note(self, told: list[BackendEvent]) -> list[BackendEvent]:
        """Remember what the agent itself says."""
        for said in told:
            if not isinstance(said, ScopedEvent):
                m.apply(self._view, m.Record(
                    seq=self._view.head + 1, at=0.0, session_id=self.turn.session_id, turn_id=self.turn.turn_id,
                    event=said,
                ))
        return told

    # -- asking ---------------------------------------------------------------------------------------------------

    def pending(self) -> list[PendingAsk]:
        """All that the run leaves to people and their tools."""
        waiting = self.decoder.waiting_calls
        asked: list[PendingAsk] = [(m.ClientToolAsk(call=call), None) for call in waiting]
        calls = {call_id: call for call_id, (_, call) in self.decoder.open_calls.items() if call not in waiting}
        for interrupt in self.decoder.interrupts:
            asked += [(ask, interrupt) for ask in asks_for(interrupt, calls)]
        return asked

    def pause(self, pending: Sequence[PendingAsk]) -> list[BackendEvent]:
        """The run is over; where people are asked, the calls they are asked about stay open.

        An interrupted run goes on: then all its calls stay open, for what comes of them is told by the next run.
        """
        waits_for = dict.fromkeys(call.call_id for ask, _ in pending if (call := m.call_of(ask)) is not None)
        said = self.note(self.decoder.leave(self.decoder.open_calls if self.decoder.interrupts else waits_for))
        if not pending:
            said += self.note(self.decoder.end_scopes())
        self.memory.update(thread_id=self.decoder.thread_id, state=self.decoder.shared.state, ids=self.decoder.ids)
        said += self.memory.metadata_update(self.turn, [interrupt for _, interrupt in pending])
        for call_id in waits_for:
            said += self.decoder.open_calls[call_id][0].assembler.status(call_id, m.ToolStatus.AWAITING_INPUT)
        return said

    def settle(self, pending: Sequence[PendingAsk], answers: Sequence[m.Answer]) -> RunResume:
        """The agent's answers, for its next run; what the others make of their calls is `told`."""
        self.client_results = []
        settled: list[SettledAsk] = []
        for (ask, interrupt), answer in zip(pending, answers, strict=True):
            if isinstance(answer, m.DecidePermission) and not answer.granted and (call := m.call_of(ask)) is not None:
                self.decoder.denied.add(call.call_id)
            if interrupt is not None:
                settled.append((interrupt, ask, answer))
            elif isinstance(ask, m.ClientToolAsk):
                self.client_results += self.note(self._returned(ask, answer))
        return run_resume(settled)

    def _returned(self, ask: m.ClientToolAsk, answer: m.Answer) -> list[BackendEvent]:
        voice, _ = self.decoder.open_calls[ask.call.call_id]
        if isinstance(answer, m.ReturnResult):
            return voice.assembler.returned(ask.call.call_id, answer.content, is_error=answer.is_error)
        return voice.assembler.returned(ask.call.call_id, "Tool call cancelled", is_error=True)

    def give_up(self) -> list[BackendEvent]:
        """So many runs are enough."""
        pen = EventWriter(self.turn)
        left = [*self.decoder.leave(set()), *self.decoder.end_scopes()]
        return [*left, pen.start_message(), pen.end_message(stop_reason=m.StopReason.MAX_STEPS)]
