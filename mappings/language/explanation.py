"""A table in words: for each event, what goes out in the dialect and what comes back when that is read.

What is lost on the way is marked: frames that are not read, with the reason that the table gives; events of which
nothing is sent, with the table's own comment or note; fields and words that do not come back.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import orjson

import gateway.model as m
from gateway.ports import Framing

from .binding_reader import WirePath, dotted
from .expressions import Constant, Node, Object, Slot, slots
from .filters import ANY_OTHER
from .frame_decoder import Spelling
from .parsed_table import FrameTemplate, ParsedTable
from .row_notes import EVENTS, RowNotes
from .scopes import EVENT_CUES, MODEL_ENUMS
from .spellings import SpellingCompiler
from .value_types import NOUNS, Need, ValueType

_PLAIN_TEXT = re.compile(r"[\w.:/ -]*\w", re.ASCII)
ANY_TYPE = ValueType().name
VARIANT_FIELDS = frozenset(("kind", "origin"))
"""Fields that only name the variant of an event, which the cue names already."""


class Loss(StrEnum):
    """How much of what happened comes back."""

    NONE = "✓"
    PART = "~"
    ALL = "✗"


@dataclass(frozen=True)
class ExplainedFrame:
    """One frame: how it goes out, and what is known when it is read."""

    out: str
    back: tuple[str, ...]
    loss: Loss


@dataclass(frozen=True)
class ExplainedCue:
    """One row of the table: the frames of a cue, or why there are none."""

    cue: str
    frames: tuple[ExplainedFrame, ...]
    note: str = ""


@dataclass(frozen=True)
class ExplainedEvent:
    """A canonical event, and the rows that say it; where the dialect's code says it by cues, their names."""

    name: str
    rows: tuple[ExplainedCue, ...]
    by_cues: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Explanation:
    events: tuple[ExplainedEvent, ...]
    cues: tuple[ExplainedCue, ...]
    """Rows of cues that the dialect's own code raises."""

    @property
    def names(self) -> list[str]:
        """What can be asked for: events, rows of events, and cues."""
        rows = [row.cue for event in self.events for row in event.rows]
        return list(dict.fromkeys([*(event.name for event in self.events), *rows, *(row.cue for row in self.cues)]))

    def about(self, name: str) -> "Explanation":
        """Only the event, the row or the cue of this name; of an event that cues say, with these cues."""
        events = tuple(event for event in self.events if event.name == name)
        if not events:
            found = ((event, tuple(row for row in event.rows if row.cue == name)) for event in self.events)
            events = tuple(ExplainedEvent(event.name, rows) for event, rows in found if rows)
        wanted = {name, *(cue for event in events for cue in event.by_cues)}
        return Explanation(events, tuple(row for row in self.cues if row.cue in wanted))


class Explainer:
    """Explains one table."""

    def __init__(
        self, draft: ParsedTable, spellings: SpellingCompiler, meanings: Mapping[str, Mapping[str, StrEnum]],
        notes: RowNotes, framings: tuple[Framing, ...],
    ) -> None:
        self._draft, self._meanings, self._notes = draft, meanings, notes
        self._by_wire: dict[str, list[Spelling]] = {}
        for rows in spellings.forms(framings).values():
            for wire, found in rows.items():
                known = self._by_wire.setdefault(wire, [])
                known += [spelling for spelling in found if spelling not in known]

    def explain(self) -> Explanation:
        events = tuple(self._event(event) for event in m.EVENTS)
        own = [cue for cue in self._draft.frames if cue not in EVENT_CUES]
        return Explanation(events, tuple(self._row(cue) for cue in own))

    def _event(self, event: type[m.Event]) -> ExplainedEvent:
        by_cue = self._draft.shape.events
        names = [event.name, *(f"{event.name}.{variant}" for variant in event.variants)]
        spelled = [name for name in names if name in self._draft.frames]
        cues = tuple(dict.fromkeys(cue for name in names for cue in by_cue.get(name, ())))
        note = "" if spelled else self._notes.note(event.name, EVENTS)
        return ExplainedEvent(event.name, tuple(map(self._row, spelled)), cues, note)

    # -- one row ------------------------------------------------------------------------------------------------------

    def _row(self, cue: str) -> ExplainedCue:
        frames = tuple(self._frame(cue, frame) for frame in self._draft.frames[cue])
        return ExplainedCue(cue, frames, self._notes.note(cue))

    def _frame(self, cue: str, frame: FrameTemplate) -> ExplainedFrame:
        out = f"{frame.wire}: {spell(frame.body)}"
        rows = self._by_wire.get(frame.wire, [])
        if frame.write_only:
            others = list(dict.fromkeys(row.cue for row in rows if row.cue != cue and _may_be(row, frame.body)))
            read_as = (f"it is read as {' or '.join(others)}",) if others else ()
            return ExplainedFrame(out, (f"not read as {cue}: {frame.write_only}", *read_as), Loss.ALL)
        own = next((row for row in rows if row.cue == cue), None)
        if frame.read_only:
            details = (f"{cue}, from {out}", f"of: {frame.read_only}", *_bindings(own))
            return ExplainedFrame("nothing", details, Loss.NONE)
        lost = [*self._lost_fields(cue, rows), *self._lost_words(frame.body), *_taken_for_others(cue, frame, rows)]
        back = (cue, *_bindings(own)) if own else ()
        also = [f"also read: {one.wire}: {spell(one.body)}" for one in frame.also]
        return ExplainedFrame(out, tuple(dict.fromkeys([*back, *also, *lost])), Loss.PART if lost else Loss.NONE)

    def _lost_fields(self, cue: str, rows: Sequence[Spelling]) -> Iterator[str]:
        """Fields of the event that no place of the frame has."""
        if cue not in EVENT_CUES:
            return
        event, variant = EVENT_CUES[cue]
        bound = {reader.name for row in rows if row.cue == cue for reader in row.readers}
        constants = VARIANT_FIELDS if variant else frozenset()
        if lost := [name for name in event.__struct_fields__ if name not in bound and name not in constants]:
            yield f"without {', '.join(lost)}"

    def _lost_words(self, body: Node) -> Iterator[str]:
        """Members of enums that share a word, and come back as another member."""
        for name in dict.fromkeys(name for slot, _ in slots(body) for name in slot.filters if name in self._meanings):
            words = self._draft.shape.enums[name]
            changed: dict[str, list[str]] = {}
            for member in MODEL_ENUMS[name.partition("@")[0]]:
                read = self._meanings[name].get(str(words.get(member, words.get(ANY_OTHER))), member)
                if read != member:
                    changed.setdefault(str(read), []).append(str(member))
            yield from (f"{', '.join(members)} read as {read}" for read, members in changed.items())


def _may_be(row: Spelling, body: Node) -> bool:
    """Whether a frame with this body may be read as the row: no constant of the row is another one in the body."""
    return all(not isinstance(node := _node_at(body, path), Constant) or node.value == value
               for path, value in row.constants.items())


def _taken_for_others(cue: str, frame: FrameTemplate, rows: Sequence[Spelling]) -> Iterator[str]:
    """Other rows that the frame is read as, if a value of it is the constant of the other row."""
    for row in rows:
        for path, value in row.constants.items() if row.cue != cue else ():
            if isinstance(_node_at(frame.body, path), Slot):
                yield f"read as {row.cue} where {dotted(path)} is {value}"


def _node_at(body: Node, path: WirePath) -> Node | None:
    """The node of a body at a path of its frame, whatever the envelope puts before the body."""
    for start in range(len(path)):
        node: Node | None = body
        for key in path[start:]:
            node = dict(node.items).get(str(key)) if isinstance(node, Object) else None
        if node is not None:
            return node
    return None


def _bindings(spelling: Spelling | None) -> list[str]:
    readers = () if spelling is None else spelling.readers
    return [_binding(reader.key, reader.sources[0].type, reader.need) for reader in readers]


def _binding(key: str, kind: str, need: Need) -> str:
    must = {Need.REQUIRED: "must be there", Need.STRICT: "", Need.LENIENT: "or nothing"}[need]
    description = ", ".join(part for part in (NOUNS[kind] if kind != ANY_TYPE else "", must) if part)
    return f"${key}: {description}" if description else f"${key}"


def spell(node: Node) -> str:
    """An expression as a line of YAML."""
    if isinstance(node, Slot):
        return " | ".join([str(node), *node.filters])
    if isinstance(node, Constant):
        return _constant(node.value)
    if isinstance(node, Object):
        inner = ", ".join(f"{key}: {spell(child)}" for key, child in node.items)
        return f"{{ {inner} }}" if inner else "{}"
    return f"[ {', '.join(map(spell, node.items))} ]" if node.items else "[]"


def _constant(value: object) -> str:
    is_plain = isinstance(value, str) and _PLAIN_TEXT.fullmatch(value)
    return str(value) if is_plain else orjson.dumps(value).decode()
