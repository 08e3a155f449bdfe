"""Decodes turns from their patches and snapshots; no fact becomes an event twice."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import gateway.model as m
from adapters.blade.wire import BlockType
from gateway.ports import DecodedItem

from .call_decoder import CallDecoder
from .loops import DecodedTurn, Loops, read_usage, stop_reason_of
from .readers import PAGE_BLOCKS, meanings, number, optional_text, require_name, require_object, require_objects, text

TEXT_BLOCKS = {str(BlockType.TEXT): m.BlockKind.TEXT, str(BlockType.THINKING): m.BlockKind.THINKING}
CALL_BLOCKS = (BlockType.TOOL_USE, BlockType.TOOL_RESULT)


class TurnDecoder:
    """The turns of one chat that agents make; turns of people have no events."""

    def __init__(self, loops: Loops, calls: CallDecoder) -> None:
        self._loops = loops
        self._calls = calls
        self._patches: dict[str, Callable[[DecodedTurn, dict[str, Any]], list[DecodedItem]]] = {
            "add_content": self._content,
            "add_tool_call": self._called,
            "tool_result": self._called,
            "set_tool_status": self._called,
            "set_status": self._set_status,
        }
        self.reset()

    def reset(self) -> None:
        self._ignored: set[str] = set()
        """The turns of people, and the summaries."""
        self._summaries: set[str] = set()

    # -- beginnings and ends --------------------------------------------------------------------------------------

    def start(self, body: dict[str, Any]) -> list[DecodedItem]:
        turn_id = require_name(body.get("turn_id"), "a turn")
        if turn_id in self._ignored or self._is_ignored(turn_id, body):
            return []
        turn = self._loops.turns.get(turn_id)
        items: list[DecodedItem] = []
        if turn is None:
            turn, items = self.open(turn_id, body)
        return [*items, *self.catch_up(turn, body)]

    def _is_ignored(self, turn_id: str, body: dict[str, Any]) -> bool:
        if body.get("role") == "user" or body.get("kind") == "compaction":
            self._ignored.add(turn_id)
            return True
        return False

    def open(self, turn_id: str, body: dict[str, Any]) -> tuple[DecodedTurn, list[DecodedItem]]:
        loop, opened = self._loops.of(body)
        turn = self._loops.turns[turn_id] = DecodedTurn(turn_id, loop)
        return turn, [*opened, *self._loops.begin_message(turn, body)]

    def end(self, body: dict[str, Any]) -> list[DecodedItem]:
        """Decode what is missing of a turn from its end, and its outcome."""
        if body.get("kind") == "compaction":
            return self._compacted(body)
        items = self.start(body)
        turn = self._loops.turns.get(text(body.get("turn_id")))
        if turn is None or turn.is_over:
            return items
        turn.is_over = True
        items += self.catch_up(turn, body, final=True)
        usage, loop, status = read_usage(body), turn.loop, text(body.get("status"))
        if loop.turn_id != turn.turn_id:
            loop.late_usage += usage
            return items
        if body.get("memory_refs") and loop.assembler.writer.in_message:
            items += loop.assembler.end_texts()
            items.append(loop.assembler.writer.annotate(m.AnnotationTopic.MEMORY_REFS, body["memory_refs"]))
        outcome = meanings().outcome.get(status, m.Outcome.COMPLETED)
        stop_reason, duration = _stop_reason(turn, status, outcome), number(body.get("duration_ms"))
        return [*items, *self._loops.end_message(loop, stop_reason, usage, outcome, duration)]

    def _compacted(self, body: dict[str, Any]) -> list[DecodedItem]:
        turn_id = require_name(body.get("turn_id"), "a compaction")
        if turn_id in self._summaries:
            return []
        self._summaries.add(turn_id)
        preview = optional_text(body.get("summary_preview"))
        return [m.SessionCompacted(
            compaction_id=optional_text(body.get("compaction_id")) or turn_id,
            summary=text(body.get("summary_full")) or preview or "", preview=preview,
            archived=number(body.get("archived_count")), tokens_before=number(body.get("tokens_before")),
            tokens_after=number(body.get("tokens_after")),
            trigger=meanings().trigger.get(text(body.get("trigger")), m.CompactionTrigger.AUTO),
        )]

    # -- patches --------------------------------------------------------------------------------------------------

    def patch(self, body: dict[str, Any]) -> list[DecodedItem]:
        change = require_object(body.get("data"), "a patch")
        whole = change.get("turn") if isinstance(change.get("turn"), dict) else None
        turn_id = require_name(body.get("turn_id") or (whole or {}).get("turn_id"), "a patch")
        if turn_id in self._ignored or (whole and self._is_ignored(turn_id, whole)):
            return []
        turn, items = self._loops.turns.get(turn_id), list[DecodedItem]()
        if turn is None:
            known = self._loops.by_scope.get(text(body.get("loop_id")))
            about = whole or {"parent_fork_tool_call_id": known.fork if known else None, **body}
            turn, items = self.open(turn_id, about)
        step = self._patches.get(text(body.get("patch_type")))
        if step is not None:
            return [*items, *step(turn, change)]
        return [*items, *(self.catch_up(turn, whole) if whole is not None else [])]

    def _content(self, turn: DecodedTurn, change: dict[str, Any]) -> list[DecodedItem]:
        kind = text(change.get("type")) or str(BlockType.TEXT)
        if kind in TEXT_BLOCKS:
            return [] if turn.is_over else self._grow(turn, TEXT_BLOCKS[kind], change)
        return self._other_block(turn, kind, change)

    def _grow(self, turn: DecodedTurn, kind: m.BlockKind, change: dict[str, Any]) -> list[DecodedItem]:
        """Text by its delta; by the whole block if that shows that a delta was missed."""
        content, delta, place = change.get("content"), change.get("text_delta"), change.get("block_index")
        content = content if isinstance(content, str) else None
        delta = delta if isinstance(delta, str) else None
        before = len(content) - len(delta) if content is not None and delta is not None else 0
        if content is None or (delta is not None and before <= 0):
            is_new = turn.growing != (kind, place)
            return self._text(turn, kind, delta or "", is_new=is_new, place=place)
        if delta is None and turn.growing != (kind, place):
            return self._text(turn, kind, content, is_new=True, place=place)
        return self._text(turn, kind, content[turn.lengths[kind]:], is_new=False, place=place)

    def _text(
        self, turn: DecodedTurn, kind: m.BlockKind, delta: str, *, is_new: bool, place: Any = None
    ) -> list[DecodedItem]:
        if not delta:
            return []
        assembler, ends = turn.loop.assembler, list[DecodedItem]()
        if is_new or turn.growing is None or turn.growing[0] is not kind:
            turn.blocks += 1
            ends += assembler.end_texts()
        turn.lengths[kind] = len(delta) + (0 if is_new else turn.lengths[kind])
        turn.decoded[kind] += len(delta)
        turn.growing, turn.is_calling = (kind, place), False
        return [*ends, *assembler.text_delta((turn.turn_id, turn.blocks), delta, kind)]

    def _other_block(self, turn: DecodedTurn, kind: str, block: dict[str, Any]) -> list[DecodedItem]:
        """A block that is no text; one that only repeats a call or its result has no event."""
        turn.growing = None
        turn.pieces[kind] += 1
        call = self._loops.find_call(text(block.get("tool_call_id")))
        if call is not None and (kind in CALL_BLOCKS or PAGE_BLOCKS.get(kind) in (call.meta or {})):
            return []
        turn.is_calling = False
        about = call.made.call_id if call is not None and call.made is not None else block.get("tool_call_id")
        part = m.DataPart(type=kind, content=block.get("content"), call_id=optional_text(about))
        return [*turn.loop.assembler.data(part)]

    def _called(self, turn: DecodedTurn, change: dict[str, Any]) -> list[DecodedItem]:
        turn.growing = None
        known = next((one for one in require_objects((change.get("turn") or {}).get("tool_calls"), "tool calls")
                      if one.get("id") == (change.get("id") or change.get("tool_call_id"))), {})
        return self._calls.decode(turn, {**known, **{key: value for key, value in change.items() if value is not None}})

    def _set_status(self, turn: DecodedTurn, change: dict[str, Any]) -> list[DecodedItem]:
        """The status of a turn is known from its end."""
        turn.growing = None
        return []

    # -- snapshots ------------------------------------------------------------------------------------------------

    def catch_up(self, turn: DecodedTurn, body: dict[str, Any], *, final: bool = False) -> list[DecodedItem]:
        """Decode what a snapshot has beyond what is known: text by its place among all text of its kind."""
        items: list[DecodedItem] = []
        before, seen = Counter[m.BlockKind](), Counter[str]()
        calls = require_objects(body.get("tool_calls"), "the tool calls of a turn")
        known = {text(call.get("id")): call for call in calls}
        for block in require_objects(body.get("blocks"), "the blocks of a turn"):
            name, about = text(block.get("type")), known.get(text(block.get("tool_call_id")))
            if name in CALL_BLOCKS and about is not None:  # the block of a call that is in the list of calls
                items += self._calls.decode(turn, about, final=final)
                continue
            if name not in TEXT_BLOCKS:
                seen[name] += 1
                items += self._other_block(turn, name, block) if seen[name] > turn.pieces[name] else []
                continue
            kind, content = TEXT_BLOCKS[name], text(block.get("content"))
            had = max(0, turn.decoded[kind] - before[kind])
            before[kind] += len(content)
            items += self._text(turn, kind, content[had:], is_new=not had)
            turn.lengths[kind] = len(content)
        for call in calls:
            items += self._calls.decode(turn, call, final=final)
        # the call that started the loop may have returned, which closed the loop
        return [*self._loops.open(turn.loop), *items] if items else []


def _stop_reason(turn: DecodedTurn, status: str, outcome: m.Outcome) -> m.StopReason:
    if outcome is not m.Outcome.COMPLETED:
        return m.StopReason.ERROR if outcome is m.Outcome.FAILED else m.StopReason.INTERRUPTED
    return m.StopReason.NEEDS_INPUT if status == meanings().paused and not turn.is_calling else stop_reason_of(turn)
