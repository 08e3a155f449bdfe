"""The state of one turn with an AG-UI agent, and what its session stores between turns."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import structlog
from msgspec import Struct

import gateway.model as m
from gateway.backends.tool_executor import CALL_CANCELLED
from gateway.client import EventWriter
from gateway.errors import Interrupted
from gateway.ports import BackendEvent, DecodedItem, RemoteAsk, RemoteTurnEnd, ScopedEvent, Turn

from .decoder import CANCELLED, AguiDecoder, PendingAsk
from .interrupts import RunResume, SettledAsk, run_resume
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

    def note(self, items: Iterable[DecodedItem]) -> list[BackendEvent]:
        """Add the agent's own events to the conversation, and return all events; `decoder` has the asks."""
        told = [item for item in items if not isinstance(item, RemoteAsk | RemoteTurnEnd)]
        for said in told:
            if not isinstance(said, ScopedEvent):
                m.apply(self._view, m.Record(
                    seq=self._view.head + 1, at=0.0, session_id=self.turn.session_id, turn_id=self.turn.turn_id,
                    event=said,
                ))
        return told

    @property
    def is_cancelled(self) -> bool:
        return self.decoder.outcome is not None and self.decoder.outcome.type == CANCELLED

    # -- asks -----------------------------------------------------------------------------------------------------

    def take_up(self) -> None:
        """Continue with the open calls of the history, after a restart."""
        for call in open_calls(self.turn.history):
            self.decoder.take_up(call)

    def stored_asks(self) -> list[PendingAsk]:
        """The asks of the turn with their stored interrupts."""
        if len(self.memory.waiting) != len(self.turn.asked):
            raise Interrupted("What the agent waits for was forgotten while the server was stopped.")
        stored = zip(self.turn.asked, self.memory.waiting, strict=True)
        return [(RemoteAsk(ask=ask, ref=interrupt.id if interrupt else ""), interrupt) for ask, interrupt in stored]

    def pause(self) -> list[BackendEvent]:
        """The end of a run: store the state, and show which calls wait for people."""
        pending = self.decoder.pending
        self.memory.update(thread_id=self.decoder.thread_id, state=self.decoder.shared.state, ids=self.decoder.ids)
        events: list[BackendEvent] = [*self.memory.metadata_update(self.turn, [interrupt for _, interrupt in pending])]
        calls = [call.call_id for asked, _ in pending if (call := m.call_of(asked.ask)) is not None]
        for call_id in dict.fromkeys(calls):
            events += self.decoder.open_calls[call_id][0].assembler.status(call_id, m.ToolStatus.AWAITING_INPUT)
        return events

    def settle(self, pending: Sequence[PendingAsk], answers: Sequence[m.Answer]) -> list[BackendEvent]:
        """Set `resume` to the answers for the agent; returns the results of the client's tools."""
        results, settled = list[BackendEvent](), list[SettledAsk]()
        for (asked, interrupt), answer in zip(pending, answers, strict=True):
            self.decoder.on_answer(asked, answer)
            if interrupt is not None:
                settled.append((interrupt, asked.ask, answer))
            elif isinstance(asked.ask, m.ClientToolAsk):
                results += self.note(self._returned(asked.ask, answer))
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
        return [*self.decoder.end(), writer.start_message(), writer.end_message(stop_reason=m.StopReason.MAX_STEPS)]
