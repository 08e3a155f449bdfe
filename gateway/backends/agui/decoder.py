"""Decodes the events of an AG-UI agent into canonical events, asks and the end of a turn. No clock, no I/O."""

from collections.abc import Callable, Container

import structlog

import gateway.model as m
from gateway.backends.tool_executor import CALL_DENIED
from gateway.errors import BackendFailed
from gateway.ids import Mint
from gateway.json_values import JsonObject
from gateway.ports import BackendEvent, DecodedItem, ParsedFrame, RemoteAsk, RemoteTurnEnd

from .interrupts import asks_for
from .langgraph import INTERRUPT_EVENT, interrupt_from_event
from .messages import tool_content
from .scope_writers import CALL, NO_RESULT_TEXT, TEXT, ScopeWriter, ScopeWriters
from .state_events import SharedState, custom_event, new_messages, raw_event, step_event
from .wire import AguiEvent, RunInterrupt, RunOutcome

log = structlog.get_logger("dragoman.agui")

RUN_STARTED = "RUN_STARTED"
CANCELLED = "cancelled"
OUTCOMES = ("success", "interrupt", CANCELLED)
MAX_QUOTED_CHARS = 500
"""At most so many characters of an agent's error message are quoted."""
OTHER_ROLES = ("user", "system", "developer")
"""Texts of these roles are not the agent's."""
CHUNK_KINDS = {"TEXT_MESSAGE_CHUNK": TEXT, "TOOL_CALL_CHUNK": CALL}
NEUTRAL_EVENTS = ("RAW", "CUSTOM", "STATE_SNAPSHOT", "STATE_DELTA", "STEP_STARTED", "STEP_FINISHED")
"""Events that may come between the chunks of one text or call."""


PendingAsk = tuple[RemoteAsk, RunInterrupt | None]
"""An ask and its interrupt; None for the call of a client's tool."""


class AguiDecoder:
    """Decodes the runs of one turn; calls may stay open from one run to the next."""

    def __init__(self, mint: Mint, client_tools: frozenset[str], state: object = None) -> None:
        self.shared = SharedState(state)
        self.thread_id: str | None = None
        self.outcome: RunOutcome | None = None
        """The outcome of the run; None while it goes on."""
        self.usage = m.Usage()
        self.scopes = ScopeWriters(mint, client_tools)
        self._root = self.scopes.root
        self._chunk: tuple[ScopeWriter, str, str] | None = None
        self._silent: set[str] = set()
        self._announced: list[AguiEvent] = []
        self.pending: list[PendingAsk] = []
        """The asks that the last run has left open."""
        self._denied: set[str] = set()
        """The calls that people have denied."""

    @property
    def paused(self) -> bool:
        return bool(self.pending)

    def on_answer(self, asked: RemoteAsk, answer: m.Answer) -> None:
        """A call that was denied has no other result than that."""
        self.pending = [one for one in self.pending if one[0] is not asked]
        call = m.call_of(asked.ask)
        if call is not None and isinstance(answer, m.DecidePermission) and not answer.granted:
            self._denied.add(call.call_id)

    def configure(self, settings: m.Settings) -> None:
        self.scopes.set_client_tools(frozenset(tool.name for tool in settings.client_tools))

    def on_reconnect(self) -> None:
        """A run cannot be resumed."""

    @property
    def ids(self) -> dict[str, str]:
        """The agent's ids of its messages, by ours."""
        return self._root.ids

    @property
    def open_calls(self) -> dict[str, tuple[ScopeWriter, m.ToolCall]]:
        """The calls without a result, of the agent and its sub-agents."""
        return self.scopes.open_calls

    def take_up(self, call: m.ToolCall) -> None:
        """Continue with a call that was made before the gateway stopped."""
        self._root.assembler.open_calls[call.call_id] = call

    # -- a run ----------------------------------------------------------------------------------------------------

    def start(self) -> list[BackendEvent]:
        """A run is requested: start a message, since the first event may take long."""
        self.pending = []
        self.outcome, self.usage, self._chunk, self._root.texts = None, m.Usage(), None, []
        self._announced = []
        for scope in self.scopes.inner_first:
            scope.carried = set(self.open_calls)
        return [] if self.open_calls else self._root.begin()  # first comes the result of an open call

    def feed(self, frame: ParsedFrame) -> list[DecodedItem]:
        """The items of an `AguiEvent`. A run ends with asks, or with the end of the turn."""
        event: AguiEvent = frame.body
        if self.outcome is not None:
            return [*self.start()] if event.type == RUN_STARTED else []
        events: list[DecodedItem] = [*self._feed(event)]
        return events if self.outcome is None else [*events, *self._finish_run(self.outcome)]

    def _feed(self, event: AguiEvent) -> list[BackendEvent]:
        handler = _HANDLERS.get(event.type)
        if handler is None:
            return []
        if event.type == "CUSTOM" and event.name == INTERRUPT_EVENT:
            self._announced.append(event)  # only the end of the run shows whether it waits for an answer
            return []
        events = [] if event.type in CHUNK_KINDS or event.type in NEUTRAL_EVENTS else self._end_chunk()
        scope, opened = self.scopes.of(event)
        return [*events, *opened, *handler(self, scope, event)]

    def end(self) -> list[BackendEvent]:
        return [*self._end_messages(), *self._leave(()), *self.scopes.end_subagents()]

    def _finish_run(self, outcome: RunOutcome) -> list[DecodedItem]:
        """End all messages; calls that an ask is about stay open.

        After an interrupt all calls stay open: the next run reports their results.
        """
        events: list[DecodedItem] = [*self._end_messages()]
        if outcome.type == CANCELLED:
            return [*events, RemoteTurnEnd(stop_reason=m.StopReason.INTERRUPTED, outcome=m.Outcome.INTERRUPTED)]
        self.pending = self._open_asks()
        waits_for = [call.call_id for asked, _ in self.pending if (call := m.call_of(asked.ask)) is not None]
        events += self._leave(self.open_calls if self.interrupts else waits_for)
        if self.pending:
            return [*events, *(asked for asked, _ in self.pending)]
        return [*events, *self.scopes.end_subagents(), RemoteTurnEnd()]

    def _open_asks(self) -> list[PendingAsk]:
        waiting = self.waiting_calls
        asks = list[PendingAsk]()
        asks += [(RemoteAsk(ask=m.ClientToolAsk(call=call), ref=call.call_id, scope_id=scope.scope_id), None)
                 for scope, call in self.open_calls.values() if call in waiting]
        calls = {call_id: call for call_id, (_, call) in self.open_calls.items() if call not in waiting}
        for interrupt in self.interrupts:
            asks += [(RemoteAsk(ask=ask, ref=interrupt.id), interrupt) for ask in asks_for(interrupt, calls)]
        return asks

    def _end_messages(self) -> list[BackendEvent]:
        scopes, events = self.scopes.inner_first, self._end_chunk()
        for scope in scopes:
            events += [*scope.end_thoughts(), *scope.end_calls()]
        stop = m.StopReason.TOOL_USE if self.waiting_calls or self.interrupts else m.StopReason.END_TURN
        if self.usage != m.Usage():
            events += self._root.begin()
        for scope in scopes:
            events += scope.finish(stop, self.usage if scope is self._root else m.Usage())
        self.usage = m.Usage()
        return events

    def _leave(self, waits_for: Container[str]) -> list[BackendEvent]:
        """End the calls that get no result any more; those that are waited for stay open."""
        left = [(scope, call_id) for call_id, (scope, _) in self.open_calls.items() if call_id not in waits_for]
        return [event for scope, call_id in left for event in scope.assembler.returned(
            call_id, CALL_DENIED if call_id in self._denied else NO_RESULT_TEXT, is_error=call_id in self._denied,
        )]

    @property
    def interrupts(self) -> tuple[RunInterrupt, ...]:
        """The interrupts that the run waits for."""
        return self.outcome.interrupts if self.outcome is not None and self.outcome.type == "interrupt" else ()

    @property
    def waiting_calls(self) -> list[m.ToolCall]:
        """The calls of client tools that the run left to the client."""
        return [call for _, call in self.open_calls.values() if call.origin is m.ToolOrigin.CLIENT]

    # -- runs -----------------------------------------------------------------------------------------------------

    def _run_started(self, scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
        self.thread_id = event.thread_id or self.thread_id
        return []

    def _run_finished(self, scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
        reported = event.outcome
        self.outcome = RunOutcome(type=reported) if isinstance(reported, str) else reported or self._unnamed_outcome()
        if self.outcome.type not in OUTCOMES:
            log.warning("unknown_run_outcome", reason=self.outcome.type[:100])
        self.usage = _usage(event)
        return [] if self.interrupts else [events for one in self._announced for events in custom_event(scope, one)]

    def _unnamed_outcome(self) -> RunOutcome:
        """A run that announced interrupts waits for them; if their ids are not distinct, only for the first."""
        interrupts = [interrupt_from_event(event) for event in self._announced]
        known = {interrupt.id for interrupt in interrupts}
        if len(known) < len(interrupts) or "" in known:
            interrupts = interrupts[:1]
        return RunOutcome(type="interrupt", interrupts=tuple(interrupts)) if interrupts else RunOutcome()

    def _run_failed(self, scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
        details: JsonObject | None = {"upstream_code": event.code} if event.code else None
        why = (event.message or "it does not say why")[:MAX_QUOTED_CHARS]
        raise BackendFailed(f"the agent's run failed: {why}", details=details)

    # -- words ----------------------------------------------------------------------------------------------------

    def _text_started(self, scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
        if event.role in OTHER_ROLES:
            self._silent.add(event.message_id or "")
        return scope.end_thoughts()

    def _text(self, scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
        message_id = event.message_id or ""
        return [] if message_id in self._silent else scope.say(message_id, event.words)

    def _text_ended(self, scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
        self._silent.discard(event.message_id or "")
        return scope.end(TEXT, event.message_id or "")

    def _thought(self, scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
        return scope.think(event.message_id or "", event.words)

    def _thoughts_ended(self, scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
        return scope.end_thoughts()

    def _signed(self, scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
        return scope.sign(event.entity_id or "", event.encrypted_value or "")

    # -- calls ----------------------------------------------------------------------------------------------------

    def _call_started(self, scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
        return scope.call(event.tool_call_id or "", event.tool_call_name or "", event.parent_message_id or "")

    def _arguments(self, scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
        return scope.arguments(event.tool_call_id or "", event.words)

    def _call_ended(self, scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
        return scope.end(CALL, event.tool_call_id or "")

    def _call_returned(self, scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
        call_id = event.tool_call_id or ""
        maker = self.open_calls[call_id][0] if call_id in self.open_calls else scope
        return maker.returned(call_id, tool_content(event.content))

    # -- chunks ---------------------------------------------------------------------------------------------------

    def _chunked(self, scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
        """A text or a call without a start and an end: it ends with the next event of another kind."""
        kind = CHUNK_KINDS[event.type]
        before = self._chunk[2] if self._chunk and self._chunk[:2] == (scope, kind) else ""
        name = (event.message_id if kind == TEXT else event.tool_call_id) or before
        events: list[BackendEvent] = []
        if self._chunk != (scope, kind, name):
            events = self._end_chunk()
            self._chunk = (scope, kind, name)
            if kind == CALL:
                events += scope.call(name, event.tool_call_name or "", event.parent_message_id or "")
        if kind == CALL:
            return [*events, *scope.arguments(name, event.words)]
        return events if event.role in OTHER_ROLES else [*events, *scope.say(name, event.words)]

    def _end_chunk(self) -> list[BackendEvent]:
        chunk, self._chunk = self._chunk, None
        return [] if chunk is None else chunk[0].end(chunk[1], chunk[2])


def _usage(event: AguiEvent) -> m.Usage:
    total = m.Usage()
    for spent in event.usage or ():
        cached, written = spent.cached_input_tokens or 0, spent.cache_write_input_tokens or 0
        total += m.Usage(
            input_tokens=max(0, (spent.input_tokens or 0) - cached - written), output_tokens=spent.output_tokens or 0,
            cache_read_tokens=cached, cache_write_tokens=written, thinking_tokens=spent.reasoning_tokens or 0,
        )
    return total


Handler = Callable[[AguiDecoder, ScopeWriter, AguiEvent], list[BackendEvent]]


def _on_state(change: Callable[[SharedState, ScopeWriter, AguiEvent], list[BackendEvent]]) -> Handler:
    return lambda decoder, scope, event: change(decoder.shared, scope, event)


def _on_scopes(speaks: Callable[[ScopeWriters, ScopeWriter, AguiEvent], list[BackendEvent]]) -> Handler:
    return lambda decoder, scope, event: speaks(decoder.scopes, scope, event)


def _on_scope(tell: Callable[[ScopeWriter, AguiEvent], list[BackendEvent]]) -> Handler:
    return lambda decoder, scope, event: tell(scope, event)


_HANDLERS: dict[str, Handler] = {
    "RUN_STARTED": AguiDecoder._run_started,
    "RUN_FINISHED": AguiDecoder._run_finished,
    "RUN_ERROR": AguiDecoder._run_failed,
    "TEXT_MESSAGE_START": AguiDecoder._text_started,
    "TEXT_MESSAGE_CONTENT": AguiDecoder._text,
    "TEXT_MESSAGE_END": AguiDecoder._text_ended,
    "TEXT_MESSAGE_CHUNK": AguiDecoder._chunked,
    "REASONING_START": AguiDecoder._thoughts_ended,
    "REASONING_MESSAGE_CONTENT": AguiDecoder._thought,
    "REASONING_MESSAGE_CHUNK": AguiDecoder._thought,
    "REASONING_ENCRYPTED_VALUE": AguiDecoder._signed,
    "REASONING_END": AguiDecoder._thoughts_ended,
    "THINKING_TEXT_MESSAGE_START": AguiDecoder._thoughts_ended,
    "THINKING_TEXT_MESSAGE_CONTENT": AguiDecoder._thought,
    "THINKING_END": AguiDecoder._thoughts_ended,
    "TOOL_CALL_START": AguiDecoder._call_started,
    "TOOL_CALL_ARGS": AguiDecoder._arguments,
    "TOOL_CALL_END": AguiDecoder._call_ended,
    "TOOL_CALL_CHUNK": AguiDecoder._chunked,
    "TOOL_CALL_RESULT": AguiDecoder._call_returned,
    "STATE_SNAPSHOT": _on_state(SharedState.snapshot),
    "STATE_DELTA": _on_state(SharedState.change),
    "MESSAGES_SNAPSHOT": _on_scope(new_messages),
    "ACTIVITY_SNAPSHOT": _on_state(SharedState.activity),
    "ACTIVITY_DELTA": _on_state(SharedState.activity),
    "STEP_STARTED": _on_scope(step_event),
    "STEP_FINISHED": _on_scope(step_event),
    "CUSTOM": _on_scope(custom_event),
    "RAW": _on_scope(raw_event),
    "SUBAGENT_STARTED": _on_scopes(ScopeWriters.started),
    "SUBAGENT_FINISHED": _on_scopes(ScopeWriters.finished),
    "SUBAGENT_ERROR": _on_scopes(ScopeWriters.failed),
}
