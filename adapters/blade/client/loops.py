"""The loops of the agent and its sub-agents, each with an assembler of events, and what is known of their turns."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import gateway.model as m
from gateway.client import NO_USAGE, StreamAssembler, optional_count, optional_text
from gateway.ids import Mint
from gateway.ports import BackendEvent, ScopedEvent
from mappings.language import Bindings


@dataclass(slots=True)
class LoopState:
    """One loop; its scope has the loop's name, so that decoding it again gives the same scope."""

    scope_id: str
    assembler: StreamAssembler
    fork: str = ""
    """The call that started it."""
    parent: str = m.ROOT
    is_open: bool = False
    is_blocked: bool = False
    turn_id: str = ""
    """The turn whose message is open, or was the last to be open."""
    late_usage: m.Usage = NO_USAGE
    """The usage of turns that ended after their message; the next message carries it."""


@dataclass(slots=True)
class DecodedCall:
    """A tool call with the facts that frames gave; `made` is the canonical call, once there is one."""

    wire_id: str
    turn: "DecodedTurn"
    facts: dict[str, Any] = field(default_factory=dict)
    made: m.ToolCall | None = None
    ask: m.AnyAsk | None = None
    is_ask_only: bool = False
    """Whether the server made it for the ask only: then it is an ask, and no call."""
    is_waiting: bool = False
    is_over: bool = False
    meta: dict[str, Any] | None = None


@dataclass(slots=True)
class TextProgress:
    """How many characters of one kind of text were decoded, and how many its last block has."""

    decoded: int = 0
    length: int = 0


@dataclass(slots=True)
class DecodedTurn:
    """A turn of an agent, and how much of it was decoded."""

    turn_id: str
    loop: LoopState
    calls: dict[str, DecodedCall] = field(default_factory=dict)
    words: TextProgress = field(default_factory=TextProgress)
    thoughts: TextProgress = field(default_factory=TextProgress)
    pieces: Counter[str] = field(default_factory=Counter)
    growing: tuple[m.BlockKind, Any] | None = None
    blocks: int = 0
    is_calling: bool = False
    """Whether a call is the last thing in it."""
    is_over: bool = False

    def progress(self, kind: m.BlockKind) -> TextProgress:
        return self.words if kind is m.BlockKind.TEXT else self.thoughts


class Loops:
    """The loops of one chat, and the turns that were decoded in them."""

    def __init__(self, mint: Mint) -> None:
        self._mint = mint
        self.reset()

    def reset(self) -> None:
        self.by_scope = {m.ROOT: LoopState(m.ROOT, StreamAssembler(self._mint), is_open=True)}
        self.turns: dict[str, DecodedTurn] = {}

    def find_call(self, wire_id: str) -> DecodedCall | None:
        """The latest call of that id, in whichever turn."""
        return next((turn.calls[wire_id] for turn in reversed(self.turns.values()) if wire_id in turn.calls), None)

    # -- scopes ---------------------------------------------------------------------------------------------------

    def of(self, turn: Bindings) -> tuple[LoopState, list[BackendEvent]]:
        """The loop of a turn, and what opens it if it is new."""
        fork, name = turn.get("fork") or "", turn.get("loop_id")
        scope_id = (name if name and name != m.ROOT else f"fork:{fork}") if fork else m.ROOT
        loop = self.by_scope.get(scope_id)
        if loop is None:
            loop = self.by_scope[scope_id] = LoopState(scope_id, StreamAssembler(self._mint, scope_id), fork)
        return loop, self.open(loop)

    def open(self, loop: LoopState) -> list[BackendEvent]:
        if loop.is_open:
            return []
        cause = self.find_call(loop.fork)
        parent = cause.turn.loop if cause is not None and cause.turn.loop.is_open else self.by_scope[m.ROOT]
        made = cause.made if cause is not None else None
        loop.is_open, loop.parent = True, parent.scope_id
        return [ScopedEvent(loop.scope_id, m.ScopeOpened(
            parent=parent.scope_id, call_id=made.call_id if made else None,
            title=optional_text(made.input.get("description")) if made else None,
        ))]

    def forked_by(self, call: DecodedCall) -> list[LoopState]:
        """The open loops of sub-agents that a call started; never those that make the call."""
        makers = {m.ROOT}
        maker = call.turn.loop
        while maker.scope_id not in makers:
            makers.add(maker.scope_id)
            maker = self.by_scope[maker.parent]
        return [loop for scope_id, loop in self.by_scope.items()
                if loop.fork == call.wire_id and loop.is_open and scope_id not in makers]

    def block(self, loop: LoopState, is_blocked: bool) -> list[BackendEvent]:
        """A sub-agent waits for a person, or goes on."""
        if loop.is_blocked is is_blocked:
            return []
        loop.is_blocked = is_blocked
        changed = (
            m.ScopeStatusChanged(status=m.ScopeStatus.BLOCKED, stop_reason=m.StopReason.NEEDS_INPUT)
            if is_blocked
            else m.ScopeStatusChanged(status=m.ScopeStatus.RUNNING)
        )
        return [ScopedEvent(loop.scope_id, changed)]

    def close(self, loop: LoopState, stop_reason: m.StopReason = m.StopReason.END_TURN) -> list[BackendEvent]:
        """End a sub-agent and those that it called."""
        loop.is_open = False
        events = [event for child in list(self.by_scope.values()) if child.is_open and child.parent == loop.scope_id
                  for event in self.close(child, stop_reason)]
        events += self.end_message(loop)
        ended = m.ScopeStatusChanged(status=m.ScopeStatus.ENDED, stop_reason=stop_reason)
        return [*events, ScopedEvent(loop.scope_id, ended)]

    # -- messages -------------------------------------------------------------------------------------------------

    def begin_message(self, turn: DecodedTurn, bindings: Bindings) -> list[BackendEvent]:
        """A turn is a message; it ends an earlier turn of its loop that is still open."""
        loop = turn.loop
        before = self.turns.get(loop.turn_id)
        events = self.end_message(loop, stop_reason_of(before) if before else m.StopReason.END_TURN)
        loop.turn_id, loop.assembler.broken_calls = turn.turn_id, []
        return [*events, loop.assembler.writer.start_message(
            role=bindings.get("role") or m.Role.ASSISTANT, model=bindings.get("model"),
            context_window=optional_count(bindings.get("context_window")),
        )]

    def end_message(
        self, loop: LoopState, stop_reason: m.StopReason = m.StopReason.END_TURN, usage: m.Usage = NO_USAGE,
        outcome: m.Outcome = m.Outcome.COMPLETED, duration_ms: int = 0,
    ) -> list[BackendEvent]:
        """End the open message, if there is one; only the server knows how long it took."""
        loop.late_usage += usage
        if not loop.assembler.writer.in_message:
            return []
        usage, loop.late_usage, message_id = loop.late_usage, NO_USAGE, loop.assembler.writer.message_id
        *events, _ = loop.assembler.finish(stop_reason, usage, outcome)
        ended = m.MessageEnded(
            message_id=message_id, outcome=outcome, stop_reason=stop_reason, usage=usage, duration_ms=duration_ms,
        )
        return [*events, loop.assembler.writer.emit(ended)]


def stop_reason_of(turn: DecodedTurn) -> m.StopReason:
    return m.StopReason.TOOL_USE if turn.is_calling else m.StopReason.END_TURN
