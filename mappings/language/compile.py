"""Parsed expressions made into functions: values for REST bodies and commands, byte segments for frames.

Every expression of a table becomes source code once, when the table is loaded, so that a frame or a body takes one call
for all of its values.
"""

from collections.abc import Callable, Mapping, Sequence
from keyword import iskeyword
from typing import Any

import gateway.model as m
from gateway.json_values import JsonValue

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
    """Compiles expressions of one scope with the filters of one table."""

    def __init__(self, scope: Scope, filters: Mapping[str, Filter]) -> None:
        self._scope = scope
        self._filters = filters
        self._bound: dict[str, Any] = {"__name__": __name__}
        """The constants and functions that the source code names."""

    # -- values -------------------------------------------------------------------------------------------------------

    def value(self, node: Node) -> Getter:
        return self.function(self.source(node))

    def values(self, sources: Sequence[str]) -> Getter:
        """A function that gives the values of all these expressions, as a tuple."""
        return self.function(f"({''.join(f'{source}, ' for source in sources)})")

    def function(self, source: str) -> Getter:
        """The source is made of identifiers and quoted strings, never of text as the table has it."""
        made: Getter = eval(f"lambda record, subject, extra: {source}", self._bound)  # noqa: S307
        return made

    def source(self, node: Node) -> str:
        """The expression as Python code over `record`, `subject` and `extra`."""
        if isinstance(node, Constant):
            return self._bind(node.value)
        if isinstance(node, Slot):
            return self._slot(node)
        if isinstance(node, Array):
            return f"[{', '.join(self.source(item) for item in node.items)}]"
        if any(key == SPLICE or _is_optional(child) for key, child in node.items):
            return f"{self._bind(self._object(node))}(record, subject, extra)"
        return f"{{{', '.join(f'{key!r}: {self.source(child)}' for key, child in node.items)}}}"

    def _bind(self, value: Any) -> str:
        name = f"_{len(self._bound)}"
        self._bound[name] = value
        return name

    def _object(self, node: Object) -> Getter:
        """An object whose keys are not all known before its values are."""
        fields = [(key, _is_optional(child)) for key, child in node.items]
        written = {key for key, _ in fields if key != SPLICE}
        values = self.values([self.source(child) for _, child in node.items])

        def build(record: m.Record | None, subject: Subject, extra: Bindings) -> dict[str, Any]:
            built: dict[str, Any] = {}
            for (key, is_optional), value in zip(fields, values(record, subject, extra), strict=True):
                if key == SPLICE:
                    built |= {name: item for name, item in _splice_items(value) if name not in written}
                elif value is not None or not is_optional:
                    built[key] = value
            return built

        return build

    def _slot(self, slot: Slot) -> str:
        source = self._base(slot)
        for step in slot.steps:
            value = self._bind(None)  # a local variable of this name
            follow = _attribute(value, step)
            source = (
                f"(None if ({value} := {source}) is None else {value}.get({step!r}) if isinstance({value}, dict)"
                f" else {follow})"
            )
        for name in slot.filters:
            if (filter_ := self._filters[name]) is not optional:
                source = f"{self._bind(filter_)}({source})"
        return source

    def _base(self, slot: Slot) -> str:
        name, source = slot.name, self._scope[slot.name].source
        if source is NameSource.EXTRA:
            return f"extra.get({name!r})" if slot.is_optional else f"extra[{name!r}]"
        return _attribute("record" if source is NameSource.RECORD else "subject", name)

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
        return [DumpedValue(self, node)]

    def _fields(self, node: Object) -> list[Segment]:
        found: list[Segment] = []
        for index, (key, child) in enumerate(node.items):
            lead = (b"," if index else b"") + to_json(key) + b":"
            if _is_optional(child):
                found.append(OptionalField(self, child, lead))
            else:
                found += [lead, *self.segments(child)]
        return found


class DumpedValue:
    """A value that is dumped when its frame is encoded; `node` shows whether there is a shorter way to it."""

    __slots__ = ("compiler", "get", "node", "source")

    def __init__(self, compiler: ExpressionCompiler, node: Node) -> None:
        self.compiler = compiler
        self.node = node
        self.source = compiler.source(node)
        self.get = compiler.function(self.source)

    def __call__(self, record: m.Record | None, subject: Subject, extra: Bindings) -> bytes:
        return to_json(self.get(record, subject, extra))


class OptionalField(DumpedValue):
    """A field that is absent if its value is null; `lead` is what comes before the value."""

    __slots__ = ("lead",)

    def __init__(self, compiler: ExpressionCompiler, node: Node, lead: bytes) -> None:
        super().__init__(compiler, node)
        self.lead = lead

    def __call__(self, record: m.Record | None, subject: Subject, extra: Bindings) -> bytes:
        value = self.get(record, subject, extra)
        return b"" if value is None else self.lead + to_json(value)


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


def _is_optional(node: Node) -> bool:
    return isinstance(node, Slot) and node.is_optional


def _attribute(source: str, name: str) -> str:
    if name.isascii() and name.isidentifier() and not iskeyword(name):
        return f"{source}.{name}"
    return f"getattr({source}, {name!r})"


def _splice_items(value: JsonValue) -> Any:
    if value is None:
        return ()
    return (value if isinstance(value, dict) else to_builtins(value)).items()
