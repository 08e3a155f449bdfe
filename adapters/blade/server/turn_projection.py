"""Projects turns: what opens them, lets them grow, patches and closes them; each change is a cue for the table."""

from collections.abc import Mapping
from typing import Protocol

import gateway.model as m
from adapters.blade.asks import is_ask_call
from adapters.blade.wire import BlockType

from .turn_state import (
    Loop,
    OpenTurns,
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

NO_NAMES: Mapping[str, object] = {}
FORK_TOOL = "Agent"
"""The tool that starts sub-agents."""


class CueWriter(Protocol):
    """Takes the cues of a session, in their order."""

    def write(
        self, cue: str, turn: TurnEntry | None = None, names: Mapping[str, object] = NO_NAMES, seq: int = 0,
    ) -> None:
        """Write a cue at once, because its turn changes later; `seq` is its record, if that is an earlier one."""


class TurnProjection:
    """The turns of one session."""

    def __init__(self, open_turns: OpenTurns, writer: CueWriter) -> None:
        self._open = open_turns
        self._writer = writer

    # -- text held back -------------------------------------------------------------------------------------------

    def flush(self, now: float) -> None:
        """Write the text that is due by then, the oldest first."""
        due = [turn for turn in self._open.holding if turn.due <= now]
        for turn in sorted(due, key=lambda turn: turn.due) if len(due) > 1 else due:
            turn.stalls += not turn.is_worth_a_pause
            self._release(turn)

    def _release(self, turn: TurnEntry) -> None:
        """Write the text that a turn holds back, in a patch."""
        if not turn.held:
            return
        self._open.holding.remove(turn)
        text, block = turn.release(), turn.growing
        assert block is not None
        turn.patches += 1
        names = {"content": block.content, "delta": text, "index": len(turn.blocks) - 1}
        self._writer.write(f"patch.{block.type}", turn, names, turn.held_seq)

    def patch(self, cue: str, turn: TurnEntry, **names: object) -> None:
        """Write a change that is no text; text that follows is a block of its own."""
        turn.growing = None
        turn.patches += 1
        self._writer.write(cue, turn, names)

    # -- turns ----------------------------------------------------------------------------------------------------

    def make_entry(self, key: str, record: m.Record, role: m.Role, scope_id: str | None = None) -> TurnEntry:
        scope_id = scope_id or record.scope_id
        loop = self._open.loops.get(scope_id) or Loop()
        turn = TurnEntry(key, self._open.entries, loop, scope_id, role, record.at, record.seq)
        self._open.entries += 1
        self._open.positions.append(record.seq)
        return turn

    def open_entry(self, key: str, record: m.Record, scope_id: str | None = None) -> TurnEntry:
        """Open a turn of the agent that has no message: it is there for a call that is made here."""
        turn = self._open.turns[key] = self.make_entry(key, record, m.Role.ASSISTANT, scope_id)
        turn.message_outcome = m.Outcome.COMPLETED
        self._writer.write("turn.opened", turn)
        return turn

    def write_whole(self, turn: TurnEntry, blocks: list[TurnBlock]) -> None:
        """Write a turn that has all its blocks from the start."""
        turn.blocks, turn.state, turn.closed = blocks, m.Outcome.COMPLETED, True
        self._writer.write("turn.opened", turn)
        self._end(turn)

    def message_started(self, record: m.Record, event: m.MessageStarted) -> None:
        for turn in list(self._open.turns.values()):  # the agent goes on, so the cancelled calls did not end its turn
            if turn.scope_id == record.scope_id and not turn.closed and turn.message_outcome and not turn.is_waiting:
                self.close(turn, turn.message_outcome, record)
        self._open.has_failed_tool = False
        turn = self.make_entry(event.message_id, record, event.role)
        turn.model, turn.context_window = event.model, event.context_window or turn.context_window
        self._open.turns[event.message_id] = turn
        self._writer.write("turn.opened", turn)

    def message_annotated(self, record: m.Record, event: m.MessageAnnotated) -> None:
        if event.topic is m.AnnotationTopic.MEMORY_REFS and (turn := self._open.turns.get(event.message_id)):
            turn.memory_refs = event.content

    def message_ended(self, record: m.Record, event: m.MessageEnded) -> None:
        turn = self._open.turns[event.message_id]
        turn.usage, turn.duration_ms, turn.message_outcome = event.usage, event.duration_ms, event.outcome
        if not turn.is_waiting:
            self.close(turn, event.outcome, record)

    def close(self, turn: TurnEntry, state: TurnStatus, record: m.Record) -> None:
        self._release(turn)
        turn.state, turn.closed = state, True
        turn.duration_ms = turn.duration_ms or round((record.at - turn.started_at) * 1000)
        if text := turn.text:
            turn.loop.last_text = text
            if turn.scope_id == m.ROOT:
                self._open.last_text = text
        self._end(turn)

    def _end(self, turn: TurnEntry) -> None:
        turn.ended_at = turn.patches
        self._writer.write("turn.closed", turn)

    def end_again(self, turn: TurnEntry) -> None:
        """Write a second `turn:end` if a turn has changed since its first, for clients that look at ends only."""
        if turn.closed and turn.patches > turn.ended_at:
            self._end(turn)

    def complete(self, turn: TurnEntry) -> None:
        """Close a suspended turn, because all its calls have returned."""
        turn.state = m.Outcome.COMPLETED
        self.patch("patch.status", turn)
        self.end_again(turn)

    # -- blocks ---------------------------------------------------------------------------------------------------

    def delta(self, record: m.Record, event: m.BlockDelta) -> None:
        if event.kind is not m.BlockKind.TOOL_USE and event.delta:
            self._grow(self._open.turns[event.message_id], event.kind, event.delta, record)

    def _grow(self, turn: TurnEntry, kind: m.BlockKind, text: str, record: m.Record) -> None:
        if turn.growing is not None and turn.growing.type != kind:
            self._release(turn)
        if not turn.held:
            self._open.holding.append(turn)
        turn.hold(kind, text, record.seq, record.at)
        if turn.is_much or turn.due <= record.at:
            self._release(turn)

    def block_ended(self, record: m.Record, event: m.BlockEnded) -> None:
        turn = self._open.turns[event.message_id]
        if event.image is not None:
            self._grow(turn, m.BlockKind.TEXT, m.image_markdown(event.image), record)
        self._release(turn)
        if event.data is not None:
            about = self._open.calls.get(event.data.call_id or "")
            self._add_block(turn, data_block(event.data.type, event.data.content, about))
        if event.call is not None and not event.torn:
            self.add_call(turn, event.call.call_id, self._make_call(event.call, record.scope_id))

    def _make_call(self, made: m.ToolCall, scope_id: str) -> TurnCall:
        """A call that asks a person waits for the answer from the start."""
        call = TurnCall(wire_call_id(made.call_id), made.name, made.display_name, made.input)
        if is_ask_call(made):
            call.status, call.loop = m.ToolStatus.AWAITING_INPUT, self.child_loop(scope_id)
        return call

    def child_loop(self, scope_id: str) -> Loop | None:
        """The loop of a sub-agent; None for the agent itself."""
        return self._open.loops.get(scope_id) if scope_id != m.ROOT else None

    def _add_block(self, turn: TurnEntry, block: TurnBlock) -> None:
        self._release(turn)
        turn.add(block)
        turn.patches += 1
        self._writer.write("patch.block", turn, {"block": block, "index": len(turn.blocks) - 1})

    # -- sub-agents -----------------------------------------------------------------------------------------------

    def scope_opened(self, record: m.Record, event: m.ScopeOpened) -> None:
        """The turns of a sub-agent are below a call: the one that started it or, if there is none, one made here."""
        loop = make_loop(record.scope_id, event.parent, event.call_id, event.title)
        self._open.loops[record.scope_id] = loop
        if loop.call_id in self._open.calls:
            return
        turn = next((turn for turn in reversed(self._open.turns.values())
                     if turn.scope_id == event.parent and not turn.closed), None)
        if turn is None:
            turn = self.open_entry(record.scope_id, record, event.parent)
        about = {"description": event.title or event.agent or "sub-agent"}
        call = TurnCall(wire_call_id(loop.call_id), FORK_TOOL, input=about, is_synthetic=True)
        self.add_call(turn, loop.call_id, call)

    def scope_status_changed(self, record: m.Record, event: m.ScopeStatusChanged) -> None:
        """The call that was made for a sub-agent returns when the sub-agent and those that it called have ended."""
        scope_id, loop = record.scope_id, self._open.loops.get(record.scope_id)
        if loop is None or event.status is not m.ScopeStatus.ENDED:
            return
        loop.ended = event.stop_reason or m.StopReason.END_TURN
        while loop is not None and loop.ended and self._children_ended(scope_id):
            self._return_synthetic(loop, loop.ended, record)
            scope_id, loop = loop.parent, self._open.loops.get(loop.parent)

    def _children_ended(self, scope_id: str) -> bool:
        return all(
            loop.ended for loop in self._open.loops.values() if loop.parent == scope_id and loop.loop_id != m.ROOT
        )

    def _return_synthetic(self, loop: Loop, stop_reason: m.StopReason, record: m.Record) -> None:
        call = self._open.calls.get(loop.call_id)
        if call is None or not call.is_synthetic or call.over:
            return
        if stop_reason is m.StopReason.INTERRUPTED:
            self.set_call_status(loop.call_id, m.ToolStatus.CANCELLED)
        is_error = stop_reason is m.StopReason.ERROR
        self.returned(record, m.ToolReturned(call_id=loop.call_id, content=loop.last_text, is_error=is_error))

    # -- calls ----------------------------------------------------------------------------------------------------

    def add_call(self, turn: TurnEntry, key: str, call: TurnCall) -> None:
        self._release(turn)
        turn.calls[key] = self._open.calls[key] = call
        self._open.callers[key] = turn
        self.patch_call("patch.call", turn, call, BlockType.TOOL_USE)

    def patch_call(self, cue: str, turn: TurnEntry, call: TurnCall, kind: BlockType) -> None:
        """Write a call or its result; it also has a block in the turn, for which there is no patch of its own."""
        turn.blocks.append(TurnBlock(kind, call, call))
        turn.size += 2 * call.size
        self.patch(cue, turn, call=call)

    def tool_status_changed(self, record: m.Record, event: m.ToolStatusChanged) -> None:
        """A call that waits for a person is written with its ask."""
        if event.status in (m.ToolStatus.PENDING, m.ToolStatus.RUNNING):
            self.set_call_status(event.call_id, m.ToolStatus.PENDING)
        elif event.status is m.ToolStatus.CANCELLED:
            self.set_call_status(event.call_id, event.status)

    def set_call_status(self, key: str, status: m.ToolStatus, reference: QuestionReference | None = None) -> None:
        call, turn = self._open.calls.get(key), self._open.callers.get(key)
        if call is None or turn is None or call.status is status:
            return
        if call.status is m.ToolStatus.AWAITING_INPUT and call.reference is None and status is m.ToolStatus.PENDING:
            return  # the call is itself the question
        self._release(turn)
        call.status, call.reference = status, reference
        self.patch("patch.call_status", turn, call=call)

    def returned(self, record: m.Record, event: m.ToolReturned) -> None:
        call, turn = self._open.calls.get(event.call_id), self._open.callers.get(event.call_id)
        if call is None or turn is None:
            return
        self._release(turn)
        call.over = True
        if call.status is not m.ToolStatus.CANCELLED:
            self._open.has_failed_tool = event.is_error
            call.status, call.reference = m.ToolStatus.ERROR if event.is_error else m.ToolStatus.DONE, None
            call.content, call.meta, call.duration_ms = event.content, page_meta(event.meta), event.duration_ms
            self.patch_call("patch.result", turn, call, BlockType.TOOL_RESULT)
            for block in meta_blocks(call):
                self._add_block(turn, block)
        self._settle(turn, record)

    def _settle(self, turn: TurnEntry, record: m.Record) -> None:
        """Close a turn whose calls have all returned; why calls were cancelled is known from a later record."""
        if turn.message_outcome is None or turn.is_waiting:
            return
        if not turn.closed and not turn.was_cancelled:
            self.close(turn, turn.message_outcome, record)
        elif turn.closed and turn.state is m.SessionStatus.SUSPENDED and self._open.is_running:
            self.complete(turn)
