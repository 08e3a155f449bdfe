"""The state of one turn with an AG-UI agent, and what its session stores between turns."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import structlog
from msgspec import Struct

import gateway.model as m
from gateway.backends.tool_executor import CALL_CANCELLED
from gateway.client import EventWriter
from gateway.errors import Interrupted
from gateway.ports import BackendEvent, ScopedEvent, Turn

from .decoder import AguiDecoder
from .interrupts import RunResume, SettledAsk, asks_for, run_resume
from .messages import open_calls
from .wire import RunInterrupt

log = structlog.get_logger("dragoman.agui")
METADATA_KEY = "agui"
"""The key of the stored state in the session's private metadata."""
MAX_STATE_BYTES = 1024 * 1024
"""A larger state is not stored after its turn."""
MAX_MESSAGE_IDS = 200
"""The agent's own ids of so many messages are stored, the latest ones."""


class AguiSessionState(Struct, kw_only=True, omit_defaults=True):
    """Stored with the session, for one URL; with another URL the state starts empty."""

    url: str = ""
    thread_id: str = ""
    state: Any = {}
    ids: dict[str, str] = {}
    waiting: list[RunInterrupt | None] = []
    """The interrupts of the open asks, in order; None for the call of a client's tool."""

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
        """The event that stores this state; empty if nothing has changed."""
        self.waiting = list(waiting)
        told: dict[str, Any] = msgspec.to_builtins(self)
        if len(msgspec.json.encode(told.get("state"))) > MAX_STATE_BYTES:
            log.warning("agui_state_not_stored", session=turn.session_id)
            told.pop("state")
        private = turn.metadata.get(m.PRIVATE) or {}
        if private.get(METADATA_KEY) == told:
            return []
        return [m.SessionUpdated(metadata={**turn.metadata, m.PRIVATE: {**private, METADATA_KEY: told}})]


PendingAsk = tuple[m.AnyAsk, RunInterrupt | None]
"""An ask and its interrupt; None for the call of a client's tool."""


class AguiTurn:
    """The state of a turn across its runs."""

    def __init__(self, turn: Turn, memory: AguiSessionState) -> None:
        self.turn, self.memory = turn, memory
        client_tools = frozenset(tool.name for tool in turn.settings.client_tools)
        self.decoder = AguiDecoder(turn.mint, client_tools, memory.state)
        self.resume = RunResume()
        """The answers that the next run is given."""
        self._view = m.SessionView(session_id=turn.session_id)

    @property
    def entries(self) -> list[m.HistoryEntry]:
        """The conversation so far, with the messages of this turn."""
        return [*self.turn.history, *self._view.entries]

    @property
    def ids(self) -> dict[str, str]:
        return {**self.memory.ids, **self.decoder.ids}

    def note(self, told: list[BackendEvent]) -> list[BackendEvent]:
        """Add the agent's own events to the conversation, and return all events."""
        for said in told:
            if not isinstance(said, ScopedEvent):
                m.apply(self._view, m.Record(
                    seq=self._view.head + 1, at=0.0, session_id=self.turn.session_id, turn_id=self.turn.turn_id,
                    event=said,
                ))
        return told

    @property
    def is_cancelled(self) -> bool:
        return self.decoder.outcome is not None and self.decoder.outcome.type == "cancelled"

    # -- asks -----------------------------------------------------------------------------------------------------

    def take_up(self) -> None:
        """Continue with the open calls of the history, after a restart."""
        for call in open_calls(self.turn.history):
            self.decoder.take_up(call)

    def stored_asks(self) -> list[PendingAsk]:
        """The asks of the turn with their stored interrupts."""
        if len(self.memory.waiting) != len(self.turn.asked):
            raise Interrupted("What the agent waits for was forgotten while the server was stopped.")
        return list(zip(self.turn.asked, self.memory.waiting, strict=True))

    def pending(self) -> list[PendingAsk]:
        """The asks that the run leaves open."""
        waiting = self.decoder.waiting_calls
        asked: list[PendingAsk] = [(m.ClientToolAsk(call=call), None) for call in waiting]
        calls = {call_id: call for call_id, (_, call) in self.decoder.open_calls.items() if call not in waiting}
        for interrupt in self.decoder.interrupts:
            asked += [(ask, interrupt) for ask in asks_for(interrupt, calls)]
        return asked

    def pause(self, pending: Sequence[PendingAsk]) -> list[BackendEvent]:
        """The end of a run: calls that an ask is about stay open.

        After an interrupt all calls stay open: the next run reports their results.
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

    def settle(self, pending: Sequence[PendingAsk], answers: Sequence[m.Answer]) -> list[BackendEvent]:
        """Set `resume` to the answers for the agent; returns the results of the client's tools."""
        results, settled = list[BackendEvent](), list[SettledAsk]()
        for (ask, interrupt), answer in zip(pending, answers, strict=True):
            if isinstance(answer, m.DecidePermission) and not answer.granted and (call := m.call_of(ask)) is not None:
                self.decoder.denied.add(call.call_id)
            if interrupt is not None:
                settled.append((interrupt, ask, answer))
            elif isinstance(ask, m.ClientToolAsk):
                results += self.note(self._returned(ask, answer))
        self.resume = run_resume(settled)
        return results

    def _returned(self, ask: m.ClientToolAsk, answer: m.Answer) -> list[BackendEvent]:
        scope, _ = self.decoder.open_calls[ask.call.call_id]
        if isinstance(answer, m.ReturnResult):
            return scope.assembler.returned(ask.call.call_id, answer.content, is_error=answer.is_error)
        return scope.assembler.returned(ask.call.call_id, CALL_CANCELLED, is_error=True)

    def give_up(self) -> list[BackendEvent]:
        """The end of a turn that has reached its limit of runs."""
        writer = EventWriter(self.turn)
        left = [*self.decoder.leave(set()), *self.decoder.end_scopes()]
        return [*left, writer.start_message(), writer.end_message(stop_reason=m.StopReason.MAX_STEPS)]
