"""Writers for the agent and its sub-agents, one per scope: their texts, thinking and calls in valid order."""

import gateway.model as m
from gateway.client import StreamAssembler
from gateway.ids import Mint
from gateway.ports import BackendEvent, ScopedEvent

from .wire import AguiEvent

BlockKey = tuple[str, str]
TEXT, THOUGHT, CALL = "text", "thought", "call"


class ScopeWriter:
    """Writes one scope. A result ends the message of its call, unless another call is still being written."""

    def __init__(self, mint: Mint, client_tools: frozenset[str], scope_id: str = m.ROOT) -> None:
        self.assembler = StreamAssembler(mint, scope_id)
        self.scope_id = scope_id
        self.texts: list[str] = []
        """All texts of this run; a later snapshot may repeat them."""
        self.ids: dict[str, str] = {}
        """The agent's ids of its messages, by ours."""
        self.called: set[str] = set()
        """All calls that were made, with or without a result."""
        self.carried: set[str] = set()
        """The open calls of an earlier run; the next run may repeat them."""
        self.client_tools = client_tools
        self._known = ""
        self._writing: dict[BlockKey, list[str]] = {}
        self._thoughts: set[BlockKey] = set()
        self._results: dict[str, m.Content] = {}
        self._awaited: set[str] = set()

    # -- messages -------------------------------------------------------------------------------------------------

    def begin(self) -> list[BackendEvent]:
        """Start the message when the request is sent: the first event may take long."""
        return [] if self.assembler.writer.in_message else self._fresh()

    def _fresh(self) -> list[BackendEvent]:
        events = self.finish(m.StopReason.END_TURN)
        self._known = ""
        return [*events, *self.assembler.begin()]

    def _in_message(self, known: str) -> list[BackendEvent]:
        """Start a message if none is open: the agent's message of this id, if it gives one."""
        events: list[BackendEvent] = []
        if not self.assembler.writer.in_message or (
            known and self._known and known != self._known and not self._calling
        ):
            events = self._fresh()
        if known and not self._known:
            self._known = self.ids[self.assembler.writer.message_id] = known
        return events

    def finish(self, stop_reason: m.StopReason, usage: m.Usage = m.Usage()) -> list[BackendEvent]:  # noqa: B008  # it is frozen
        """End all that is open; an incomplete call ends as torn."""
        self.texts += ["".join(pieces) for (kind, _), pieces in self._writing.items() if kind == TEXT]
        self._writing, self._thoughts, self._known = {}, set(), ""
        return [*self.assembler.finish(stop_reason, usage), *self._ready_results()]

    @property
    def _calling(self) -> bool:
        return any(kind == CALL for kind, _ in self._writing)

    # -- words ----------------------------------------------------------------------------------------------------

    def say(self, message_id: str, delta: str) -> list[BackendEvent]:
        if not delta:
            return []
        events = [*self.end_thoughts(), *self._in_message(message_id)]
        self._writing.setdefault((TEXT, message_id), []).append(delta)
        return [*events, *self.assembler.text_delta((TEXT, message_id), delta)]

    def think(self, message_id: str, delta: str) -> list[BackendEvent]:
        """A thinking block ends with the next event of another kind: until then it may be signed."""
        if not delta:
            return []
        events = [*self.end_thoughts(but=message_id), *([] if self.assembler.writer.in_message else self._fresh())]
        self._thoughts.add((THOUGHT, message_id))
        return [*events, *self.assembler.text_delta((THOUGHT, message_id), delta, m.BlockKind.THINKING)]

    def sign(self, message_id: str, signature: str) -> list[BackendEvent]:
        if (THOUGHT, message_id) not in self._thoughts:
            return []
        return self.assembler.sign((THOUGHT, message_id), signature)

    def end_thoughts(self, but: str | None = None) -> list[BackendEvent]:
        """End all thinking blocks."""
        over = [key for key in self._thoughts if key[1] != but]
        self._thoughts.difference_update(over)
        return [event for key in over for event in self.assembler.end(key)]

    def end(self, kind: str, name: str) -> list[BackendEvent]:
        """End a text or a call."""
        pieces = self._writing.pop((kind, name), None)
        if pieces is None:
            return []
        if kind == TEXT:
            self.texts.append("".join(pieces))
        return [*self.assembler.end((kind, name)), *self._ready_results()]

    # -- calls ----------------------------------------------------------------------------------------------------

    def call(self, call_id: str, name: str, parent: str = "") -> list[BackendEvent]:
        if call_id in self.carried:
            return []
        events = [*self.end_thoughts(), *self._in_message(parent)]
        if not self._known:
            self._known = self.ids[self.assembler.writer.message_id] = call_id
        self._writing[CALL, call_id] = []
        self.called.add(call_id)
        self._awaited.add(call_id)
        origin = m.ToolOrigin.CLIENT if name in self.client_tools else m.ToolOrigin.BUILTIN
        return [*events, *self.assembler.call((CALL, call_id), m.ToolCall(call_id=call_id, name=name, origin=origin))]

    def arguments(self, call_id: str, fragment: str) -> list[BackendEvent]:
        return self.assembler.input_delta((CALL, call_id), fragment) if (CALL, call_id) in self._writing else []

    def returned(self, call_id: str, content: m.Content) -> list[BackendEvent]:
        """The result of a call, emitted after the call itself."""
        if call_id not in self._awaited and call_id not in self.assembler.open_calls:
            return []
        events = [*self.end_thoughts(), *self.end(CALL, call_id)]
        self._results[call_id] = content
        return [*events, *self._ready_results()]

    def _ready_results(self) -> list[BackendEvent]:
        ready = [call_id for call_id in self._results if call_id in self.assembler.open_calls]
        if not ready:
            return []
        results = {call_id: self._results.pop(call_id) for call_id in ready}
        self._awaited.difference_update(ready)
        events = [] if self._calling else self.finish(m.StopReason.TOOL_USE)
        return [*events, *(event for name, content in results.items()
                           for event in self.assembler.returned(name, content))]

    def end_calls(self) -> list[BackendEvent]:
        """End the calls that are being written."""
        calls = [name for kind, name in self._writing if kind == CALL]
        return [event for name in calls for event in self.end(CALL, name)]

    def data(self, data: m.DataPart) -> list[BackendEvent]:
        """A data block; while a call is being written, a custom event instead."""
        if self._calling:
            return [self.assembler.writer.emit(m.CustomEvent(topic=data.type, payload={"content": data.content}))]
        return [*self.end_thoughts(), *self.begin(), *self.assembler.data(data)]


NO_RESULT_TEXT = ""
"""The result of a call that the agent reports none for."""


class ScopeWriters:
    """The writers of the agent and of the sub-agents that have not ended, by name."""

    def __init__(self, mint: Mint, client_tools: frozenset[str]) -> None:
        self.root = ScopeWriter(mint, client_tools)
        self._mint, self._client_tools = mint, client_tools
        self._subagents: dict[str, ScopeWriter] = {}

    def set_client_tools(self, names: frozenset[str]) -> None:
        """Name the tools that the client runs, from now on."""
        self._client_tools = names
        for scope in self.inner_first:
            scope.client_tools = names

    @property
    def inner_first(self) -> tuple[ScopeWriter, ...]:
        """The writers in the order in which they end."""
        return (*reversed(self._subagents.values()), self.root)

    @property
    def open_calls(self) -> dict[str, tuple[ScopeWriter, m.ToolCall]]:
        """The calls without a result, of the agent and its sub-agents."""
        voices = (self.root, *self._subagents.values())
        return {call_id: (scope, call) for scope in voices for call_id, call in scope.assembler.open_calls.items()}

    def of(self, event: AguiEvent) -> tuple[ScopeWriter, list[BackendEvent]]:
        """The writer for an event; the first event of a sub-agent opens its scope."""
        name = event.subagent_run_id
        if name is None or event.type.startswith("SUBAGENT_"):
            return self.root, []
        if name not in self._subagents:
            return self._open(name, event)
        return self._subagents[name], []

    def started(self, scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
        name = event.subagent_run_id or ""
        return [] if name in self._subagents else self._open(name, event)[1]

    def finished(self, scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
        return self._end(event.subagent_run_id or "", m.StopReason.END_TURN)

    def failed(self, scope: ScopeWriter, event: AguiEvent) -> list[BackendEvent]:
        title = event.message or "A sub-agent failed."
        notice = m.NoticePosted(topic="subagent", title=title, level=m.NoticeLevel.ERROR)
        return [notice, *self._end(event.subagent_run_id or "", m.StopReason.ERROR)]

    def end_subagents(self) -> list[BackendEvent]:
        """End the sub-agents that have not ended."""
        return [event for name in list(reversed(self._subagents)) for event in self._end(name, m.StopReason.END_TURN)]

    def _open(self, name: str, event: AguiEvent) -> tuple[ScopeWriter, list[BackendEvent]]:
        parent = self._subagents.get(event.parent_subagent_run_id or "", self.root)
        scope = self._subagents[name] = ScopeWriter(self._mint, self._client_tools, self._mint("scope"))
        cause = event.parent_tool_call_id if event.parent_tool_call_id in self.open_calls else None
        opened = m.ScopeOpened(parent=parent.scope_id, call_id=cause, agent=event.name, title=event.description)
        return scope, [ScopedEvent(scope.scope_id, opened)]

    def _end(self, name: str, stop_reason: m.StopReason) -> list[BackendEvent]:
        scope = self._subagents.pop(name, None)
        if scope is None:
            return []
        events = [*scope.end_thoughts(), *scope.end_calls(), *scope.finish(stop_reason)]
        events += [
            event
            for call_id in list(scope.assembler.open_calls)
            for event in scope.assembler.returned(call_id, NO_RESULT_TEXT)
        ]
        return [
            *events,
            ScopedEvent(scope.scope_id, m.ScopeStatusChanged(status=m.ScopeStatus.ENDED, stop_reason=stop_reason)),
        ]
