"""JSON Schemas of what a table spells: bodies, frames, errors and client messages."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import NoneType
from typing import Any, get_args

import gateway.model as m
from gateway.ports import Framing

from .check import COMMANDS_BY_KIND, SSE_SUFFIX, scope_of
from .encoder import SSE_DATA
from .expressions import AS, SPLICE, Array, Constant, Node, Object, Slot, nested_row, wrap_in_envelope
from .filters import ANY_OTHER, CONTENT_FILTER, PARTS_FILTER
from .parsed_table import FrameTemplate, ParsedTable
from .scopes import (
    ERROR_NAMES,
    PART_TYPES,
    NameSource,
    Scope,
    ScopedName,
    TypeHint,
    Vocabulary,
    command_scope,
    known_attributes,
    object_scope,
    part_scope,
)
from .value_types import Need, parse_type

Schema = dict[str, Any]
TypeSchema = Callable[[TypeHint], Schema]
"""(a type) → its schema; types that have a name are described elsewhere, and referred to."""
NULL: Schema = {"type": "null"}
TEXT: Schema = {"type": "string"}
FILTERED: Mapping[str, Schema] = {
    "iso": {"type": "string", "format": "date-time"}, "naive": TEXT, "ms": {"type": "integer"}, "json": TEXT,
    "written": TEXT, "text": TEXT,
}
"""What a value is after a filter of the language."""
NAMED_TYPES: Mapping[str, Schema] = {
    "any": {}, "text": TEXT, "id": TEXT, "segment": TEXT, "int": {"type": "integer"}, "number": {"type": "number"},
    "bool": {"type": "boolean"}, "object": {"type": "object"}, "list": {"type": "array"},
    "content": {"type": ["string", "array"]}, "time": {"type": ["string", "number"]},
}
"""The types that a table names."""
ERROR_TYPES: Mapping[str, TypeHint] = {
    "code": str, "message": str, "param": str | None, "request_id": str | None, "status": int,
    "reason": str | None, "retryable": bool | None,
}
"""The names of an error that have one type in all errors."""


def any_of(schemas: Iterable[Schema]) -> Schema:
    """The schema of a value that fits one of these."""
    found: list[Schema] = []
    for schema in schemas:
        found += [one for one in ([*schema["anyOf"]] if [*schema] == ["anyOf"] else [schema]) if one not in found]
    return {} if {} in found else found[0] if len(found) == 1 else {"anyOf": found}


def nullable(schema: Schema) -> Schema:
    return any_of([schema, NULL])


class WireSchemas:
    """The schemas of one table. Rows of `objects` are described once, in `rows`, and referred to by `reference`."""

    def __init__(
        self, draft: ParsedTable, vocabulary: Vocabulary, of_type: TypeSchema, reference: Callable[[str], str],
    ) -> None:
        self._draft, self._vocabulary, self._of_type, self._reference = draft, vocabulary, of_type, reference
        self.rows: dict[str, Schema] = {}

    # -- what there is ------------------------------------------------------------------------------------------------

    def row(self, name: str) -> Schema:
        """A reference to the row."""
        if name not in self.rows:
            self.rows[name] = {}  # a row may refer to itself
            self.rows[name] = self.body(name, {})
        return {"$ref": self._reference(name)}

    def body(self, name: str, bound: Mapping[str, Schema | None]) -> Schema:
        """The row, with these schemas for some of its names; None for a name that is not bound."""
        scope = object_scope(self._vocabulary.objects[name])
        return self._node(self._draft.objects[name], self._names(name, scope, bound))

    def error(self, code: m.FaultCode) -> tuple[int, Schema]:
        """The status and the body of an error."""
        row = self._draft.errors[code if code in self._draft.errors else ANY_OTHER]
        scope = {name: ScopedName(NameSource.EXTRA, ERROR_TYPES.get(name, Any)) for name in ERROR_NAMES}
        return row.status or code.status, self._node(row.body, _Names(scope, {}, {"code": {"const": str(code)}}))

    def message(self, name: str) -> Schema | None:
        """What a client sends; None for a message that the code of the dialect reads."""
        row = self._draft.inputs[name]
        if row.wire is None:
            return None
        scope = command_scope(COMMANDS_BY_KIND[row.command], row.beside)
        names = _Names(scope, self._types(name), {})
        return any_of(self._node(wire, names) for wire in (row.wire, *row.also))

    def frames(self, framing: Framing) -> dict[str, Schema]:
        """By wire name: what frames of the name hold, in one framing."""
        found: dict[str, list[Schema]] = {}
        for cue in self._draft.frames:
            for frame in self._draft.written(cue):
                for name, schema in self._frame(cue, frame, framing):
                    found.setdefault(name, []).append(schema)
        return {name: any_of(schemas) for name, schemas in found.items()}

    def _frame(self, cue: str, frame: FrameTemplate, framing: Framing) -> Iterator[tuple[str, Schema]]:
        scope = scope_of(cue, self._vocabulary)
        if scope is None:
            return
        special = self._draft.envelopes.get(frame.envelope + SSE_SUFFIX) if framing == "sse" else None
        node = wrap_in_envelope(special or self._draft.envelopes[frame.envelope], frame.wire, frame.body)
        name, data = frame.wire, node
        if framing != "json" and isinstance(node, Object):
            items = dict(node.items)
            data, event = items[SSE_DATA], items.get("event")
            name = str(event.value) if isinstance(event, Constant) else name
        yield name, self._node(data, self._names(cue, scope, {}))

    def _names(self, row: str, scope: Scope, bound: Mapping[str, Schema | None]) -> "_Names":
        return _Names(scope, self._types(row), bound, partial(self._vocabulary.type_of, row))

    def _types(self, row: str) -> Mapping[str, str]:
        """The types that the table gives to names: everywhere, and in this row."""
        shape = self._draft.shape.types
        own = shape.get(row, {})
        everywhere = {name: kind for name, kind in shape.items() if isinstance(kind, str)}
        return {**everywhere, **(own if isinstance(own, dict) else {})}

    # -- expressions --------------------------------------------------------------------------------------------------

    def _node(self, node: Node, names: "_Names") -> Schema:
        if isinstance(node, Constant):
            return NULL if node.value is None else {"const": node.value}
        if isinstance(node, Slot):
            return self._slot(node, names)
        if isinstance(node, Array):
            items = {"items": any_of(self._node(item, names) for item in node.items)} if node.items else {}
            return {"type": "array", **items, "minItems": len(node.items), "maxItems": len(node.items)}
        return self._object(node, names)

    def _object(self, node: Object, names: "_Names") -> Schema:
        made: Schema = {"type": "object", "properties": {}, "required": []}
        spliced: list[Schema] = []
        for key, child in node.items:
            if key == SPLICE:
                if (schema := self._spliced(child, names)) is not None:
                    spliced.append(schema)
                continue
            made["properties"][key] = self._node(child, names)
            if not (isinstance(child, Slot) and child.is_optional):
                made["required"].append(key)
        for schema in spliced:
            made = self.merged(made, schema)
        return made

    def _spliced(self, child: Node, names: "_Names") -> Schema | None:
        if isinstance(child, Slot) and names.bound.get(child.name, {}) is None:
            return None
        return self._node(child, names)

    def merged(self, own: Schema, other: Schema) -> Schema:
        """An object that has the members of another one beside its own, which win."""
        if "$ref" in other:
            known = {self._reference(name): schema for name, schema in self.rows.items()}
            other = known.get(other["$ref"], {})
        if "anyOf" in other:
            return any_of(self.merged(own, one) for one in other["anyOf"] if one != NULL)
        properties = {**other.get("properties", {}), **own["properties"]}
        required = [*own["required"], *(name for name in other.get("required", ()) if name not in own["required"])]
        is_open = "properties" not in other or "additionalProperties" in other or "additionalProperties" in own
        made = {**own, "properties": properties, "required": required}
        return {**made, "additionalProperties": True} if is_open else made

    def _slot(self, slot: Slot, names: "_Names") -> Schema:
        hint, is_sure = names.hint(slot)
        schema = self._filtered(slot, names, hint)
        if slot.is_optional or schema == {}:
            return schema
        may_be_null = not names.is_needed(slot) if hint is Any else not is_sure or NoneType in get_args(hint)
        return nullable(schema) if may_be_null else schema

    def _filtered(self, slot: Slot, names: "_Names", hint: TypeHint) -> Schema:
        changing = [one for one in slot.filters if one != "optional"]
        if slot.name in names.bound and not slot.steps:
            return self._bound(names.bound[slot.name] or {}, changing)
        if not changing:
            return without_null(self._of_type(hint)) if hint is not Any else names.declared(slot)
        last = changing[-1]
        if row := nested_row(last):
            of_row = self.row(row[1])
            return of_row if row[0] == AS else {"type": "array", "items": of_row}
        if last in (CONTENT_FILTER, PARTS_FILTER):
            blocks = {"type": "array", "items": self._parts()}
            return blocks if last == PARTS_FILTER else {"anyOf": [TEXT, blocks]}
        if last in self._draft.shape.enums:
            return {"enum": list(dict.fromkeys(self._draft.shape.enums[last].values()))}
        if last in self._draft.shape.reads:
            return {"enum": [*self._draft.shape.reads[last]]}
        return FILTERED[last]

    def _bound(self, schema: Schema, filters: list[str]) -> Schema:
        """A schema that stands for a name; a member of an enum is its word in the table."""
        words = self._draft.shape.enums.get(filters[-1]) if filters else None
        if words is None or "const" not in schema:
            return schema
        return {"const": words.get(schema["const"], words.get(ANY_OTHER))}

    def _parts(self) -> Schema:
        return any_of(self._node(node, _Names(part_scope(PART_TYPES[kind]), {}, {}))
                      for kind, node in self._draft.parts.items() if node is not None)


def without_null(schema: Schema) -> Schema:
    if "anyOf" not in schema or NULL not in schema["anyOf"]:
        return schema
    rest = [one for one in schema["anyOf"] if one != NULL]
    return rest[0] if len(rest) == 1 else {**schema, "anyOf": rest}


class _Names:
    """The names of a row: their types in the code, their types in the table, and schemas that stand for some.

    `type_of` knows the types of names, or of paths such as `state.speed`, that are no fields of a struct.
    """

    def __init__(
        self, scope: Scope, declared: Mapping[str, str], bound: Mapping[str, Schema | None],
        type_of: Callable[[str], TypeHint] = lambda path: Any,
    ) -> None:
        self._scope, self._declared, self.bound, self._type_of = scope, declared, bound, type_of

    def hint(self, slot: Slot) -> tuple[TypeHint, bool]:
        """The type of a value in the code, and whether what it is an attribute of is always there."""
        hint, is_sure = self._scope[slot.name].type, True
        for step in slot.steps:
            is_sure = is_sure and NoneType not in get_args(hint)
            hint = (known_attributes(hint) or {}).get(step, Any)
        if hint is Any and (known := self._type_of(self._path(slot))) is not Any:
            return known, True
        return hint, is_sure

    def declared(self, slot: Slot) -> Schema:
        """The type that the table names."""
        kind = parse_type(self._declared.get(self._path(slot), "any"))
        return NAMED_TYPES[kind.name] if kind else {}

    def is_needed(self, slot: Slot) -> bool:
        kind = parse_type(self._declared.get(self._path(slot), "any"))
        return slot.name in self.bound or (kind is not None and kind.need is Need.REQUIRED)

    def _path(self, slot: Slot) -> str:
        return ".".join((slot.name, *slot.steps))
