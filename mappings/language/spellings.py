"""Templates of a table as spellings that can be read: where each binding stands, its type, and its inverted filters."""

from collections.abc import Container, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

import msgspec
from msgspec import structs

import gateway.model as m
from gateway.field_errors import describe_struct_error
from gateway.json_values import JsonValue
from gateway.ports import Framing
from gateway.yaml_positions import NodePath

from .binding_reader import (
    DATA,
    NAME,
    BindingReader,
    Place,
    Source,
    UnfitValue,
    WirePath,
    is_placeholder,
    places,
)
from .check import COMMANDS_BY_KIND, SSE_SUFFIX, object_reading_scope, reading_scope
from .expressions import BODY, WIRE, Constant, Node, Object, Slot
from .filters import Filter
from .frame_decoder import BodyPlace, EnvelopeForm, Mark, Marks, Spelling, confusable
from .parsed_table import FrameTemplate, InputTemplate, ParsedTable, ProblemCollector
from .scopes import (
    PART_TYPES,
    Scope,
    Vocabulary,
    command_scope,
    further_part_scope,
    known_attributes,
    known_fields,
    type_hints,
    union_members,
)
from .value_types import SOME_BODY, WHOLE_BODY, Need, ValueType, parse_type, type_of_hint

Inverses = Mapping[str, tuple[str, Filter]]
"""By filter: the type of the value on the wire, and what gives back the value that was filtered."""
FRAMINGS: tuple[Framing, ...] = ("json", "sse")
Forms = dict[EnvelopeForm, dict[str, list[Spelling]]]


class SpellingCompiler:
    """Knows the types and the inverted filters of one table."""

    def __init__(self, draft: ParsedTable, vocabulary: Vocabulary, inverses: Inverses) -> None:
        self._draft, self._vocabulary, self._inverses = draft, vocabulary, inverses
        self._types = draft.shape.types

    def _declared(self, row: str, key: str) -> tuple[ValueType | None, bool]:
        """The type of a binding in this row, or in all rows, and whether the table names it for this row."""
        of_row = self._types.get(row)
        own = of_row.get(key) if isinstance(of_row, dict) else None
        spelled = own or self._types.get(key)
        return parse_type(spelled) if isinstance(spelled, str) else None, own is not None

    def forms(self, framings: tuple[Framing, ...]) -> Forms:
        """Every spelling that is read, by the form of its envelope and its wire name."""
        found: Forms = {}
        for cue, frames in self._draft.frames.items():
            for frame in frames:
                for framing in framings:
                    for form, spelling in self._spellings(cue, frame, framing):
                        rows = found.setdefault(form, {}).setdefault(spelling.wire, [])
                        if spelling not in rows:
                            rows.append(spelling)
        return found

    def parts(self) -> Iterator[Spelling]:
        """The spellings of content blocks, in the order of the table; those with the same constants are one."""
        for kind, node in self._draft.parts.items():
            alike: dict[frozenset[tuple[WirePath, Any]], list[Place]] = {}
            for one in (*([node] if node else []), *self._draft.further_parts[kind]):
                found = list(places(one))
                alike.setdefault(frozenset(_constants(found).items()), []).extend(found)
            for found in alike.values():
                yield Spelling(kind, "", _constants(found), None,
                               self._readers(kind, found, further_part_scope(PART_TYPES[kind])))

    def object_spelling(self, name: str) -> Spelling:
        """A row of `objects`."""
        node, scope = self._draft.objects[name], object_reading_scope(name, self._vocabulary, self._draft)
        found = [*_body_places(node), *_slots_among(self._draft.other_objects.get(name, ()))]
        readers = self._readers(name, found, scope, is_frame=False)
        is_bare = any(isinstance(other, Slot) for other in self._draft.other_objects.get(name, ()))
        return Spelling(name, "", _constants(found), None, readers, None if is_bare else _object_at(node))

    def message_spelling(self, name: str, row: InputTemplate, wire: Node) -> Spelling:
        """What a client sends; the fields that its command cannot do without must be there."""
        command = COMMANDS_BY_KIND[row.command]
        found = [*_body_places(wire), *_slots_among(row.also)]
        needed = {one.name for one in structs.fields(command) if one.required}
        converted = {one: convert for one, hint in type_hints(command).items() if (convert := conversion(hint))}
        scope = command_scope(command, row.beside)
        readers = self._readers(name, found, scope, needed, converted, is_frame=False)
        return Spelling(name, "", _constants(found), None, readers, _object_at(wire))

    # -- frames -------------------------------------------------------------------------------------------------------

    def _spellings(self, cue: str, frame: FrameTemplate, framing: Framing) -> Iterator[tuple[EnvelopeForm, Spelling]]:
        if frame.write_only:
            return
        scope = reading_scope(cue, self._vocabulary, self._draft)
        envelope = self._envelope(frame, framing)
        form, around, body = self._form(envelope)
        if body is None:  # the envelope says the same of every frame
            yield form, Spelling(cue, frame.wire, {}, None, self._readers(cue, around, scope))
            return
        at, own = body.path, [*_within(body, frame.body), *_further_places(frame, body)]
        known_by, constants = self._known_by(frame, at, own), _constants(own)
        readers, must_be_object = self._readers(cue, [*own, *around], scope), self._body(at)
        yield form, Spelling(cue, frame.wire, constants, known_by, readers, must_be_object)
        for other in frame.also:
            inner = _within(body, other.body)
            if other.wire != frame.wire:
                others = self._readers(cue, [*inner, *around], scope)
                yield form, Spelling(cue, other.wire, _constants(inner), known_by, others, must_be_object)
            elif (changed := _changed_constants(constants, inner)) != constants:
                marks = self._known_by(frame, at, [*inner, *own])
                yield form, Spelling(cue, frame.wire, changed, marks, readers, must_be_object)

    def _body(self, at: WirePath) -> BodyPlace | None:
        declared = self._types.get(BODY)
        return BodyPlace(at, declared == SOME_BODY) if declared in (WHOLE_BODY, SOME_BODY) else None

    def _known_by(self, frame: FrameTemplate, at: WirePath, own: list[Place]) -> Marks | None:
        """The members that the row is known by, of each choice one."""
        if frame.known_by is None:
            return None
        return tuple(
            tuple(self._mark((*at, *name.split(".")), own) for name in choice) for choice in frame.known_by)

    def _mark(self, path: WirePath, own: list[Place]) -> Mark:
        """What must stand at the place: the row's constant, a word of its enum, an object, or anything."""
        for place in own:
            if place.path == path and isinstance(place.node, Constant):
                return Mark(path, frozenset({place.node.value}))
            if place.path == path and isinstance(place.node, Slot):
                maps = [self._draft.shape.enums[name] for name in place.node.filters if name in self._draft.shape.enums]
                return Mark(path, frozenset(map(str, maps[0].values())) if maps else None)
        return Mark(path, None, any(place.path[:len(path)] == path for place in own))

    def _envelope(self, frame: FrameTemplate, framing: Framing) -> Node:
        special = self._draft.envelopes.get(frame.envelope + SSE_SUFFIX) if framing == "sse" else None
        return special or self._draft.envelopes[frame.envelope]

    def _form(self, envelope: Node) -> tuple[EnvelopeForm, list[Place], Place | None]:
        """Its form, the slots of its own, and where the body stands in it, if it has a place for the body."""
        before = () if is_named(envelope) else (DATA,)
        found = [Place((*before, *one.path), one.node, one.written) for one in places(envelope)]
        wires = [one.path for one in found if isinstance(one.node, Slot) and one.node.name == WIRE]
        bodies = [one for one in found if isinstance(one.node, Slot) and one.node.name == BODY]
        unread = [tuple(name.split(".")) for name in self._draft.shape.unread]
        constants = tuple((one.path, one.node.value) for one in found if isinstance(one.node, Constant)
                          and not is_placeholder(one.node.value) and one.path not in unread)
        is_distinct = bool(before and constants)  # then the transport's name is not needed
        wires += [path for name in self._draft.shape.names
                  if (path := tuple(name.split("."))) != (NAME,) or not is_distinct]
        own = [one for one in found if isinstance(one.node, Slot) and one.node.name not in (WIRE, BODY)]
        return EnvelopeForm(constants, tuple(dict.fromkeys(wires))), own, bodies[0] if bodies else None

    # -- bindings -----------------------------------------------------------------------------------------------------

    def _readers(
        self, row: str, found: list[Place], scope: Scope, needed: Container[str] = (),
        converted: Mapping[str, Filter] | None = None, *, is_frame: bool = True,
    ) -> tuple[BindingReader, ...]:
        by_key: dict[str, list[Place]] = {}
        for place in found:
            if isinstance(place.node, Slot) and _is_field(place.node, scope):
                by_key.setdefault(str(place.node), []).append(place)
        if is_frame:  # of several places one without a filter is read first
            by_key = {key: sorted(same, key=self._has_filter) for key, same in by_key.items()}
        return tuple(self._reader(row, same, scope, needed, converted or {}) for same in by_key.values())

    def _has_filter(self, place: Place) -> bool:
        return isinstance(place.node, Slot) and bool(self._inverted(place.node))

    def _reader(
        self, row: str, same: list[Place], scope: Scope, needed: Container[str], converted: Mapping[str, Filter]
    ) -> BindingReader:
        slot = same[0].node
        assert isinstance(slot, Slot)
        key = str(slot).removeprefix("$")
        declared, is_of_row = self._declared(row, key)
        kind = declared.name if declared else type_of_hint(_hint(slot, scope))
        need = Need.REQUIRED if not is_of_row and key in needed else declared.need if declared else Need.STRICT
        sources = tuple(dict.fromkeys(self._source(place, kind, converted.get(key)) for place in same))
        return BindingReader(slot.name, slot.steps, need, sources)

    def _source(self, place: Place, kind: str, convert: Filter | None) -> Source:
        """The type on the wire: that of the filter or, without a filter, of the binding. A splice is an object."""
        assert isinstance(place.node, Slot)
        if place.written is not None:
            return Source(place.path, "object", None, place.written)
        inverted = self._inverted(place.node)
        invert = _composed([*(invert for _, invert in inverted), *([convert] if convert else [])])
        return Source(place.path, inverted[0][0] if inverted else kind, invert)

    def _inverted(self, slot: Slot) -> list[tuple[str, Filter]]:
        return [self._inverses[each] for each in reversed(slot.filters) if each in self._inverses]


def is_named(envelope: Node) -> bool:
    """Whether the transport itself has the name of a frame: a server-sent event, or an event of Socket.IO."""
    return isinstance(envelope, Object) and {key for key, _ in envelope.items} <= {NAME, DATA, "id", "retry"}


def conversion(hint: object) -> Filter | None:
    """The converter from JSON to a field of a command, which refuses wrong values; None if none is needed."""
    kinds = set(union_members(hint))
    if kinds <= {str, int, float, bool, Any, dict[str, Any]}:
        return None
    if kinds == set(union_members(m.Content)):
        return _content_or_refuse

    def convert(value: JsonValue) -> Any:
        try:
            return value if isinstance(value, Enum) else msgspec.convert(value, hint)
        except msgspec.ValidationError as error:
            raise UnfitValue(describe_struct_error(error)) from None

    return convert


def _content_or_refuse(value: JsonValue) -> object:
    """Without a filter for its parts, content is a text."""
    if isinstance(value, str | tuple):
        return value
    raise UnfitValue("it must be a text")


def _object_at(node: Node) -> BodyPlace | None:
    """Where a body stands that must be an object."""
    return BodyPlace((DATA,)) if isinstance(node, Object) else None


def _body_places(node: Node) -> list[Place]:
    return [Place((DATA, *one.path), one.node, one.written) for one in places(node)]


def _slots_among(others: Iterable[Node]) -> list[Place]:
    """The slots of further spellings, which are further places of the same bindings."""
    return [place for other in others for place in _body_places(other) if isinstance(place.node, Slot)]


def _within(body: Place, node: Node) -> list[Place]:
    """Places of a body as places of its frame; where the frame splices the body, its own members are not the body's."""
    around = body.written or ()
    return [
        Place((*body.path, *one.path), one.node,
              one.written if one.path or one.written is None else one.written + around)
        for one in places(node)
    ]


def _further_places(frame: FrameTemplate, body: Place) -> list[Place]:
    """Further places of the frame's bindings, from other spellings of the same name."""
    return [place for other in frame.also if other.wire == frame.wire
            for place in _within(body, other.body) if isinstance(place.node, Slot)]


def _constants(found: list[Place]) -> dict[WirePath, Any]:
    return {place.path: place.node.value for place in found
            if isinstance(place.node, Constant) and not is_placeholder(place.node.value)}


def _changed_constants(constants: dict[WirePath, object], inner: list[Place]) -> dict[WirePath, Any]:
    """The constants of a row, with what a further spelling has at their places; null where it leaves a member out."""
    changed = dict(constants)
    for place in inner:
        if isinstance(place.node, Slot):
            changed.pop(place.path, None)
        elif place.path in changed or not is_placeholder(place.node.value):
            changed[place.path] = place.node.value
    return changed


def _is_field(slot: Slot, scope: Scope) -> bool:
    """Whether the slot shows a field, and not what the model derives from fields."""
    hint = _type_of(slot.name, scope)
    for step in slot.steps:
        known = known_attributes(hint)
        if known is None:
            return True
        if step not in known_fields(hint):
            return False
        hint = known[step]
    return True


def _hint(slot: Slot, scope: Scope) -> object:
    hint = _type_of(slot.name, scope)
    for step in slot.steps:
        known = known_attributes(hint)
        if known is None:
            return Any
        hint = known.get(step, Any)
    return hint


def _type_of(name: str, scope: Scope) -> object:
    """A name that only rows of other servers bind may have any type."""
    return scope[name].type if name in scope else Any


def _composed(steps: list[Filter]) -> Filter | None:
    if len(steps) < 2:
        return steps[0] if steps else None

    def compose(value: JsonValue) -> object:
        for step in steps:
            value = step(value)
        return value

    return compose


# -- what cannot be read ----------------------------------------------------------------------------------------------

def check_reading(draft: ParsedTable, vocabulary: Vocabulary, findings: ProblemCollector) -> None:
    """Add a problem for each pair of rows that one frame could be, and for each cue that several frames say."""
    compiler = SpellingCompiler(draft, vocabulary, {})
    for cue, frames in draft.frames.items():
        if len([frame for frame in frames if not frame.write_only and not frame.read_only]) > 1:
            findings.add(("frames", cue), f"'{cue}' is several frames, and cannot be read from one",
                         "mark all of them, or all but one, write-only", key=True)
    reported: set[tuple[str, str]] = set()
    for framing in FRAMINGS:
        for rows in compiler.forms((framing,)).values():
            for wire, spellings in rows.items():
                for one, other in confusable(spellings):
                    if (one.cue, other.cue) not in reported:
                        reported.add((one.cue, other.cue))
                        path: NodePath = ("frames", other.cue)
                        findings.add(path, f"a frame '{wire}' could be '{one.cue}' or '{other.cue}'",
                                     "mark one of them write-only, or say by 'known_by' how they differ", key=True)
