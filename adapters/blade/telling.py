"""Turns being told: opened, grown, patched and closed; what to say of each change, as cues for the table."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from gateway.model import (
    ROOT,
    BlockDelta,
    BlockEnded,
    BlockKind,
    MessageAnnotated,
    MessageEnded,
    MessageStarted,
    Outcome,
    Record,
    Role,
    SessionStatus,
    ToolCall,
    ToolReturned,
    ToolStatus,
    ToolStatusChanged,
    Topic,
    in_markdown,
)

from .asking import asks_itself
from .pieces import data_block, meta_blocks
from .turns import Block, Call, Loop, Reference, Turn, TurnState, call_id_of

NOTHING: dict[str, Any] = {}


class Cue(NamedTuple):
    """Something to say; `seq` is the record it is about where that is an earlier one."""

    name: str
    turn: Turn | None = None
    names: dict[str, Any] = NOTHING
    seq: int = 0


Cues = Iterator[Cue]


class Telling:
    """The turns of one session; each cue is to be said before the next is asked for."""

    def __init__(self) -> None:
        self.entries = 0
        self.resumed = False
        """Whether somebody listens to a chat just now."""
        self.last_words = ""
        self._loops: dict[str, Loop] = {ROOT: Loop()}
        self._turns: dict[str, Turn] = {}
        self._callers: dict[str, Turn] = {}
        self._calls: dict[str, Call] = {}
        self._holding: list[Turn] = []

    def _forget(self) -> None:
        """The turn of the house is over, and with it all that could still change."""
        self._turns, self._callers, self._calls, self._loops = {}, {}, {}, {ROOT: Loop()}

    # -- words held back ------------------------------------------------------------------------------------------

    def _due(self, now: float) -> Cues:
        """Words that are due by then, the oldest first."""
        for turn in sorted((turn for turn in self._holding if turn.due <= now), key=lambda turn: turn.due):
            turn.stalls += not turn.is_worth_a_pause
            yield from self._words(turn)

    def _words(self, turn: Turn) -> Cues:
        """The words held back, in a patch."""
        if not turn.held:
            return
        self._holding.remove(turn)
        words, block = turn.release(), turn.growing
        assert block is not None
        turn.patches += 1
        names = {"content": block.content, "delta": words, "index": len(turn.blocks) - 1}
        yield Cue(f"patch.{block.type}", turn, names, turn.held_seq)

    def _patch(self, cue: str, turn: Turn, **names: Any) -> Cues:
        """Anything else that happens to a turn; words that come after it are a block of their own."""
        turn.growing = None
        turn.patches += 1
        yield Cue(cue, turn, names)

    # -- turns ----------------------------------------------------------------------------------------------------

    def _entry(self, key: str, record: Record, role: Role) -> Turn:
        loop = self._loops.get(record.scope_id) or Loop()
        turn = Turn(key, self.entries, loop, record.scope_id, role, record.at, record.seq)
        self.entries += 1
        return turn

    def _whole(self, turn: Turn, blocks: list[Block]) -> Cues:
        """A turn that is over as soon as it is there."""
        turn.blocks, turn.state, turn.closed = blocks, Outcome.COMPLETED, True
        yield Cue("turn.opened", turn)
        yield Cue("turn.closed", turn)

    def _message(self, record: Record, event: MessageStarted) -> Cues:
        for turn in list(self._turns.values()):  # the agent goes on: what was cancelled did not end the turn
            if turn.scope_id == record.scope_id and not turn.closed and not turn.waiting and turn.spoken:
                yield from self._close(turn, turn.spoken, record)
        turn = self._entry(event.message_id, record, event.role)
        turn.model, turn.context_window = event.model, event.context_window or turn.context_window
        self._turns[event.message_id] = turn
        yield Cue("turn.opened", turn)

    def _annotated(self, record: Record, event: MessageAnnotated) -> Cues:
        if event.topic is Topic.MEMORY_REFS and (turn := self._turns.get(event.message_id)):
            turn.memory_refs = event.content
        return iter(())

    def _spoken(self, record: Record, event: MessageEnded) -> Cues:
        turn = self._turns[event.message_id]
        turn.usage, turn.duration_ms, turn.spoken = event.usage, event.duration_ms, event.outcome
        if not turn.waiting:
            yield from self._close(turn, event.outcome, record)

    def _close(self, turn: Turn, state: TurnState, record: Record) -> Cues:
        yield from self._words(turn)
        turn.state, turn.closed = state, True
        turn.duration_ms = turn.duration_ms or round((record.at - turn.started_at) * 1000)
        if turn.scope_id == ROOT and turn.text:
            self.last_words = turn.text
        yield Cue("turn.closed", turn)

    # -- blocks ---------------------------------------------------------------------------------------------------

    def _delta(self, record: Record, event: BlockDelta) -> Cues:
        if event.kind is not BlockKind.TOOL_USE and event.delta:
            yield from self._grow(self._turns[event.message_id], event.kind, event.delta, record)

    def _grow(self, turn: Turn, kind: BlockKind, words: str, record: Record) -> Cues:
        if turn.growing is not None and turn.growing.type != kind:
            yield from self._words(turn)
        if not turn.held:
            self._holding.append(turn)
        turn.hold(kind, words, record.seq, record.at)
        if turn.is_much or turn.due <= record.at:
            yield from self._words(turn)

    def _block(self, record: Record, event: BlockEnded) -> Cues:
        turn = self._turns[event.message_id]
        if event.image is not None:
            yield from self._grow(turn, BlockKind.TEXT, in_markdown(event.image), record)
        yield from self._words(turn)
        if event.data is not None:
            about = self._calls.get(event.data.call_id or "")
            yield from self._piece(turn, data_block(event.data.type, event.data.content, about))
        if event.call is not None and not event.torn:
            yield from self._make(turn, event.call.call_id, self._call(event.call, record.scope_id))

    def _call(self, made: ToolCall, scope_id: str) -> Call:
        """A call that puts questions to a person waits for them from the start."""
        call = Call(call_id_of(made.call_id), made.name, made.display_name, made.input)
        if asks_itself(made):
            call.status, call.loop = ToolStatus.AWAITING_INPUT, self._child(scope_id)
        return call

    def _child(self, scope_id: str) -> Loop | None:
        """The loop of a sub-agent; the agent itself has no need to be named."""
        return self._loops.get(scope_id) if scope_id != ROOT else None

    def _piece(self, turn: Turn, block: Block) -> Cues:
        yield from self._words(turn)
        turn.add(block)
        turn.patches += 1
        yield Cue("patch.block", turn, {"block": block, "index": len(turn.blocks) - 1})

    # -- calls ----------------------------------------------------------------------------------------------------

    def _make(self, turn: Turn, key: str, call: Call) -> Cues:
        yield from self._words(turn)
        turn.calls[key] = self._calls[key] = call
        turn.size += call.size
        self._callers[key] = turn
        yield from self._patch("patch.call", turn, call=call)

    def _status(self, record: Record, event: ToolStatusChanged) -> Cues:
        """That a call waits for a person is told by what it asks."""
        if event.status in (ToolStatus.PENDING, ToolStatus.RUNNING):
            yield from self._set(event.call_id, ToolStatus.PENDING)
        elif event.status is ToolStatus.CANCELLED:
            yield from self._set(event.call_id, event.status)

    def _set(self, key: str, status: ToolStatus, reference: Reference | None = None) -> Cues:
        call, turn = self._calls.get(key), self._callers.get(key)
        if call is None or turn is None or call.status is status:
            return
        if call.status is ToolStatus.AWAITING_INPUT and call.reference is None and status is ToolStatus.PENDING:
            return  # a call that is itself the question
        yield from self._words(turn)
        call.status, call.reference = status, reference
        yield from self._patch("patch.call_status", turn, call=call)

    def _returned(self, record: Record, event: ToolReturned) -> Cues:
        call, turn = self._calls.get(event.call_id), self._callers.get(event.call_id)
        if call is None or turn is None:
            return
        yield from self._words(turn)
        call.over = True
        if call.status is not ToolStatus.CANCELLED:
            call.status, call.reference = ToolStatus.ERROR if event.is_error else ToolStatus.DONE, None
            call.content, call.meta, call.duration_ms = event.content, event.meta, event.duration_ms
            turn.size += call.size
            yield from self._patch("patch.result", turn, call=call)
            for block in meta_blocks(call):
                yield from self._piece(turn, block)
        yield from self._settle(turn, record)

    def _settle(self, turn: Turn, record: Record) -> Cues:
        """When all its calls have come back a turn is over; why they were cancelled is told by what follows."""
        if turn.spoken is None or turn.waiting:
            return
        if not turn.closed and not turn.was_cancelled:
            yield from self._close(turn, turn.spoken, record)
        elif turn.closed and turn.state is SessionStatus.SUSPENDED and self.resumed:
            turn.state = Outcome.COMPLETED
            yield from self._patch("patch.status", turn)
