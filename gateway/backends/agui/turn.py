"""The state of one turn with an AG-UI agent, and what its session stores between turns."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import structlog
from msgspec import Struct

import gateway.model as m
from gateway.backends.gateway_tools import GatewayTools, OwnCalls, open_calls
from gateway.backends.tool_executor import CALL_CANCELLED
from gateway.client import EventWriter
from gateway.errors import Interrupted
from gateway.ports import BackendEvent, DecodedItem, RemoteAsk, RemoteTurnEnd, ScopedEvent, Turn

from .decoder import CANCELLED, AguiDecoder
from .interrupts import RunResume, SettledAsk, run_resume
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

    def update(self, *, thread_id: str | None, state: object, ids: Mapping[str, str]) -> None:
        self.thread_id = thread_id or self.thread_id
        self.state = state
        together = {**self.ids, **ids}
        self.ids = dict(list(together.items())[-MAX_MESSAGE_IDS:])

    def metadata_update(self, turn: Turn, waiting: Sequence[RunInterrupt | None] = ()) -> list[m.SessionUpdated]:
        """The event that stores this state; empty if nothing has changed."""
        self.waiting = list(waiting)
        memory: dict[str, Any] = msgspec.to_builtins(self)
        if len(msgspec.json.encode(memory.get("state"))) > MAX_STATE_BYTES:
            log.warning("agui_state_not_stored", session=turn.session_id)
            memory.pop("state")
        private = turn.metadata.get(m.PRIVATE) or {}
        if private.get(METADATA_KEY) == memory:
            return []
        return [m.SessionUpdated(metadata={**turn.metadata, m.PRIVATE: {**private, METADATA_KEY: memory}})]


class AguiTurn:
    """The state of a turn across its runs."""

    def __init__(self, turn: Turn, memory: AguiSessionState, tools: GatewayTools) -> None:
        self.turn, self.memory, self.settings = turn, memory, tools.added_to(turn.settings)
        self._tools = tools
        client_tools = frozenset(tool.name for tool in self.settings.client_tools)
        self.decoder = AguiDecoder(turn.mint, client_tools, memory.state)
        self.resume = RunResume()
        """The answers that the next run is given."""
        self.calls = OwnCalls(turn, tools, ())
        """What the last run waits for."""
        self._interrupts: dict[str, RunInterrupt] = {}
        """The interrupts of the last run, by the references of their asks."""
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
        events = [item for item in self._tools.shown([*items]) if not isinstance(item, RemoteAsk | RemoteTurnEnd)]
        for event in events:
            if not isinstance(event, ScopedEvent):
                m.apply(self._view, m.Record(
                    seq=self._view.head + 1, at=0.0, session_id=self.turn.session_id, turn_id=self.turn.turn_id,
                    event=event,
                ))
        return events

    @property
    def is_cancelled(self) -> bool:
        return self.decoder.outcome is not None and self.decoder.outcome.type == CANCELLED

    # -- asks -----------------------------------------------------------------------------------------------------

    def take_up(self) -> None:
        """Continue with the open calls and the asks of the turn, after a restart."""
        for open_call in open_calls(self.turn.history):
            self.decoder.take_up(open_call)
        if len(self.memory.waiting) != len(self.turn.asked):
            raise Interrupted("What the agent waits for was forgotten while the server was stopped.")
        asked = []
        for ask, interrupt in zip(self.turn.asked, self.memory.waiting, strict=True):
            call = m.call_of(ask)
            asked.append(RemoteAsk(ask=ask, ref=interrupt.id if interrupt else call.call_id if call else ""))
            if interrupt is not None:
                self._interrupts[interrupt.id] = interrupt
        self.calls = OwnCalls.resumed(self.turn, self._tools, asked)

    def pause(self) -> list[BackendEvent]:
        """The end of a run: store the state, and show which calls wait for people."""
        pending = self.decoder.pending
        asked = self._tools.shown([asked for asked, _ in pending])
        self.calls = OwnCalls(self.turn, self._tools, [one for one in asked if isinstance(one, RemoteAsk)])
        self._interrupts = {asked.ref: interrupt for asked, interrupt in pending if interrupt is not None}
        people = self.calls.people
        self.memory.update(thread_id=self.decoder.thread_id, state=self.decoder.shared.state, ids=self.decoder.ids)
        waiting = [self._interrupts.get(one.ref) for one in people]
        events: list[BackendEvent] = [*self.memory.metadata_update(self.turn, waiting)]
        calls = [call.call_id for one in people if (call := m.call_of(one.ask)) is not None]
        for call_id in dict.fromkeys(calls):
            events += self.decoder.open_calls[call_id][0].assembler.status(call_id, m.ToolStatus.AWAITING_INPUT)
        return events

    def ran(self, event: BackendEvent) -> list[BackendEvent]:
        """Add an event of a call that the gateway runs; the agent gets the result with the next run."""
        inner = event.event if isinstance(event, ScopedEvent) else event
        if isinstance(inner, m.ToolReturned):
            scope, _ = self.decoder.open_calls[inner.call_id]
            scope.assembler.open_calls.pop(inner.call_id)
        return self.note([event])

    def settle(self) -> list[BackendEvent]:
        """Set `resume` to the answers for the agent; returns the results of the client's tools."""
        results, settled = list[BackendEvent](), list[SettledAsk]()
        for asked, answer in self.calls.of_people:
            self.decoder.on_answer(asked, answer)
            if (interrupt := self._interrupts.get(asked.ref)) is not None:
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
