"""Turns heard: from their patches, and from the whole of them wherever that is told; nothing is said twice."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import gateway.model as m
from adapters.blade.wire import BlockType
from gateway.ports import DecodedItem

from .call_decoder import CallDecoder
from .loops import DecodedTurn, read_usage, stop_reason_of
from .readers import PAGE_BLOCKS, meanings, number, optional_text, require_name, require_object, require_objects, text

TEXT_BLOCKS = {str(BlockType.TEXT): m.BlockKind.TEXT, str(BlockType.THINKING): m.BlockKind.THINKING}
CALL_BLOCKS = (BlockType.TOOL_USE, BlockType.TOOL_RESULT)


class TurnDecoder(CallDecoder):
    """The turns of one chat; what people say is not among them."""

    def _forget(self) -> None:
        super()._forget()
        self._unheard: set[str] = set()
        """The turns of people, and those that sum others up."""
        self._summaries: set[str] = set()

    # -- beginnings and ends --------------------------------------------------------------------------------------

    def _start(self, body: dict[str, Any]) -> list[DecodedItem]:
        turn_id = require_name(body.get("turn_id"), "a turn")
        if turn_id in self._unheard or self._is_unheard(turn_id, body):
            return []
        turn = self._turns.get(turn_id)
        said: list[DecodedItem] = []
        if turn is None:
            turn, said = self._new(turn_id, body)
        return [*said, *self._catch_up(turn, body)]

    def _is_unheard(self, turn_id: str, body: dict[str, Any]) -> bool:
        if body.get("role") == "user" or body.get("kind") == "compaction":
            self._unheard.add(turn_id)
            return True
        return False

    def _new(self, turn_id: str, body: dict[str, Any]) -> tuple[DecodedTurn, list[DecodedItem]]:
        voice, opened = self._heed(body)
        turn = self._turns[turn_id] = DecodedTurn(turn_id, voice)
        return turn, [*opened, *self._begin(turn, body)]

    def _end(self, body: dict[str, Any]) -> list[DecodedItem]:
        """A turn as it is in the end: what is missing of it is told, and how it came out."""
        if body.get("kind") == "compaction":
            return self._summed_up(body)
        said = self._start(body)
        turn = self._turns.get(text(body.get("turn_id")))
        if turn is None or turn.is_over:
            return said
        turn.is_over = True
        said += self._catch_up(turn, body, final=True)
        usage, voice, status = read_usage(body), turn.voice, text(body.get("status"))
        if voice.turn_id != turn.turn_id:
            voice.owed += usage
            return said
        if body.get("memory_refs") and voice.assembler.writer.in_message:
            said += voice.assembler.end_texts()
            said.append(voice.assembler.writer.annotate(m.AnnotationTopic.MEMORY_REFS, body["memory_refs"]))
        outcome = meanings().outcome.get(status, m.Outcome.COMPLETED)
        stop_reason, duration = _stop_reason(turn, status, outcome), number(body.get("duration_ms"))
        return [*said, *self._finish(voice, stop_reason, usage, outcome, duration)]

    def _summed_up(self, body: dict[str, Any]) -> list[DecodedItem]:
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

    def _patch(self, body: dict[str, Any]) -> list[DecodedItem]:
        change = require_object(body.get("data"), "a patch")
        whole = change.get("turn") if isinstance(change.get("turn"), dict) else None
        turn_id = require_name(body.get("turn_id") or (whole or {}).get("turn_id"), "a patch")
        if turn_id in self._unheard or (whole and self._is_unheard(turn_id, whole)):
            return []
        turn, said = self._turns.get(turn_id), list[DecodedItem]()
        if turn is None:
            known = self._voices.get(text(body.get("loop_id")))
            about = whole or {"parent_fork_tool_call_id": known.fork if known else None, **body}
            turn, said = self._new(turn_id, about)
        step = _PATCHES.get(text(body.get("patch_type")))
        if step is not None:
            return [*said, *step(self, turn, change)]
        return [*said, *(self._catch_up(turn, whole) if whole is not None else [])]

    def _content(self, turn: DecodedTurn, change: dict[str, Any]) -> list[DecodedItem]:
        kind = text(change.get("type")) or str(BlockType.TEXT)
        if kind in TEXT_BLOCKS:
            return [] if turn.is_over else self._grown(turn, TEXT_BLOCKS[kind], change)
        return self._piece(turn, kind, change)

    def _grown(self, turn: DecodedTurn, kind: m.BlockKind, change: dict[str, Any]) -> list[DecodedItem]:
        """Words by what is new of them; by the whole block where that shows that something was missed."""
        content, delta, place = change.get("content"), change.get("text_delta"), change.get("block_index")
        content = content if isinstance(content, str) else None
        delta = delta if isinstance(delta, str) else None
        before = len(content) - len(delta) if content is not None and delta is not None else 0
        if content is None or (delta is not None and before <= 0):
            is_new = turn.growing != (kind, place)
            return self._words(turn, kind, delta or "", is_new=is_new, place=place)
        if delta is None and turn.growing != (kind, place):
            return self._words(turn, kind, content, is_new=True, place=place)
        return self._words(turn, kind, content[turn.lengths[kind]:], is_new=False, place=place)

    def _words(
        self, turn: DecodedTurn, kind: m.BlockKind, said: str, *, is_new: bool, place: Any = None
    ) -> list[DecodedItem]:
        if not said:
            return []
        scribe, ends = turn.voice.assembler, list[DecodedItem]()
        if is_new or turn.growing is None or turn.growing[0] is not kind:
            turn.blocks += 1
            ends += scribe.end_texts()
        turn.lengths[kind] = len(said) + (0 if is_new else turn.lengths[kind])
        turn.told[kind] += len(said)
        turn.growing, turn.is_calling = (kind, place), False
        return [*ends, *scribe.text_delta((turn.turn_id, turn.blocks), said, kind)]

    def _piece(self, turn: DecodedTurn, kind: str, block: dict[str, Any]) -> list[DecodedItem]:
        """Anything but words; what only repeats a call or its result says nothing new."""
        turn.growing = None
        turn.pieces[kind] += 1
        call = self._call_by_id(text(block.get("tool_call_id")))
        if call is not None and (kind in CALL_BLOCKS or PAGE_BLOCKS.get(kind) in (call.meta or {})):
            return []
        turn.is_calling = False
        about = call.made.call_id if call is not None and call.made is not None else block.get("tool_call_id")
        part = m.DataPart(type=kind, content=block.get("content"), call_id=optional_text(about))
        return [*turn.voice.assembler.data(part)]

    def _called(self, turn: DecodedTurn, change: dict[str, Any]) -> list[DecodedItem]:
        turn.growing = None
        known = next((one for one in require_objects((change.get("turn") or {}).get("tool_calls"), "tool calls")
                      if one.get("id") == (change.get("id") or change.get("tool_call_id"))), {})
        return self._told(turn, {**known, **{key: value for key, value in change.items() if value is not None}})

    def _set_status(self, turn: DecodedTurn, change: dict[str, Any]) -> list[DecodedItem]:
        """How a turn is going is told by its end."""
        turn.growing = None
        return []

    # -- the whole ------------------------------------------------------------------------------------------------

    def _catch_up(self, turn: DecodedTurn, body: dict[str, Any], *, final: bool = False) -> list[DecodedItem]:
        """What a whole turn has beyond what was told: words by their place among all words of their kind."""
        said: list[DecodedItem] = []
        before, seen = Counter[m.BlockKind](), Counter[str]()
        calls = require_objects(body.get("tool_calls"), "the tool calls of a turn")
        known = {text(call.get("id")): call for call in calls}
        for block in require_objects(body.get("blocks"), "the blocks of a turn"):
            name, about = text(block.get("type")), known.get(text(block.get("tool_call_id")))
            if name in CALL_BLOCKS and about is not None:  # the place of a call, which is listed
                said += self._told(turn, about, final=final)
                continue
            if name not in TEXT_BLOCKS:
                seen[name] += 1
                said += self._piece(turn, name, block) if seen[name] > turn.pieces[name] else []
                continue
            kind, content = TEXT_BLOCKS[name], text(block.get("content"))
            had = max(0, turn.told[kind] - before[kind])
            before[kind] += len(content)
            said += self._words(turn, kind, content[had:], is_new=not had)
            turn.lengths[kind] = len(content)
        for call in calls:
            said += self._told(turn, call, final=final)
        return [*self._open(turn.voice), *said] if said else []  # its caller may have been told first to be done


def _stop_reason(turn: DecodedTurn, status: str, outcome: m.Outcome) -> m.StopReason:
    if outcome is not m.Outcome.COMPLETED:
        return m.StopReason.ERROR if outcome is m.Outcome.FAILED else m.StopReason.INTERRUPTED
    return m.StopReason.NEEDS_INPUT if status == meanings().paused and not turn.is_calling else stop_reason_of(turn)


_PATCHES: dict[str, Callable[[TurnDecoder, DecodedTurn, dict[str, Any]], list[DecodedItem]]] = {
    "add_content": TurnDecoder._content,
    "add_tool_call": TurnDecoder._called,
    "tool_result": TurnDecoder._called,
    "set_tool_status": TurnDecoder._called,
    "set_status": TurnDecoder._set_status,
}
