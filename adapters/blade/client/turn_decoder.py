"""Decodes turns from their patches and snapshots; no fact becomes an event twice."""

from collections import Counter

import gateway.model as m
from adapters.blade.wire import BlockType
from gateway.client import cue_handlers, decodes, read_count, read_usage
from gateway.errors import BackendFailed
from gateway.json_values import JsonValue
from gateway.ports import BackendEvent, DecodedItem
from mappings.language import Bindings

from .call_decoder import CallDecoder
from .loops import DecodedTurn, Loops, stop_reason_of
from .readers import COMPACTION, PAGE_BLOCKS, outcomes, status_word, turn_reader

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

    def start(self, body: JsonValue) -> list[DecodedItem]:
        return self._started(*turn_reader().decode(body))

    def _started(self, row: str, bindings: Bindings) -> list[DecodedItem]:
        turn_id = _name_of(bindings, "a turn")
        if self._is_ignored(turn_id, row, bindings):
            return []
        turn = self._loops.turns.get(turn_id)
        items: list[DecodedItem] = []
        if turn is None:
            turn, items = self.open(turn_id, bindings)
        return [*items, *self.catch_up(turn, bindings)]

    def _is_ignored(self, turn_id: str, row: str, bindings: Bindings) -> bool:
        if bindings["role"] is m.Role.USER or row == COMPACTION:
            self._ignored.add(turn_id)
        return turn_id in self._ignored

    def open(self, turn_id: str, bindings: Bindings) -> tuple[DecodedTurn, list[DecodedItem]]:
        loop, opened = self._loops.of(bindings)
        turn = self._loops.turns[turn_id] = DecodedTurn(turn_id, loop)
        return turn, [*opened, *self._loops.begin_message(turn, bindings)]

    def end(self, body: JsonValue) -> list[DecodedItem]:
        """Decode what is missing of a turn from its end, and its outcome."""
        row, bindings = turn_reader().decode(body)
        if row == COMPACTION:
            return self._compacted(bindings)
        items = self._started(row, bindings)
        turn = self._loops.turns.get(bindings["turn_id"])
        if turn is None or turn.is_over:
            return items
        turn.is_over = True
        items += self.catch_up(turn, bindings, final=True)
        usage, loop, status = read_usage(bindings["usage"]), turn.loop, bindings["status"] or ""
        if loop.turn_id != turn.turn_id:
            loop.late_usage += usage
            return items
        if bindings["memory_refs"] and loop.assembler.writer.in_message:
            items += loop.assembler.end_texts()
            items.append(loop.assembler.writer.annotate(m.AnnotationTopic.MEMORY_REFS, bindings["memory_refs"]))
        outcome = outcomes().get(status, m.Outcome.COMPLETED)
        stop_reason, duration = _stop_reason(turn, status, outcome), read_count(bindings["duration_ms"])
        return [*items, *self._loops.end_message(loop, stop_reason, usage, outcome, duration)]

    def _compacted(self, bindings: Bindings) -> list[DecodedItem]:
        turn_id = _name_of(bindings, "a compaction")
        if turn_id in self._summaries:
            return []
        self._summaries.add(turn_id)
        return [m.SessionCompacted(
            compaction_id=bindings["compaction_id"] or turn_id,
            summary=bindings["summary"] or bindings["preview"] or "", preview=bindings["preview"],
            archived=read_count(bindings["archived"]),
            tokens_before=read_count(bindings["tokens_before"]), tokens_after=read_count(bindings["tokens_after"]),
            trigger=bindings["trigger"] or m.CompactionTrigger.AUTO,
        )]

    # -- patches --------------------------------------------------------------------------------------------------

    def patch(self, cue: str, given: Bindings) -> list[DecodedItem]:
        """A change of a turn, which may come with the whole turn; `PATCH_NAMES` are read of each."""
        turn_id, loop_id, body = given["turn_id"], given["loop_id"], given["turn"]
        turn = self._loops.turns.get(turn_id)
        if turn is not None and turn_id not in self._ignored:
            changed: list[DecodedItem] = PATCHES[cue](self, turn, body, given)
            return changed
        whole = turn_reader().decode(body) if body else None
        turn_id = _name_of({"turn_id": turn_id} if turn_id or whole is None else whole.bindings, "a patch")
        if turn_id in self._ignored or (whole is not None and self._is_ignored(turn_id, *whole)):
            return []
        turn, items = self._loops.turns.get(turn_id), list[DecodedItem]()
        if turn is None:
            known = self._loops.by_scope.get(loop_id or "")
            bindings = {"fork": known and known.fork, "loop_id": loop_id}
            turn, items = self.open(turn_id, bindings if whole is None else whole.bindings)
        return [*items, *PATCHES[cue](self, turn, body, given)]

    @decodes("patch.text")
    def text(
        self, turn: DecodedTurn, body: JsonValue, /, content: str | None, delta: str | None, index: object,
    ) -> list[DecodedItem]:
        return [] if turn.is_over else self._grow(turn, m.BlockKind.TEXT, content, delta, index)

    @decodes("patch.thinking")
    def thinking(
        self, turn: DecodedTurn, body: JsonValue, /, content: str | None, delta: str | None, index: JsonValue,
    ) -> list[DecodedItem]:
        return [] if turn.is_over else self._grow(turn, m.BlockKind.THINKING, content, delta, index)

    @decodes("patch.block")
    def block(
        self, turn: DecodedTurn, body: JsonValue, /, type: str | None, content: JsonValue, call: Bindings,
    ) -> list[DecodedItem]:
        """A block that is no text; one that only repeats a call or its result has no event."""
        kind, wire_id = type or "", call["id"]
        turn.growing = None
        turn.pieces[kind] += 1
        known = self._loops.find_call(wire_id or "")
        if known is not None and (kind in CALL_BLOCKS or PAGE_BLOCKS.get(kind) in (known.meta or {})):
            return []
        turn.is_calling = False
        about = known.made.call_id if known is not None and known.made is not None else wire_id
        return [*turn.loop.assembler.data(m.DataPart(type=kind, content=content, call_id=about))]

    @decodes("patch.call", "patch.result", "patch.call_status")
    def called(
        self, turn: DecodedTurn, body: JsonValue, /, call: Bindings, name: str | None = None, title: str | None = None,
        arguments: JsonValue = None, result: JsonValue = None, reference: object = None,
    ) -> list[DecodedItem]:
        """The change, with the other fields of the call in the turn."""
        turn.growing = None
        given = {"call": call, "name": name, "title": title, "arguments": arguments, "result": result,
                 "reference": reference}
        listed = turn_reader().read(body)["tool_calls"] if body else None
        known = next((one for one in listed or () if one["call"]["id"] == call["id"]), None)
        return self._calls.decode(turn, given if known is None else _merged(known, given))

    @decodes("patch.status")
    def status(self, turn: DecodedTurn, body: JsonValue, /) -> list[DecodedItem]:
        """The status of a turn is known from its end."""
        turn.growing = None
        return []

    @decodes("patch.other")
    def snapshot(self, turn: DecodedTurn, body: JsonValue, /) -> list[DecodedItem]:
        return self.catch_up(turn, turn_reader().read(body)) if body else []

    def _grow(
        self, turn: DecodedTurn, kind: m.BlockKind, content: str | None, delta: str | None, place: object,
    ) -> list[DecodedItem]:
        """Text by its delta; by the whole block if that shows that a delta was missed."""
        before = len(content) - len(delta) if content is not None and delta is not None else 0
        if content is None or (delta is not None and before <= 0):
            is_new = turn.growing != (kind, place)
            return self._text(turn, kind, delta or "", is_new=is_new, place=place)
        if delta is None and turn.growing != (kind, place):
            return self._text(turn, kind, content, is_new=True, place=place)
        return self._text(turn, kind, content[turn.progress(kind).length:], is_new=False, place=place)

    def _text(
        self, turn: DecodedTurn, kind: m.BlockKind, delta: str, *, is_new: bool, place: object = None
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

    # -- snapshots ------------------------------------------------------------------------------------------------

    def catch_up(self, turn: DecodedTurn, bindings: Bindings, *, final: bool = False) -> list[DecodedItem]:
        """Decode what a snapshot has beyond what is known: text by its place among all text of its kind."""
        items: list[DecodedItem] = []
        before, seen = Counter[m.BlockKind](), Counter[str]()
        calls = bindings["tool_calls"] or ()
        known = {call["call"]["id"]: call for call in calls}
        for block in bindings["blocks"] or ():
            name, about = block["type"] or "", known.get(block["call"]["id"])
            if name in CALL_BLOCKS and about is not None:  # the block of a call that is in the list of calls
                items += self._calls.decode(turn, about, final=final)
                continue
            if name not in TEXT_BLOCKS:
                seen[name] += 1
                items += self.block(turn, None, **block) if seen[name] > turn.pieces[name] else []
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


PATCHES = cue_handlers(TurnDecoder)
PATCH_NAMES = ("turn_id", "loop_id", "turn")


def _name_of(bindings: Bindings, what: str) -> str:
    if not bindings["turn_id"]:
        raise BackendFailed(f"the server sent {what} without a name")
    name: str = bindings["turn_id"]
    return name


def _merged(known: Bindings, given: Bindings) -> Bindings:
    """The known fields of a call, replaced by those of a patch."""
    return {**known, **{name: value for name, value in given.items() if value is not None},
            "call": {**known["call"], **{name: value for name, value in given["call"].items() if value is not None}}}


def _stop_reason(turn: DecodedTurn, status: str, outcome: m.Outcome) -> m.StopReason:
    if outcome is not m.Outcome.COMPLETED:
        return m.StopReason.ERROR if outcome is m.Outcome.FAILED else m.StopReason.INTERRUPTED
    is_paused = status == status_word(m.SessionStatus.SUSPENDED, "session_status@turn") and not turn.is_calling
    return m.StopReason.NEEDS_INPUT if is_paused else stop_reason_of(turn)
