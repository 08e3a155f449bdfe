"""The names that an expression may use, where their values come from, and their types."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum, StrEnum, auto
from types import NoneType, UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

import gateway.model as m
from gateway.ports import Dialect
from gateway.yaml_positions import suggest

from .expressions import BODY, WIRE

Names = Mapping[str, tuple[str, ...]]
ObjectNames = tuple[str, ...] | type[Any]
"""What the code binds for an object: names, or the struct or dataclass whose fields they are."""
EVERYWHERE = "*"
BASE64 = "base64"
"""The name in a further spelling of a part that binds, beside `media_type`, the content of a `data:` address."""
TypeHint: TypeAlias = object
"""What `type_hints` returns: a class, a union, or `Any` if nothing is known."""


_TYPE_HINTS: dict[object, Mapping[str, Any]] = {}


def type_hints(declared: Any) -> Mapping[str, Any]:
    """The types of a class's fields or of a function; a table asks a thousand times about a few classes."""
    found = _TYPE_HINTS.get(declared)
    if found is None:
        found = _TYPE_HINTS[declared] = get_type_hints(declared)
    return found


@dataclass(frozen=True)
class Vocabulary:
    """What a dialect's code provides for its table: cues, extra names, client messages, objects, and their bindings.

    `names` is by event, or by event and variant; names under `*` are bound for every event and cue. A message that the
    table spells by `wire` has the names of its command, and an object may have the fields of a struct.
    """

    cues: Names = field(default_factory=dict)
    names: Names = field(default_factory=dict)
    messages: Names | tuple[str, ...] = ()
    objects: Mapping[str, ObjectNames] = field(default_factory=dict)
    name_types: Mapping[str, TypeHint] = field(default_factory=dict)
    """The types of names that have none here, by name, or by row and name."""
    former_cues: Mapping[str, str] = field(default_factory=dict)
    """By cues of earlier releases: the cue of now."""

    @classmethod
    def of(cls, dialect: Dialect) -> "Vocabulary":
        return cls(cues=dialect.cues, names=dialect.names, messages=dialect.messages, objects=dialect.objects,
                   name_types=dialect.name_types, former_cues=dialect.former_cues)

    def cue_hint(self, cue: str, cues: Iterable[str]) -> str:
        """A hint for an unknown cue: its new name if it was renamed, otherwise the known cue that is most like it."""
        now = self.former_cues.get(cue)
        return suggest(cue, cues) if now is None else f"it is '{now}' now, see docs/upgrading.md"

    def type_of(self, row: str, path: str) -> TypeHint:
        """The type of a name that code binds for a row or a cue, or of its attribute; `Any` if nothing is known."""
        return self.name_types.get(f"{row}.{path}", self.name_types.get(path, Any))

    def bound_for(self, message: str) -> tuple[str, ...]:
        """The names that code binds for a client message."""
        return self.messages[message] if isinstance(self.messages, Mapping) else ()


class NameSource(Enum):
    """Where the value of a name comes from when a frame is made."""

    RECORD = auto()
    SUBJECT = auto()  # the record's event, or the part for `parts`
    EXTRA = auto()
    ENVELOPE = auto()  # `$wire` and `$body`, filled in before compilation


@dataclass(frozen=True)
class ScopedName:
    source: NameSource
    type: TypeHint = Any


Scope = Mapping[str, ScopedName]

MODEL_ENUMS: dict[str, type[StrEnum]] = {
    "block_kind": m.BlockKind,
    "close_reason": m.CloseReason,
    "fault": m.FaultCode,
    "level": m.NoticeLevel,
    "option_kind": m.OptionKind,
    "outcome": m.Outcome,
    "permission": m.Permission,
    "reason": m.FaultReason,
    "resolution": m.Resolution,
    "role": m.Role,
    "scope_status": m.ScopeStatus,
    "session_status": m.SessionStatus,
    "stop_reason": m.StopReason,
    "tool_origin": m.ToolOrigin,
    "tool_status": m.ToolStatus,
    "topic": m.AnnotationTopic,
    "trigger": m.CompactionTrigger,
}
PART_TYPES: dict[str, type[Struct]] = {part.__struct_config__.tag: part for part in get_args(m.AnyPart)}
EVENT_CUES: dict[str, tuple[type[m.Event], str]] = {
    cue: (event, variant)
    for event in m.EVENTS
    for cue, variant in [(event.name, ""), *((f"{event.name}.{variant}", variant) for variant in event.variants)]
}
ENVELOPE_NAMES = {name: ScopedName(NameSource.ENVELOPE) for name in (WIRE, BODY)}
ERROR_NAMES = ("code", "details", "message", "param", "reason", "request_id", "retryable", "status")

_RECORD: Scope = {
    name: ScopedName(NameSource.RECORD, hint)
    for name, hint in {**type_hints(m.Record), "event_id": str}.items() if name != "event"
}


def event_scope(event: type[m.Event], variant: str, vocabulary: Vocabulary) -> Scope:
    """The names of the record, of the event's fields, and of the dialect; later ones win."""
    hints = type_hints(event)
    fields = {
        name: ScopedName(NameSource.SUBJECT, _narrow_to_variant(hints[name], variant))
        for name in event.__struct_fields__
    }
    added = [name for key in (EVERYWHERE, event.name, f"{event.name}.{variant}")
             for name in vocabulary.names.get(key, ())]
    return {**_RECORD, **fields, **extra_scope(added)}


def cue_scope(cue: str, vocabulary: Vocabulary) -> Scope:
    return {**_RECORD, **extra_scope((*vocabulary.names.get(EVERYWHERE, ()), *vocabulary.cues[cue]))}


def extra_scope(names: Iterable[str]) -> Scope:
    return {name: ScopedName(NameSource.EXTRA) for name in names}


def object_scope(declared: ObjectNames) -> Scope:
    """The names of an object, with the types of its fields where it is a struct or a dataclass."""
    if isinstance(declared, tuple):
        return extra_scope(declared)
    hints = type_hints(declared)
    return {name: ScopedName(NameSource.EXTRA, hints[name]) for name in object_names(declared)}


def object_names(declared: ObjectNames) -> tuple[str, ...]:
    if isinstance(declared, tuple):
        return declared
    if issubclass(declared, Struct):
        return declared.__struct_fields__
    return tuple(one.name for one in fields(declared))


def command_scope(command: type[m.Command], beside: Iterable[str]) -> Scope:
    """The names of a client message: the fields of its command, and what its row has beside them."""
    hints = type_hints(command)
    own = {name: ScopedName(NameSource.EXTRA, hints[name]) for name in command.__struct_fields__}
    return {**extra_scope(beside), **own}


def part_scope(part: type[Struct]) -> Scope:
    hints = type_hints(part)
    return {name: ScopedName(NameSource.SUBJECT, hints[name]) for name in part.__struct_fields__}


def further_part_scope(part: type[Struct]) -> Scope:
    """What a further spelling of a part may bind: its fields; and, for its address, what a `data:` address holds."""
    return {BASE64: ScopedName(NameSource.EXTRA, str), **part_scope(part)}


def _narrow_to_variant(hint: TypeHint, variant: str) -> TypeHint:
    """The struct of a tagged union that this variant is about."""
    fitting = [member for member in union_members(hint) if getattr(member, "kind", None) == variant]
    return fitting[0] if variant and len(fitting) == 1 else hint


def union_members(hint: TypeHint) -> tuple[TypeHint, ...]:
    """The types that a value may have, without None."""
    if get_origin(hint) in (Union, UnionType):
        return tuple(member for member in get_args(hint) if member is not NoneType)
    return (hint,)


def known_attributes(hint: TypeHint) -> dict[str, TypeHint] | None:
    """The names that can follow a dot, with their types; None if any name can."""
    kinds = union_members(hint)
    if any(kind is Any or (get_origin(kind) or kind) is dict for kind in kinds):
        return None
    return _common_attributes([_attributes(kind) for kind in kinds])


def known_fields(hint: object) -> set[str]:
    """Those of the known attributes that are fields, and not derived from fields."""
    kinds = [kind for kind in union_members(hint) if isinstance(kind, type) and issubclass(kind, Struct)]
    return set.intersection(*(set(kind.__struct_fields__) for kind in kinds)) if kinds else set()


def _attributes(kind: TypeHint) -> dict[str, TypeHint]:
    if not (isinstance(kind, type) and issubclass(kind, Struct)):
        return {}
    hints = type_hints(kind)
    derived = {name: type_hints(value.fget).get("return", Any)
               for name, value in vars(kind).items() if isinstance(value, property)}
    found = derived | {name: hints[name] for name in kind.__struct_fields__}
    return {**found, **({"kind": str} if "kind" in hints and "kind" not in found else {})}


def _common_attributes(each: list[dict[str, TypeHint]]) -> dict[str, TypeHint]:
    """The names that all types have; with a type if they agree."""
    first, *rest = each
    return {
        name: hint if all(other[name] == hint for other in rest) else Any
        for name, hint in first.items() if all(name in other for other in rest)
    }
