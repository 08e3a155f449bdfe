"""Turns heard: from their patches, and from the whole of them wherever that is told; nothing is said twice."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from gateway.model import BlockKind, DataPart, Outcome, SessionCompacted, StopReason, Topic, Trigger
from gateway.upstream import Heard

from .hearing_calls import Calls
from .hearing_results import PAGE
from .hearing_voices import HeardTurn, stop_of, usage_of
from .hearing_words import a_name, an_object, number, objects_of, optional_text, text, words
from .wire import BlockType

WORDS = {str(BlockType.TEXT): BlockKind.TEXT, str(BlockType.THINKING): BlockKind.THINKING}
CALLS = (BlockType.TOOL_USE, BlockType.TOOL_RESULT)


class Turns(Calls):
    """The turns of one chat; what people say is not among them."""

    def _forget(self) -> None:
        super()._forget()
        self._unheard: set[str] = set()
        """The turns of people, and those that sum others up."""
        self._summaries: set[str] = set()

    # -- beginnings and ends --------------------------------------------------------------------------------------

    def _start(self, body: dict[str, Any]) -> list[Heard]:
        turn_id = a_name(body.get("turn_id"), "a turn")
        if turn_id in self._unheard or self._is_unheard(turn_id, body):
            return []
        turn = self._turns.get(turn_id)
        said: list[Heard] = []
        if turn is None:
            turn, said = self._new(turn_id, body)
        return [*said, *self._catch_up(turn, body)]

    def _is_unheard(self, turn_id: str, body: dict[str, Any]) -> bool:
        if body.get("role") == "user" or body.get("kind") == "compaction":
            self._unheard.add(turn_id)
            return True
        return False

    def _new(self, turn_id: str, body: dict[str, Any]) -> tuple[HeardTurn, list[Heard]]:
        voice, opened = self._heed(body)
        turn = self._turns[turn_id] = HeardTurn(turn_id, voice)
        return turn, [*opened, *self._begin(turn, body)]

    def _end(self, body: dict[str, Any]) -> list[Heard]:
        """A turn as it is in the end: what is missing of it is told, and how it came out."""
        if body.get("kind") == "compaction":
            return self._summed_up(body)
        said = self._start(body)
        turn = self._turns.get(text(body.get("turn_id")))
        if turn is None or turn.is_over:
            return said
        turn.is_over = True
        said += self._catch_up(turn, body, final=True)
        usage, voice, status = usage_of(body), turn.voice, text(body.get("status"))
        if voice.turn_id != turn.turn_id:
            voice.owed += usage
            return said
        if body.get("memory_refs") and voice.scribe.pen.in_message:
            said += voice.scribe.end_words()
            said.append(voice.scribe.pen.annotate(Topic.MEMORY_REFS, body["memory_refs"]))
        outcome = words().outcome.get(status, Outcome.COMPLETED)
        stop_reason, duration = _stop(turn, status, outcome), number(body.get("duration_ms"))
        return [*said, *self._finish(voice, stop_reason, usage, outcome, duration)]

    def _summed_up(self, body: dict[str, Any]) -> list[Heard]:
        turn_id = a_name(body.get("turn_id"), "a compaction")
        if turn_id in self._summaries:
            return []
        self._summaries.add(turn_id)
        preview = optional_text(body.get("summary_preview"))
        return [SessionCompacted(
            compaction_id=optional_text(body.get("compaction_id")) or turn_id,
            summary=text(body.get("summary_full")) or preview or "", preview=preview,
            archived=number(body.get("archived_count")), tokens_before=number(body.get("tokens_before")),
            tokens_after=number(body.get("tokens_after")),
            trigger=words().trigger.get(text(body.get("trigger")), Trigger.AUTO),
        )]

    # -- patches --------------------------------------------------------------------------------------------------

    def _patch(self, body: dict[str, Any]) -> list[Heard]:
        change = an_object(body.get("data"), "a patch")
        whole = change.get("turn") if isinstance(change.get("turn"), dict) else None
        turn_id = a_name(body.get("turn_id") or (whole or {}).get("turn_id"), "a patch")
        if turn_id in self._unheard or (whole and self._is_unheard(turn_id, whole)):
            return []
        turn, said = self._turns.get(turn_id), list[Heard]()
        if turn is None:
            known = self._voices.get(text(body.get("loop_id")))
            about = whole or {"parent_fork_tool_call_id": known.fork if known else None, **body}
            turn, said = self._new(turn_id, about)
        step = _PATCHES.get(text(body.get("patch_type")))
        if step is not None:
            return [*said, *step(self, turn, change)]
        return [*said, *(self._catch_up(turn, whole) if whole is not None else [])]

    def _content(self, turn: HeardTurn, change: dict[str, Any]) -> list[Heard]:
        kind = text(change.get("type")) or str(BlockType.TEXT)
        if kind in WORDS:
            return [] if turn.is_over else self._grown(turn, WORDS[kind], change)
        return self._piece(turn, kind, change)

    def _grown(self, turn: HeardTurn, kind: BlockKind, change: dict[str, Any]) -> list[Heard]:
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

    def _words(self, turn: HeardTurn, kind: BlockKind, said: str, *, is_new: bool, place: Any = None) -> list[Heard]:
        if not said:
            return []
        scribe, ends = turn.voice.scribe, list[Heard]()
        if is_new or turn.growing is None or turn.growing[0] is not kind:
            turn.blocks += 1
            ends += scribe.end_words()
        turn.lengths[kind] = len(said) + (0 if is_new else turn.lengths[kind])
        turn.told[kind] += len(said)
        turn.growing, turn.is_calling = (kind, place), False
        return [*ends, *scribe.words((turn.turn_id, turn.blocks), said, kind)]

    def _piece(self, turn: HeardTurn, kind: str, block: dict[str, Any]) -> list[Heard]:
        """Anything but words; what only repeats a call or its result says nothing new."""
        turn.growing = None
        turn.pieces[kind] += 1
        call = self._call_by_id(text(block.get("tool_call_id")))
        if call is not None and (kind in CALLS or PAGE.get(kind) in (call.meta or {})):
            return []
        turn.is_calling = False
        about = call.made.call_id if call is not None and call.made is not None else block.get("tool_call_id")
        part = DataPart(type=kind, content=block.get("content"), call_id=optional_text(about))
        return [*turn.voice.scribe.data(part)]

    def _called(self, turn: HeardTurn, change: dict[str, Any]) -> list[Heard]:
        turn.growing = None
        known = next((one for one in objects_of((change.get("turn") or {}).get("tool_calls"), "tool calls")
                      if one.get("id") == (change.get("id") or change.get("tool_call_id"))), {})
        return self._told(turn, {**known, **{key: value for key, value in change.items() if value is not None}})

    def _set_status(self, turn: HeardTurn, change: dict[str, Any]) -> list[Heard]:
        """How a turn is going is told by its end."""
        turn.growing = None
        return []

    # -- the whole ------------------------------------------------------------------------------------------------

    def _catch_up(self, turn: HeardTurn, body: dict[str, Any], *, final: bool = False) -> list[Heard]:
        """What a whole turn has beyond what was told: words by their place among all words of their kind."""
        said: list[Heard] = []
        before, seen = Counter[BlockKind](), Counter[str]()
        calls = objects_of(body.get("tool_calls"), "the tool calls of a turn")
        known = {text(call.get("id")): call for call in calls}
        for block in objects_of(body.get("blocks"), "the blocks of a turn"):
            name, about = text(block.get("type")), known.get(text(block.get("tool_call_id")))
            if name in CALLS and about is not None:  # the place of a call, which is listed
                said += self._told(turn, about, final=final)
                continue
            if name not in WORDS:
                seen[name] += 1
                said += self._piece(turn, name, block) if seen[name] > turn.pieces[name] else []
                continue
            kind, content = WORDS[name], text(block.get("content"))
            had = max(0, turn.told[kind] - before[kind])
            before[kind] += len(content)
            said += self._words(turn, kind, content[had:], is_new=not had)
            turn.lengths[kind] = len(content)
        for call in calls:
            said += self._told(turn, call, final=final)
        return [*self._open(turn.voice), *said] if said else []  # its caller may have been told first to be done


def _stop(turn: HeardTurn, status: str, outcome: Outcome) -> StopReason:
    if outcome is not Outcome.COMPLETED:
        return StopReason.ERROR if outcome is Outcome.FAILED else StopReason.INTERRUPTED
    return StopReason.NEEDS_INPUT if status == words().paused and not turn.is_calling else stop_of(turn)


_PATCHES: dict[str, Callable[[Turns, HeardTurn, dict[str, Any]], list[Heard]]] = {
    "add_content": Turns._content,
    "add_tool_call": Turns._called,
    "tool_result": Turns._called,
    "set_tool_status": Turns._called,
    "set_status": Turns._set_status,
}
