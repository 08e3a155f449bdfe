"""The events that close a stream correctly when a backend fails, is interrupted, or leaves blocks open."""

from collections.abc import Iterator

from .enums import ROOT, BlockKind, Outcome, Resolution, ScopeStatus, StopReason, ToolStatus
from .events import (
    AnyEvent,
    BlockEnded,
    InputResolved,
    MessageEnded,
    ScopeStatusChanged,
    ToolReturned,
    ToolStatusChanged,
)
from .grammar import Grammar, OpenBlock, ScopePhase


def missing_ends(grammar: Grammar, outcome: Outcome, stop_reason: StopReason) -> Iterator[tuple[str, AnyEvent]]:
    """(scope, event) pairs that close all that is open, innermost first; say each before taking the next."""
    yield from message_ends(grammar, outcome, stop_reason)
    for request_id, call_id in list(grammar.asks.items()):
        yield ROOT, InputResolved(request_id=request_id, resolution=Resolution.CANCELLED, call_id=call_id)
    for call_id, open_call in list(grammar.calls.items()):
        yield open_call.scope_id, ToolStatusChanged(call_id=call_id, status=ToolStatus.CANCELLED)
        yield open_call.scope_id, ToolReturned(
            call_id=call_id, origin=open_call.call.origin, is_error=True, content=_RESULT_TEXTS[outcome],
        )
    for scope_id in reversed([scope_id for scope_id in grammar.scopes if scope_id != ROOT]):
        yield scope_id, ScopeStatusChanged(status=ScopeStatus.ENDED, stop_reason=stop_reason)


def message_ends(grammar: Grammar, outcome: Outcome, stop_reason: StopReason) -> Iterator[tuple[str, AnyEvent]]:
    """The ends of open blocks and messages, sub-agents first."""
    for scope_id in reversed(list(grammar.scopes)):
        scope = grammar.scopes[scope_id]
        if scope.block is not None:
            yield scope_id, _block_end(scope.block)
        if scope.phase is not ScopePhase.QUIET:
            yield scope_id, MessageEnded(message_id=scope.message_id, outcome=outcome, stop_reason=stop_reason)


def _block_end(block: OpenBlock) -> BlockEnded:
    text = "".join(block.deltas) if block.kind in (BlockKind.TEXT, BlockKind.THINKING) else None
    return BlockEnded(
        block_id=block.block_id, message_id=block.message_id, kind=block.kind, text=text, call=block.call,
        torn=block.kind is BlockKind.TOOL_USE,
    )


_RESULT_TEXTS = {
    Outcome.COMPLETED: "The agent ended its turn without waiting for this call.",
    Outcome.FAILED: "The turn failed before this call was done.",
    Outcome.INTERRUPTED: "The turn was interrupted before this call was done.",
}
