"""Turns being told: opened, grown, patched and closed; what to say of each change, as cues for the table."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import gateway.model as m
from adapters.blade.asks import is_ask_call
from adapters.blade.wire import BlockType

from .turn_state import (
    Loop,
    QuestionReference,
    TurnBlock,
    TurnCall,
    TurnEntry,
    TurnStatus,
    data_block,
    make_loop,
    meta_blocks,
    page_meta,
    wire_call_id,
)

NO_NAMES: dict[str, Any] = {}
FORK_TOOL = "Agent"
"""The tool that brings sub-agents about."""


class Cue(NamedTuple):
    """Something to say; `seq` is the record it is about where that is an earlier one."""

    name: str
    turn: TurnEntry | None = None
    names: dict[str, Any] = NO_NAMES
    seq: int = 0


Cues = Iterator[Cue]


class TurnProjection:
    """The turns of one session; each cue is to be said before the next is asked for."""

    def __init__(self) -> None:
        self.entries = 0
        self.resumed = False
        """Whether somebody listens to a chat just now."""
        self.last_words = ""
        self.has_failed_tool = False
        """Whether the last thing the agent had was the error of a tool."""
        self._loops: dict[str, Loop] = {m.ROOT: Loop()}
        self._turns: dict[str, TurnEntry] = {}
        self._callers: dict[str, TurnEntry] = {}
        self._calls: dict[str, TurnCall] = {}
        self._holding: list[TurnEntry] = []
        self._places: list[int] = []
        """Where in the log each turn of the conversation stands."""

    def _forget(self) -> None:
        """The turn of the house is over, and with it all that could still change."""
        self._turns, self._callers, self._calls, self._loops = {}, {}, {}, {m.ROOT: Loop()}

    # -- words held back ------------------------------------------------------------------------------------------

    def _due(self, now: float) -> Cues:
        """Words that are due by then, the oldest first."""
        for turn in sorted((turn for turn in self._holding if turn.due <= now), key=lambda turn: turn.due):
            turn.stalls += not turn.is_worth_a_pause
            yield from self._words(turn)

    def _words(self, turn: TurnEntry) -> Cues:
        """The words held back, in a patch."""
        if not turn.held:
            return
        self._holding.remove(turn)
        words, block = turn.release(), turn.growing
        assert block is not None
        turn.patches += 1
        names = {"content": block.content, "delta": words, "index": len(turn.blocks) - 1}
        yield Cue(f"patch.{block.type}", turn, names, turn.held_seq)

    def _patch(self, cue: str, turn: TurnEntry, **names: Any) -> Cues:
        """Anything else that happens to a turn; words that come after it are a block of their own."""
        turn.growing = None
        turn.patches += 1
        yield Cue(cue, turn, names)

    # -- turns ----------------------------------------------------------------------------------------------------

    def _entry(self, key: str, record: m.Record, role: m.Role, scope_id: str | None = None) -> TurnEntry:
        scope_id = scope_id or record.scope_id
        loop = self._loops.get(scope_id) or Loop()
        turn = TurnEntry(key, self.entries, loop, scope_id, role, record.at, record.seq)
        self.entries += 1
        self._places.append(record.seq)
        return turn

    def _whole(self, turn: TurnEntry, blocks: list[TurnBlock]) -> Cues:
        """A turn that is over as soon as it is there."""
        turn.blocks, turn.state, turn.closed = blocks, m.Outcome.COMPLETED, True
        yield Cue("turn.opened", turn)
        yield from self._end(turn)

    def _message(self, record: m.Record, event: m.MessageStarted) -> Cues:
        for turn in list(self._turns.values()):  # the agent goes on: what was cancelled did not end the turn
            if turn.scope_id == record.scope_id and not turn.closed and not turn.waiting and turn.message_outcome:
                yield from self._close(turn, turn.message_outcome, record)
        self.has_failed_tool = False
        turn = self._entry(event.message_id, record, event.role)
        turn.model, turn.context_window = event.model, event.context_window or turn.context_window
        self._turns[event.message_id] = turn
        yield Cue("turn.opened", turn)

    def _annotated(self, record: m.Record, event: m.MessageAnnotated) -> Cues:
        if event.topic is m.AnnotationTopic.MEMORY_REFS and (turn := self._turns.get(event.message_id)):
            turn.memory_refs = event.content
        return iter(())

    def _spoken(self, record: m.Record, event: m.MessageEnded) -> Cues:
        turn = self._turns[event.message_id]
        turn.usage, turn.duration_ms, turn.message_outcome = event.usage, event.duration_ms, event.outcome
        if not turn.waiting:
            yield from self._close(turn, event.outcome, record)

    def _close(self, turn: TurnEntry, state: TurnStatus, record: m.Record) -> Cues:
        yield from self._words(turn)
        turn.state, turn.closed = state, True
        turn.duration_ms = turn.duration_ms or round((record.at - turn.started_at) * 1000)
        turn.loop.last_words = turn.text or turn.loop.last_words
        if turn.scope_id == m.ROOT and turn.text:
            self.last_words = turn.text
        yield from self._end(turn)

    def _end(self, turn: TurnEntry) -> Cues:
        turn.ended_at = turn.patches
        yield Cue("turn.closed", turn)

    def _end_again(self, turn: TurnEntry) -> Cues:
        """A turn that waited for a person changes after its end: for those who look at ends only, it ends once more."""
        if turn.closed and turn.patches > turn.ended_at:
            yield from self._end(turn)

    def _complete(self, turn: TurnEntry) -> Cues:
        """All that a turn waited for has come."""
        turn.state = m.Outcome.COMPLETED
        yield from self._patch("patch.status", turn)
        yield from self._end_again(turn)

    # -- blocks ---------------------------------------------------------------------------------------------------

    def _delta(self, record: m.Record, event: m.BlockDelta) -> Cues:
        if event.kind is not m.BlockKind.TOOL_USE and event.delta:
            yield from self._grow(self._turns[event.message_id], event.kind, event.delta, record)

    def _grow(self, turn: TurnEntry, kind: m.BlockKind, words: str, record: m.Record) -> Cues:
        if turn.growing is not None and turn.growing.type != kind:
            yield from self._words(turn)
        if not turn.held:
            self._holding.append(turn)
        turn.hold(kind, words, record.seq, record.at)
        if turn.is_much or turn.due <= record.at:
            yield from self._words(turn)

    def _block(self, record: m.Record, event: m.BlockEnded) -> Cues:
        turn = self._turns[event.message_id]
        if event.image is not None:
            yield from self._grow(turn, m.BlockKind.TEXT, m.image_markdown(event.image), record)
        yield from self._words(turn)
        if event.data is not None:
            about = self._calls.get(event.data.call_id or "")
            yield from self._piece(turn, data_block(event.data.type, event.data.content, about))
        if event.call is not None and not event.torn:
            yield from self._make(turn, event.call.call_id, self._call(event.call, record.scope_id))

    def _call(self, made: m.ToolCall, scope_id: str) -> TurnCall:
        """A call that puts questions to a person waits for them from the start."""
        call = TurnCall(wire_call_id(made.call_id), made.name, made.display_name, made.input)
        if is_ask_call(made):
            call.status, call.loop = m.ToolStatus.AWAITING_INPUT, self._child(scope_id)
        return call

    def _child(self, scope_id: str) -> Loop | None:
        """The loop of a sub-agent; the agent itself has no need to be named."""
        return self._loops.get(scope_id) if scope_id != m.ROOT else None

    def _piece(self, turn: TurnEntry, block: TurnBlock) -> Cues:
        yield from self._words(turn)
        turn.add(block)
        turn.patches += 1
        yield Cue("patch.block", turn, {"block": block, "index": len(turn.blocks) - 1})

    # -- sub-agents -----------------------------------------------------------------------------------------------

    def _forked(self, record: m.Record, event: m.ScopeOpened) -> Cues:
        """A sub-agent's turns stand below a call: the one that brought it about or, if there is none, one made here."""
        loop = self._loops[record.scope_id] = make_loop(record.scope_id, event.parent, event.call_id, event.title)
        if loop.call_id in self._calls:
            return
        turn = next((turn for turn in reversed(self._turns.values())
                     if turn.scope_id == event.parent and not turn.closed), None)
        if turn is None:
            turn = self._turns[record.scope_id] = self._entry(record.scope_id, record, m.Role.ASSISTANT, event.parent)
            turn.message_outcome = m.Outcome.COMPLETED
            yield Cue("turn.opened", turn)
        about = {"description": event.title or event.agent or "sub-agent"}
        yield from self._make(
            turn, loop.call_id, TurnCall(wire_call_id(loop.call_id), FORK_TOOL, input=about, is_synthetic=True)
        )

    def _scope_status(self, record: m.Record, event: m.ScopeStatusChanged) -> Cues:
        """The call that was made for a sub-agent comes back when it and those it called have done their work."""
        scope_id, loop = record.scope_id, self._loops.get(record.scope_id)
        if loop is None or event.status is not m.ScopeStatus.ENDED:
            return
        loop.ended = event.stop_reason or m.StopReason.END_TURN
        while loop is not None and loop.ended and all(
            other.ended for other in self._loops.values() if other.parent == scope_id and other.loop_id != m.ROOT
        ):
            yield from self._come_back(loop, loop.ended, record)
            scope_id, loop = loop.parent, self._loops.get(loop.parent)

    def _come_back(self, loop: Loop, stop_reason: m.StopReason, record: m.Record) -> Cues:
        call = self._calls.get(loop.call_id)
        if call is None or not call.is_synthetic or call.over:
            return
        if stop_reason is m.StopReason.INTERRUPTED:
            yield from self._set(loop.call_id, m.ToolStatus.CANCELLED)
        is_error = stop_reason is m.StopReason.ERROR
        yield from self._returned(record, m.ToolReturned(
            call_id=loop.call_id, content=loop.last_words, is_error=is_error))

    # -- calls ----------------------------------------------------------------------------------------------------

    def _make(self, turn: TurnEntry, key: str, call: TurnCall) -> Cues:
        yield from self._words(turn)
        turn.calls[key] = self._calls[key] = call
        self._callers[key] = turn
        yield from self._about_call("patch.call", turn, call, BlockType.TOOL_USE)

    def _about_call(self, cue: str, turn: TurnEntry, call: TurnCall, place: BlockType) -> Cues:
        """A call that is made, or its result; it has its place among the words, of which no patch of its own tells."""
        turn.blocks.append(TurnBlock(place, call, call))
        turn.size += 2 * call.size
        yield from self._patch(cue, turn, call=call)

    def _status(self, record: m.Record, event: m.ToolStatusChanged) -> Cues:
        """That a call waits for a person is told by what it asks."""
        if event.status in (m.ToolStatus.PENDING, m.ToolStatus.RUNNING):
            yield from self._set(event.call_id, m.ToolStatus.PENDING)
        elif event.status is m.ToolStatus.CANCELLED:
            yield from self._set(event.call_id, event.status)

    def _set(self, key: str, status: m.ToolStatus, reference: QuestionReference | None = None) -> Cues:
        call, turn = self._calls.get(key), self._callers.get(key)
        if call is None or turn is None or call.status is status:
            return
        if call.status is m.ToolStatus.AWAITING_INPUT and call.reference is None and status is m.ToolStatus.PENDING:
            return  # a call that is itself the question
        yield from self._words(turn)
        call.status, call.reference = status, reference
        yield from self._patch("patch.call_status", turn, call=call)

    def _returned(self, record: m.Record, event: m.ToolReturned) -> Cues:
        call, turn = self._calls.get(event.call_id), self._callers.get(event.call_id)
        if call is None or turn is None:
            return
        yield from self._words(turn)
        call.over = True
        if call.status is not m.ToolStatus.CANCELLED:
            self.has_failed_tool = event.is_error
            call.status, call.reference = m.ToolStatus.ERROR if event.is_error else m.ToolStatus.DONE, None
            call.content, call.meta, call.duration_ms = event.content, page_meta(event.meta), event.duration_ms
            yield from self._about_call("patch.result", turn, call, BlockType.TOOL_RESULT)
            for block in meta_blocks(call):
                yield from self._piece(turn, block)
        yield from self._settle(turn, record)

    def _settle(self, turn: TurnEntry, record: m.Record) -> Cues:
        """When all its calls have come back a turn is over; why they were cancelled is told by what follows."""
        if turn.message_outcome is None or turn.waiting:
            return
        if not turn.closed and not turn.was_cancelled:
            yield from self._close(turn, turn.message_outcome, record)
        elif turn.closed and turn.state is m.SessionStatus.SUSPENDED and self.resumed:
            yield from self._complete(turn)
