"""Whose voice is heard: the agent's own and its sub-agents', each with a scribe; and what is known of their turns."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import gateway.model as m
from gateway.client import StreamAssembler
from gateway.ids import Mint
from gateway.ports import BackendEvent, ScopedEvent

from .readers import meanings, number, optional_number, optional_text, text

NO_USAGE = m.Usage()


@dataclass(slots=True)
class LoopState:
    """One loop. Its scope goes by the loop's own name, so that it is the same for whoever hears it again."""

    scope_id: str
    assembler: StreamAssembler
    fork: str = ""
    """The call that brought it about."""
    parent: str = m.ROOT
    is_open: bool = False
    is_blocked: bool = False
    turn_id: str = ""
    """The turn whose message is open, or was last."""
    owed: m.Usage = NO_USAGE
    """What turns have cost that ended after their message had to."""


@dataclass(slots=True)
class DecodedCall:
    """A tool call as its turn tells it; `made` is what was told of it in words of the house."""

    wire_id: str
    turn: "DecodedTurn"
    facts: dict[str, Any] = field(default_factory=dict)
    made: m.ToolCall | None = None
    ask: m.AnyAsk | None = None
    is_ask_only: bool = False
    """It was made for the asking only: the ask is told, and not the call."""
    is_waiting: bool = False
    is_over: bool = False
    meta: dict[str, Any] | None = None


@dataclass(slots=True)
class DecodedTurn:
    """An entry of the conversation that an agent makes, and how much of it was told."""

    turn_id: str
    voice: LoopState
    calls: dict[str, DecodedCall] = field(default_factory=dict)
    told: Counter[m.BlockKind] = field(default_factory=Counter)
    """Characters of each kind of words."""
    lengths: Counter[m.BlockKind] = field(default_factory=Counter)
    """Characters of the last block of each kind of words."""
    pieces: Counter[str] = field(default_factory=Counter)
    growing: tuple[m.BlockKind, Any] | None = None
    blocks: int = 0
    is_calling: bool = False
    """Whether the last thing in it is a call."""
    is_over: bool = False


class Loops:
    """The loops of one chat."""

    def __init__(self, mint: Mint) -> None:
        self._mint = mint
        self._forget()

    def _forget(self) -> None:
        self._voices = {m.ROOT: LoopState(m.ROOT, StreamAssembler(self._mint), is_open=True)}
        self._turns: dict[str, DecodedTurn] = {}

    def _call_by_id(self, wire_id: str) -> DecodedCall | None:
        """The latest call of that id, in whichever turn."""
        return next((turn.calls[wire_id] for turn in reversed(self._turns.values()) if wire_id in turn.calls), None)

    # -- scopes ---------------------------------------------------------------------------------------------------

    def _heed(self, turn: dict[str, Any]) -> tuple[LoopState, list[BackendEvent]]:
        """The voice a turn is spoken in; one that was not heard before takes up its work."""
        fork, loop = text(turn.get("parent_fork_tool_call_id")), text(turn.get("loop_id"))
        scope_id = (loop if loop and loop != m.ROOT else f"fork:{fork}") if fork else m.ROOT
        voice = self._voices.get(scope_id)
        if voice is None:
            voice = self._voices[scope_id] = LoopState(scope_id, StreamAssembler(self._mint, scope_id), fork)
        return voice, self._open(voice)

    def _open(self, voice: LoopState) -> list[BackendEvent]:
        if voice.is_open:
            return []
        cause = self._call_by_id(voice.fork)
        parent = cause.turn.voice if cause is not None and cause.turn.voice.is_open else self._voices[m.ROOT]
        made = cause.made if cause is not None else None
        voice.is_open, voice.parent = True, parent.scope_id
        return [ScopedEvent(voice.scope_id, m.ScopeOpened(
            parent=parent.scope_id, call_id=made.call_id if made else None,
            title=optional_text(made.input.get("description")) if made else None,
        ))]

    def _forked(self, call: DecodedCall) -> list[LoopState]:
        """The sub-agents that a call brought about and that are at work; never those that make the call."""
        makers = {m.ROOT}
        maker = call.turn.voice
        while maker.scope_id not in makers:
            makers.add(maker.scope_id)
            maker = self._voices[maker.parent]
        return [voice for scope_id, voice in self._voices.items()
                if voice.fork == call.wire_id and voice.is_open and scope_id not in makers]

    def _block(self, voice: LoopState, is_blocked: bool) -> list[BackendEvent]:
        """A sub-agent waits for people, or goes on."""
        if voice.is_blocked is is_blocked:
            return []
        voice.is_blocked = is_blocked
        changed = (
            m.ScopeStatusChanged(status=m.ScopeStatus.BLOCKED, stop_reason=m.StopReason.NEEDS_INPUT)
            if is_blocked
            else m.ScopeStatusChanged(status=m.ScopeStatus.RUNNING)
        )
        return [ScopedEvent(voice.scope_id, changed)]

    def _close(self, voice: LoopState, stop_reason: m.StopReason = m.StopReason.END_TURN) -> list[BackendEvent]:
        """A sub-agent's work is done, and that of those it called."""
        voice.is_open = False
        said = [event for child in list(self._voices.values()) if child.is_open and child.parent == voice.scope_id
                for event in self._close(child, stop_reason)]
        said += self._finish(voice)
        return [
            *said,
            ScopedEvent(voice.scope_id, m.ScopeStatusChanged(status=m.ScopeStatus.ENDED, stop_reason=stop_reason)),
        ]

    # -- messages -------------------------------------------------------------------------------------------------

    def _begin(self, turn: DecodedTurn, body: dict[str, Any]) -> list[BackendEvent]:
        """A turn is a message; one of the same voice that is not over has said all it can."""
        voice = turn.voice
        before = self._turns.get(voice.turn_id)
        said = self._finish(voice, stop_reason_of(before) if before else m.StopReason.END_TURN)
        voice.turn_id, voice.assembler.broken_calls = turn.turn_id, []
        role = meanings().role.get(text(body.get("role")), m.Role.ASSISTANT)
        model, window = optional_text(body.get("model")), optional_number(body.get("context_window"))
        return [*said, voice.assembler.writer.start_message(role=role, model=model, context_window=window)]

    def _finish(
        self, voice: LoopState, stop_reason: m.StopReason = m.StopReason.END_TURN, usage: m.Usage = NO_USAGE,
        outcome: m.Outcome = m.Outcome.COMPLETED, duration_ms: int = 0,
    ) -> list[BackendEvent]:
        """The end of the message that is open; how long it took is the server's to say."""
        voice.owed += usage
        if not voice.assembler.writer.in_message:
            return []
        usage, voice.owed, message_id = voice.owed, NO_USAGE, voice.assembler.writer.message_id
        *said, _ = voice.assembler.finish(stop_reason, usage, outcome)
        ended = m.MessageEnded(
            message_id=message_id, outcome=outcome, stop_reason=stop_reason, usage=usage, duration_ms=duration_ms,
        )
        return [*said, voice.assembler.writer.emit(ended)]


def stop_reason_of(turn: DecodedTurn) -> m.StopReason:
    return m.StopReason.TOOL_USE if turn.is_calling else m.StopReason.END_TURN


def read_usage(turn: dict[str, Any]) -> m.Usage:
    told = turn.get("usage")
    if not isinstance(told, dict):
        return NO_USAGE
    return m.Usage(input_tokens=number(told.get("input_tokens")), output_tokens=number(told.get("output_tokens")))
