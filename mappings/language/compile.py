"""Compiles parsed expressions to closures: values for REST bodies and commands, byte segments for frames."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

import gateway.model as m

from .expressions import SPLICE, Array, Constant, Node, Object, Slot
from .filters import Filter, optional, to_builtins, to_json
from .scopes import NameSource, Scope

Subject = m.Event | m.AnyPart | None
"""What the fields of an expression are of: the record's event, or a part of its content."""
Bindings = Mapping[str, object]
"""The values of the names that the dialect's code adds."""
Getter = Callable[[m.Record | None, Subject, Bindings], Any]
"""(record, subject, bindings) → the value of an expression."""
Encoder = Callable[[m.Record | None, Subject, Bindings], bytes]
Segment = bytes | Encoder


class ExpressionCompiler:
    """Compiles expressions of one scope, with the filters of one table."""

    def __init__(self, scope: Scope, filters: Mapping[str, Filter]) -> None:
        self._scope = scope
        self._filters = filters

    # -- values -------------------------------------------------------------------------------------------------------

    def value(self, node: Node) -> Getter:
        if isinstance(node, Constant):
            constant = node.value
            return lambda record, subject, extra: constant
        if isinstance(node, Slot):
            return self.slot(node)
        if isinstance(node, Array):
            items = [self.value(item) for item in node.items]
            return lambda record, subject, extra: [item(record, subject, extra) for item in items]
        return self._object(node)

    def _object(self, node: Object) -> Getter:
        fields = [(key, self.value(child), isinstance(child, Slot) and child.is_optional) for key, child in node.items]
        written = {key for key, _, _ in fields if key != SPLICE}

        def build(record: m.Record | None, subject: Subject, extra: Bindings) -> dict[str, Any]:
            built: dict[str, Any] = {}
            for key, get, is_optional in fields:
                value = get(record, subject, extra)
                if key == SPLICE:
                    built.update((name, item) for name, item in _splice_items(value) if name not in written)
                elif value is not None or not is_optional:
                    built[key] = value
            return built

        return build

    def slot(self, slot: Slot) -> Getter:
        get = self._base(slot)
        for step in slot.steps:
            get = _follow_attribute(get, step)
        for name in slot.filters:
            if (filter_ := self._filters[name]) is not optional:
                get = _apply_filter(get, filter_)
        return get

    def _base(self, slot: Slot) -> Getter:
        name, source = slot.name, self._scope[slot.name].source
        if source is NameSource.EXTRA:
            if slot.is_optional:
                return lambda record, subject, extra: extra.get(name)
            return lambda record, subject, extra: extra[name]
        get = attrgetter(name)
        if source is NameSource.RECORD:
            return lambda record, subject, extra: get(record)
        return lambda record, subject, extra: get(subject)

    def field_of_subject(self, segment_node: Node) -> str | None:
        """The field, if the node is only one field of the event, which has a faster path."""
        if isinstance(segment_node, Slot) and not segment_node.steps and not segment_node.filters:
            is_field = self._scope[segment_node.name].source is NameSource.SUBJECT
            return segment_node.name if is_field else None
        return None

    # -- bytes --------------------------------------------------------------------------------------------------------

    def segments(self, node: Node) -> list[Segment]:
        """The node as JSON: constants as bytes, the rest as encoders."""
        if isinstance(node, Constant):
            return [to_json(node.value)]
        if isinstance(node, Array):
            inner = [self.segments(item) for item in node.items]
            return join_constants([b"[", *_between(inner), b"]"])
        if isinstance(node, Object) and _has_fixed_keys(node):
            return join_constants([b"{", *self._fields(node), b"}"])
        return [DumpedValue(self.value(node), node)]

    def _fields(self, node: Object) -> list[Segment]:
        found: list[Segment] = []
        for index, (key, child) in enumerate(node.items):
            lead = (b"," if index else b"") + to_json(key) + b":"
            if isinstance(child, Slot) and child.is_optional:
                found.append(_optional_field(lead, self.slot(child)))
            else:
                found += [lead, *self.segments(child)]
        return found


class DumpedValue:
    """An encoder for a value that is known at run time; `node` shows whether there is a faster path."""

    __slots__ = ("get", "node")

    def __init__(self, get: Getter, node: Node) -> None:
        self.get = get
        self.node = node

    def __call__(self, record: m.Record | None, subject: Subject, extra: Bindings) -> bytes:
        return to_json(self.get(record, subject, extra))


def join_constants(segments: list[Segment]) -> list[Segment]:
    """Merge neighbouring constants."""
    found: list[Segment] = []
    for segment in segments:
        if found and isinstance(segment, bytes) and isinstance(found[-1], bytes):
            found[-1] = found[-1] + segment
        else:
            found.append(segment)
    return found


def _between(inner: list[list[Segment]]) -> list[Segment]:
    return [segment for index, item in enumerate(inner) for segment in ([b",", *item] if index else item)]


def _has_fixed_keys(node: Object) -> bool:
    """Whether the object can be written key by key: it has no splice, and its first key is always there."""
    first = node.items[0][1] if node.items else None
    return all(key != SPLICE for key, _ in node.items) and not (isinstance(first, Slot) and first.is_optional)


def _optional_field(lead: bytes, get: Getter) -> Encoder:
    def encode(record: m.Record | None, subject: Subject, extra: Bindings) -> bytes:
        value = get(record, subject, extra)
        return b"" if value is None else lead + to_json(value)

    return encode


def _follow_attribute(get: Getter, step: str) -> Getter:
    def follow(record: m.Record | None, subject: Subject, extra: Bindings) -> Any:
        value = get(record, subject, extra)
        if value is None:
            return None
        return value.get(step) if isinstance(value, dict) else getattr(value, step)

    return follow


def _apply_filter(get: Getter, filter_: Filter) -> Getter:
    return lambda record, subject, extra: filter_(get(record, subject, extra))


def _splice_items(value: Any) -> Any:
    if value is None:
        return ()
    return (value if isinstance(value, dict) else to_builtins(value)).items()
