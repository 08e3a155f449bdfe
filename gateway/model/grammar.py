"""Which event may follow which: tables and one look-up; the laws of the stream, checked on every record."""

from collections.abc import Callable, Sequence
from enum import StrEnum, auto
from typing import Any

import msgspec

from .content import ToolCall
from .enums import ROOT, BlockKind, ScopeStatus
from .events import (
    BlockDelta,
    BlockEnded,
    BlockStarted,
    CustomEvent,
    Event,
    FaultRaised,
    InputAccepted,
    InputRequested,
    InputResolved,
    MessageAnnotated,
    MessageEnded,
    MessageStarted,
    NoticePosted,
    ScopeMessage,
    ScopeOpened,
    ScopeStatusChanged,
    SessionClosed,
    SessionCompacted,
    SessionCreated,
    SessionRewound,
    SessionUpdated,
    ToolOutput,
    ToolReturned,
    ToolStatusChanged,
    TurnEnded,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
)


class GrammarError(Exception):
    """An event came where the laws of the stream allow none such."""


class TurnPhase(StrEnum):
    IDLE = auto()
    RUNNING = auto()
    SUSPENDED = auto()


class ScopePhase(StrEnum):
    """Where one scope is in what it says."""

    QUIET = auto()
    IN_MESSAGE = auto()
    IN_BLOCK = auto()


TURN_TRANSITIONS: dict[TurnPhase, dict[type[Event], TurnPhase]] = {
    TurnPhase.IDLE: {TurnStarted: TurnPhase.RUNNING},
    TurnPhase.RUNNING: {TurnSuspended: TurnPhase.SUSPENDED, TurnEnded: TurnPhase.IDLE},
    TurnPhase.SUSPENDED: {TurnResumed: TurnPhase.RUNNING, TurnEnded: TurnPhase.IDLE},
}

SCOPE_TRANSITIONS: dict[ScopePhase, dict[type[Event], ScopePhase]] = {
    ScopePhase.QUIET: {MessageStarted: ScopePhase.IN_MESSAGE},
    ScopePhase.IN_MESSAGE: {
        BlockStarted: ScopePhase.IN_BLOCK,
        MessageAnnotated: ScopePhase.IN_MESSAGE,
        MessageEnded: ScopePhase.QUIET,
    },
    ScopePhase.IN_BLOCK: {BlockDelta: ScopePhase.IN_BLOCK, BlockEnded: ScopePhase.IN_MESSAGE},
}

# The events that are allowed in each state of the turn, beside the events of the turn itself.
ALLOWED_ALWAYS: tuple[type[Event], ...] = (
    SessionCreated, SessionUpdated, SessionCompacted, SessionClosed, InputAccepted, NoticePosted, CustomEvent,
    ScopeStatusChanged,
)
ALLOWED_IN_TURN: tuple[type[Event], ...] = (
    InputResolved, FaultRaised, ToolStatusChanged, ToolOutput, ToolReturned,
)
ALLOWED_WHILE_RUNNING: tuple[type[Event], ...] = (
    InputRequested, MessageStarted, MessageAnnotated, MessageEnded, BlockStarted, BlockDelta, BlockEnded,
    ScopeOpened, ScopeMessage,
)
ALLOWED: dict[TurnPhase, frozenset[type[Event]]] = {
    TurnPhase.IDLE: frozenset((*ALLOWED_ALWAYS, SessionRewound)),
    TurnPhase.SUSPENDED: frozenset(ALLOWED_ALWAYS + ALLOWED_IN_TURN),
    TurnPhase.RUNNING: frozenset(ALLOWED_ALWAYS + ALLOWED_IN_TURN + ALLOWED_WHILE_RUNNING),
}

BACKEND_EVENTS: frozenset[type[Event]] = frozenset((
    SessionUpdated, SessionCompacted, MessageStarted, MessageAnnotated, MessageEnded,
    BlockStarted, BlockDelta, BlockEnded, ToolStatusChanged, ToolOutput, ToolReturned,
    ScopeOpened, ScopeStatusChanged, ScopeMessage, FaultRaised, NoticePosted, CustomEvent,
))
"""What a backend may say; the rest is the engine's."""


class OpenBlock:
    """A block that has started and not ended, with its deltas so far."""

    __slots__ = ("block_id", "call", "deltas", "kind", "message_id")

    def __init__(self, started: BlockStarted) -> None:
        self.block_id = started.block_id
        self.message_id = started.message_id
        self.kind = started.kind
        self.call = started.call
        self.deltas: list[str] = []


class ScopeState:
    """The open messages and blocks of one scope."""

    __slots__ = ("block", "message_id", "phase")

    def __init__(self) -> None:
        self.phase = ScopePhase.QUIET
        self.message_id = ""
        self.block: OpenBlock | None = None


class OpenCall:
    """A call that was made and has not come back."""

    __slots__ = ("call", "scope_id")

    def __init__(self, call: ToolCall, scope_id: str) -> None:
        self.call = call
        self.scope_id = scope_id


class Grammar:
    """The state of one session's stream; `check` lets a lawful event pass and changes nothing otherwise."""

    def __init__(self) -> None:
        self.turn = TurnPhase.IDLE
        self.scopes: dict[str, ScopeState] = {ROOT: ScopeState()}
        self.calls: dict[str, OpenCall] = {}
        self.asks: dict[str, str | None] = {}

    def check(self, event: Event, scope_id: str = ROOT) -> None:
        kind = type(event)
        if kind is BlockDelta:  # nine events of ten: the short way, by the same rules
            scope = self.scopes.get(scope_id)
            block = scope.block if scope else None
            if (
                block is not None and block.block_id == event.block_id  # type: ignore[attr-defined]
                and block.message_id == event.message_id and block.kind is event.kind  # type: ignore[attr-defined]
                and self.turn is TurnPhase.RUNNING
            ):
                block.deltas.append(event.delta)  # type: ignore[attr-defined]
                return
        if kind in _TURN_EVENTS:
            self._check_turn(event)
        elif kind not in ALLOWED[self.turn]:
            raise GrammarError(f"{event.name} while the turn is {self.turn}")
        elif (rule := _RULES.get(kind)) is not None:
            rule(self, event, scope_id)

    def take_deltas(self, events: Sequence[BlockDelta]) -> bool:
        """Let several deltas pass at once if all are lawful and of the agent's open block; else nothing changes."""
        block = self.scopes[ROOT].block
        if block is None or self.turn is not TurnPhase.RUNNING:
            return False
        block_id, message_id, kind = block.block_id, block.message_id, block.kind
        for event in events:
            if event.block_id != block_id or event.message_id != message_id or event.kind is not kind:
                return False
        block.deltas += [event.delta for event in events]
        return True

    def _check_turn(self, event: Event) -> None:
        kind = type(event)
        after = TURN_TRANSITIONS[self.turn].get(kind)
        if after is None:
            raise GrammarError(f"{event.name} while the turn is {self.turn}")
        if kind is TurnEnded or kind is TurnSuspended:
            self._nothing_left_open(event)
        if kind is TurnEnded and len(self.scopes) > 1:
            self.scopes = {ROOT: self.scopes[ROOT]}
        self.turn = after

    def _nothing_left_open(self, event: Event) -> None:
        for scope_id, scope in self.scopes.items():
            if scope.phase is not ScopePhase.QUIET:
                raise GrammarError(f"{event.name} while scope {scope_id} is in message {scope.message_id}")
        if isinstance(event, TurnEnded):
            if self.calls:
                raise GrammarError(f"turn.ended while call {next(iter(self.calls))} has not come back")
            if self.asks:
                raise GrammarError(f"turn.ended while ask {next(iter(self.asks))} is open")
        elif set(event.pending) != set(self.asks) or not self.asks:  # type: ignore[attr-defined]
            raise GrammarError("turn.suspended must name every open ask, and at least one")

    # -- one rule per event that has one --------------------------------------------------------------------------

    def _speak(self, event: Any, scope_id: str) -> None:
        scope = self.scopes.get(scope_id)
        if scope is None:
            raise GrammarError(f"{event.name} in scope {scope_id}, which was never opened")
        kind = type(event)
        after = SCOPE_TRANSITIONS[scope.phase].get(kind)
        if after is None:
            raise GrammarError(f"{event.name} while scope {scope_id} is {scope.phase}")
        if kind is MessageStarted:
            scope.message_id = event.message_id
        elif event.message_id != scope.message_id:
            raise GrammarError(f"{event.name} of message {event.message_id} inside message {scope.message_id}")
        elif (rule := _BLOCK_RULES.get(kind)) is not None:
            rule(self, scope, event, scope_id)
        scope.phase = after

    def _start_block(self, scope: ScopeState, event: BlockStarted, scope_id: str) -> None:
        if (event.kind is BlockKind.TOOL_USE) is not (event.call is not None):
            raise GrammarError("a tool_use block, and no other, starts with its call")
        scope.block = OpenBlock(event)

    def _grow_block(self, scope: ScopeState, event: BlockDelta, scope_id: str) -> None:
        block = scope.block
        if block is None or block.block_id != event.block_id or block.kind is not event.kind:
            raise GrammarError(f"block.delta of {event.kind} {event.block_id}, which is not the open block")
        block.deltas.append(event.delta)

    def _end_block(self, scope: ScopeState, event: BlockEnded, scope_id: str) -> None:
        block = scope.block
        if block is None or block.block_id != event.block_id or block.kind is not event.kind:
            raise GrammarError(f"block.ended of {event.kind} {event.block_id}, which is not the open block")
        _check_whole(block, event)
        if event.call is not None and not event.torn:
            if event.call.call_id in self.calls:
                raise GrammarError(f"call {event.call.call_id} was made before and has not come back")
            self.calls[event.call.call_id] = OpenCall(event.call, scope_id)
        scope.block = None

    def _know_call(self, event: Any, scope_id: str) -> None:
        if event.call_id not in self.calls:
            raise GrammarError(f"{event.name} of call {event.call_id}, which is not open")

    def _end_call(self, event: ToolReturned, scope_id: str) -> None:
        self._know_call(event, scope_id)
        del self.calls[event.call_id]

    def _open_ask(self, event: InputRequested, scope_id: str) -> None:
        if event.request_id in self.asks:
            raise GrammarError(f"ask {event.request_id} is open already")
        if event.call_id is not None:
            self._know_call(event, scope_id)
        self.asks[event.request_id] = event.call_id

    def _settle_ask(self, event: InputResolved, scope_id: str) -> None:
        if event.request_id not in self.asks:
            raise GrammarError(f"input.resolved of {event.request_id}, which is not open")
        del self.asks[event.request_id]

    def _open_scope(self, event: ScopeOpened, scope_id: str) -> None:
        if scope_id in self.scopes:
            raise GrammarError(f"scope {scope_id} is open already")
        if event.parent not in self.scopes:
            raise GrammarError(f"scope {scope_id} under {event.parent}, which was never opened")
        self.scopes[scope_id] = ScopeState()

    def _turn_scope(self, event: ScopeStatusChanged, scope_id: str) -> None:
        scope = self.scopes.get(scope_id)
        if event.status is ScopeStatus.ARCHIVED and scope is None:
            return  # it has ended, perhaps many turns ago
        if scope is None or scope_id == ROOT or event.status is ScopeStatus.ARCHIVED:
            raise GrammarError(f"scope.status {event.status} of {scope_id}, which is no sub-agent's open scope")
        if event.status is ScopeStatus.ENDED:
            if scope.phase is not ScopePhase.QUIET:
                raise GrammarError(f"scope {scope_id} ended in message {scope.message_id}")
            del self.scopes[scope_id]


def _check_whole(block: OpenBlock, event: BlockEnded) -> None:
    """Law 3: the deltas of a block add up to the whole that ends it."""
    if event.torn:
        if event.kind is not BlockKind.TOOL_USE:
            raise GrammarError("only a tool_use block can be torn")
        return
    text = "".join(block.deltas)
    if event.kind in (BlockKind.TEXT, BlockKind.THINKING):
        if text != (event.text or ""):
            raise GrammarError(f"the deltas of block {event.block_id} do not add up to its text")
    elif event.kind is BlockKind.TOOL_USE:
        if event.call is None or block.call is None or event.call.call_id != block.call.call_id:
            raise GrammarError(f"block {event.block_id} ended with another call than it started with")
        if text and _parsed(text) != event.call.input:
            raise GrammarError(f"the deltas of call {event.call.call_id} do not add up to its input")


def _parsed(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise GrammarError(f"the deltas of a call are not JSON: {error}") from None


_TURN_EVENTS = frozenset((TurnStarted, TurnSuspended, TurnResumed, TurnEnded))
_BLOCK_RULES: dict[type[Event], Callable[[Grammar, ScopeState, Any, str], None]] = {
    BlockStarted: Grammar._start_block,
    BlockDelta: Grammar._grow_block,
    BlockEnded: Grammar._end_block,
}
_RULES: dict[type[Event], Callable[[Grammar, Any, str], None]] = {
    **dict.fromkeys((MessageStarted, MessageAnnotated, MessageEnded, *_BLOCK_RULES), Grammar._speak),
    ToolStatusChanged: Grammar._know_call,
    ToolOutput: Grammar._know_call,
    ToolReturned: Grammar._end_call,
    InputRequested: Grammar._open_ask,
    InputResolved: Grammar._settle_ask,
    ScopeOpened: Grammar._open_scope,
    ScopeStatusChanged: Grammar._turn_scope,
}
