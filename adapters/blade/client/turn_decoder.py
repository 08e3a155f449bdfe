"""Decodes turns from their patches and snapshots; no fact becomes an event twice."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import gateway.model as m
from adapters.blade.wire import BlockType
from gateway.errors import BackendFailed
from gateway.ports import BackendEvent, DecodedItem

from .call_decoder import CallDecoder
from .loops import DecodedTurn, Loops, stop_reason_of
from .readers import COMPACTION, PAGE_BLOCKS, Bindings, meanings, number, read_usage, rows

TEXT_BLOCKS = {str(BlockType.TEXT): m.BlockKind.TEXT, str(BlockType.THINKING): m.BlockKind.THINKING}
CALL_BLOCKS = (BlockType.TOOL_USE, BlockType.TOOL_RESULT)


class TurnDecoder:
    """The turns of one chat that agents make; turns of people have no events."""

    def __init__(self, loops: Loops, calls: CallDecoder) -> None:
        self._loops = loops
        self._calls = calls
        self.reset()

    def reset(self) -> None:
        self._ignored: set[str] = set()
        """The turns of people, and the summaries."""
        self._summaries: set[str] = set()

    # -- beginnings and ends --------------------------------------------------------------------------------------

    def start(self, given: Bindings) -> list[DecodedItem]:
        row, told = rows().turn.decode(given["turn"])
        return self._started(row, told)

    def _started(self, row: str, told: Bindings) -> list[DecodedItem]:
        turn_id = _name_of(told, "a turn")
        if self._is_ignored(turn_id, row, told):
            return []
        turn = self._loops.turns.get(turn_id)
        items: list[DecodedItem] = []
        if turn is None:
            turn, items = self.open(turn_id, told)
        return [*items, *self.catch_up(turn, told)]

    def _is_ignored(self, turn_id: str, row: str, told: Bindings) -> bool:
        if told["role"] is m.Role.USER or row == COMPACTION:
            self._ignored.add(turn_id)
        return turn_id in self._ignored

    def open(self, turn_id: str, told: Bindings) -> tuple[DecodedTurn, list[DecodedItem]]:
        loop, opened = self._loops.of(told)
        turn = self._loops.turns[turn_id] = DecodedTurn(turn_id, loop)
        return turn, [*opened, *self._loops.begin_message(turn, told)]

    def end(self, given: Bindings) -> list[DecodedItem]:
        """Decode what is missing of a turn from its end, and its outcome."""
        row, told = rows().turn.decode(given["turn"])
        if row == COMPACTION:
            return self._compacted(told)
        items = self._started(row, told)
        turn = self._loops.turns.get(told["turn_id"])
        if turn is None or turn.is_over:
            return items
        turn.is_over = True
        items += self.catch_up(turn, told, final=True)
        usage, loop, status = read_usage(told["usage"]), turn.loop, told["status"] or ""
        if loop.turn_id != turn.turn_id:
            loop.late_usage += usage
            return items
        if told["memory_refs"] and loop.assembler.writer.in_message:
            items += loop.assembler.end_texts()
            items.append(loop.assembler.writer.annotate(m.AnnotationTopic.MEMORY_REFS, told["memory_refs"]))
        outcome = meanings().outcome.get(status, m.Outcome.COMPLETED)
        stop_reason, duration = _stop_reason(turn, status, outcome), number(told["duration_ms"])
        return [*items, *self._loops.end_message(loop, stop_reason, usage, outcome, duration)]

    def _compacted(self, told: Bindings) -> list[DecodedItem]:
        turn_id = _name_of(told, "a compaction")
        if turn_id in self._summaries:
            return []
        self._summaries.add(turn_id)
        trigger = told["trigger"]
        return [m.SessionCompacted(
            compaction_id=told["compaction_id"] or turn_id, summary=told["summary"] or told["preview"] or "",
            preview=told["preview"], archived=number(told["archived"]), tokens_before=number(told["tokens_before"]),
            tokens_after=number(told["tokens_after"]),
            trigger=trigger if isinstance(trigger, m.CompactionTrigger) else m.CompactionTrigger.AUTO,
        )]

    # -- patches --------------------------------------------------------------------------------------------------

    def patch(self, cue: str, given: Bindings) -> list[DecodedItem]:
        turn_id = given["turn_id"]
        turn = self._loops.turns.get(turn_id)
        if turn is not None and turn_id not in self._ignored:
            return PATCHES[cue](self, turn, given)
        whole = rows().turn.decode(given["turn"]) if given["turn"] else None
        turn_id = _name_of(given if turn_id or whole is None else whole.bindings, "a patch")
        if turn_id in self._ignored or (whole is not None and self._is_ignored(turn_id, *whole)):
            return []
        turn, items = self._loops.turns.get(turn_id), list[DecodedItem]()
        if turn is None:
            known = self._loops.by_scope.get(given["loop_id"] or "")
            told = {"fork": known and known.fork, "loop_id": given["loop_id"]}
            turn, items = self.open(turn_id, told if whole is None else whole.bindings)
        return [*items, *PATCHES[cue](self, turn, given)]

    def text(self, turn: DecodedTurn, given: Bindings) -> list[DecodedItem]:
        return [] if turn.is_over else self._grow(turn, m.BlockKind.TEXT, given)

    def thinking(self, turn: DecodedTurn, given: Bindings) -> list[DecodedItem]:
        return [] if turn.is_over else self._grow(turn, m.BlockKind.THINKING, given)

    def block(self, turn: DecodedTurn, given: Bindings) -> list[DecodedItem]:
        return self._other_block(turn, given)

    def called(self, turn: DecodedTurn, given: Bindings) -> list[DecodedItem]:
        """The change, and what else the turn tells of the call."""
        turn.growing = None
        listed = rows().turn.read(given["turn"])["tool_calls"] if given["turn"] else None
        known = next((call for call in listed or () if call["call"]["id"] == given["call"]["id"]), None)
        return self._calls.decode(turn, given if known is None else _merged(known, given))

    def status(self, turn: DecodedTurn, given: Bindings) -> list[DecodedItem]:
        """The status of a turn is known from its end."""
        turn.growing = None
        return []

    def snapshot(self, turn: DecodedTurn, given: Bindings) -> list[DecodedItem]:
        return self.catch_up(turn, rows().turn.read(given["turn"])) if given["turn"] else []

    def _grow(self, turn: DecodedTurn, kind: m.BlockKind, given: Bindings) -> list[DecodedItem]:
        """Text by its delta; by the whole block if that shows that a delta was missed."""
        content, delta, place = given["content"], given["delta"], given["index"]
        before = len(content) - len(delta) if content is not None and delta is not None else 0
        if content is None or (delta is not None and before <= 0):
            is_new = turn.growing != (kind, place)
            return self._text(turn, kind, delta or "", is_new=is_new, place=place)
        if delta is None and turn.growing != (kind, place):
            return self._text(turn, kind, content, is_new=True, place=place)
        return self._text(turn, kind, content[turn.progress(kind).length:], is_new=False, place=place)

    def _text(
        self, turn: DecodedTurn, kind: m.BlockKind, delta: str, *, is_new: bool, place: Any = None
    ) -> list[DecodedItem]:
        if not delta:
            return []
        assembler, progress, ends = turn.loop.assembler, turn.progress(kind), list[BackendEvent]()
        if is_new or turn.growing is None or turn.growing[0] is not kind:
            turn.blocks += 1
            ends = assembler.end_texts()
        progress.length = len(delta) + (0 if is_new else progress.length)
        progress.decoded += len(delta)
        turn.growing, turn.is_calling = (kind, place), False
        return [*ends, *assembler.text_delta((turn.turn_id, turn.blocks), delta, kind)]

    def _other_block(self, turn: DecodedTurn, given: Bindings) -> list[DecodedItem]:
        """A block that is no text; one that only repeats a call or its result has no event."""
        kind, wire_id = given["type"] or "", given["call"]["id"]
        turn.growing = None
        turn.pieces[kind] += 1
        call = self._loops.find_call(wire_id or "")
        if call is not None and (kind in CALL_BLOCKS or PAGE_BLOCKS.get(kind) in (call.meta or {})):
            return []
        turn.is_calling = False
        about = call.made.call_id if call is not None and call.made is not None else wire_id
        return [*turn.loop.assembler.data(m.DataPart(type=kind, content=given["content"], call_id=about))]

    # -- snapshots ------------------------------------------------------------------------------------------------

    def catch_up(self, turn: DecodedTurn, told: Bindings, *, final: bool = False) -> list[DecodedItem]:
        """Decode what a snapshot has beyond what is known: text by its place among all text of its kind."""
        items: list[DecodedItem] = []
        before, seen = Counter[m.BlockKind](), Counter[str]()
        calls = told["tool_calls"] or ()
        known = {call["call"]["id"]: call for call in calls}
        for block in told["blocks"] or ():
            name, about = block["type"] or "", known.get(block["call"]["id"])
            if name in CALL_BLOCKS and about is not None:  # the block of a call that is in the list of calls
                items += self._calls.decode(turn, about, final=final)
                continue
            if name not in TEXT_BLOCKS:
                seen[name] += 1
                items += self._other_block(turn, block) if seen[name] > turn.pieces[name] else []
                continue
            kind, content = TEXT_BLOCKS[name], block["content"] if isinstance(block["content"], str) else ""
            had = max(0, turn.progress(kind).decoded - before[kind])
            before[kind] += len(content)
            items += self._text(turn, kind, content[had:], is_new=not had)
            turn.progress(kind).length = len(content)
        for call in calls:
            items += self._calls.decode(turn, call, final=final)
        # the call that started the loop may have returned, which closed the loop
        return [*self._loops.open(turn.loop), *items] if items else []


PATCHES: dict[str, Callable[[TurnDecoder, DecodedTurn, Bindings], list[DecodedItem]]] = {
    "patch.text": TurnDecoder.text,
    "patch.thinking": TurnDecoder.thinking,
    "patch.block": TurnDecoder.block,
    "patch.call": TurnDecoder.called,
    "patch.result": TurnDecoder.called,
    "patch.call_status": TurnDecoder.called,
    "patch.status": TurnDecoder.status,
    "patch.other": TurnDecoder.snapshot,
}
"""What is done with each cue that changes a turn."""


def _name_of(told: Bindings, what: str) -> str:
    if not told["turn_id"]:
        raise BackendFailed(f"the server sent {what} without a name")
    name: str = told["turn_id"]
    return name


def _merged(known: Bindings, given: Bindings) -> Bindings:
    """What a patch tells of a call, and for the rest what is known of it."""
    return {**known, **{name: value for name, value in given.items() if value is not None},
            "call": {**known["call"], **{name: value for name, value in given["call"].items() if value is not None}}}


def _stop_reason(turn: DecodedTurn, status: str, outcome: m.Outcome) -> m.StopReason:
    if outcome is not m.Outcome.COMPLETED:
        return m.StopReason.ERROR if outcome is m.Outcome.FAILED else m.StopReason.INTERRUPTED
    return m.StopReason.NEEDS_INPUT if status == meanings().paused and not turn.is_calling else stop_reason_of(turn)
