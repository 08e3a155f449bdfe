"""Parses the right-hand sides of a table: constants, slots, objects and lists, each with its position."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gateway.yaml_positions import NodePath

SPLICE, MERGE = "...", "<<"
"""`...: $name` puts the members of a value here; `<<: *anchor` is YAML's own way to repeat what is written."""
WIRE, BODY = "wire", "body"
EACH, FITTING, AS = "each", "fitting", "as"
"""Filters that name a row of `objects`: `each agent` is a list of such objects, `as agent` is one.

Of the list of `fitting agent`, what is no such object is passed over when it is read.
"""
_NAME, _STEPS, _ROW = r"\$([a-z_]\w*)", r"((?:\.\w+)*)", rf"(?:{EACH}|{FITTING}|{AS})\s+[\w.@]+"
_SLOT = re.compile(rf"{_NAME}{_STEPS}((?:\s*\|\s*(?:{_ROW}|[\w@]+))*)\s*")

ReportProblem = Callable[[NodePath, str], None]


@dataclass(frozen=True, slots=True)
class Constant:
    value: Any
    path: NodePath = ()


@dataclass(frozen=True, slots=True)
class Slot:
    """`$name.attribute | filter`: a value that is filled in when the frame is made."""

    name: str
    steps: tuple[str, ...]
    filters: tuple[str, ...]
    path: NodePath = ()

    def __str__(self) -> str:
        return "$" + ".".join((self.name, *self.steps))

    @property
    def is_optional(self) -> bool:
        return "optional" in self.filters


@dataclass(frozen=True, slots=True)
class Object:
    """Keys and values in order; a key `...` splices its value in, and keys written out win over spliced ones."""

    items: tuple[tuple[str, "Node"], ...]
    path: NodePath = ()


@dataclass(frozen=True, slots=True)
class Array:
    items: tuple["Node", ...]
    path: NodePath = ()


Node = Constant | Slot | Object | Array


def parse_expression(value: object, path: NodePath, report: ReportProblem) -> Node:
    """Parse a YAML value; an invalid part is reported and replaced by null."""
    if isinstance(value, dict):
        return _object(value, path, report)
    if isinstance(value, list):
        return Array(tuple(parse_expression(item, (*path, index), report) for index, item in enumerate(value)), path)
    if isinstance(value, str) and value.startswith("$"):
        return _slot(value, path, report)
    if value is None or isinstance(value, str | int | float):
        return Constant(value, path)
    report(path, f"'{value}' is not a JSON value; put it in quotes")
    return Constant(None, path)


def _object(value: dict[Any, Any], path: NodePath, report: ReportProblem) -> Object:
    items: list[tuple[str, Node]] = []
    for key, item in value.items():
        if not isinstance(key, str):
            report((*path, key), f"the key {key!r} is not a word; put it in quotes")
            continue
        items.append((SPLICE if key == MERGE else key, parse_expression(item, (*path, key), report)))
    return Object(_inline_splices(items), path)


def _slot(text: str, path: NodePath, report: ReportProblem) -> Node:
    if text.startswith("$$"):
        return Constant(text[1:], path)
    found = _SLOT.fullmatch(text)
    if found is None:
        report(path, f"'{text}' is not an expression; it should look like '$name.attribute | filter'")
        return Constant(None, path)
    name, steps, filters = found.groups()
    named = tuple(" ".join(one.split()) for one in filters.split("|")[1:])
    return Slot(name, tuple(steps.split(".")[1:]), named, path)


def slot_pattern(filters: Iterable[str] | None = None) -> str:
    """The pattern of a slot with these filters, or with any; an enum may name a second map after `@`."""
    word = r"[\w@]+" if filters is None else rf"(?:{'|'.join(filters)})(?:@\w+)?"
    return rf"{_NAME}{_STEPS}((?:\s*\|\s*(?:{_ROW}|{word}))*)\s*"


def _inline_splices(items: list[tuple[str, Node]]) -> tuple[tuple[str, Node], ...]:
    """Splices of constants become ordinary keys."""
    flat = [pair for key, node in items for pair in _expand_splice(key, node)]
    written = {key for key, _ in items if key != SPLICE}
    return tuple({
        (key if key != SPLICE else (key, number)): (key, node)
        for number, (key, node, spliced) in enumerate(flat)
        if not (spliced and key in written)
    }.values())


def _expand_splice(key: str, node: Node) -> Iterator[tuple[str, Node, bool]]:
    if key == SPLICE and isinstance(node, Object):
        yield from ((inner, value, True) for inner, value in node.items)
    elif key == SPLICE and isinstance(node, Array):
        for item in node.items:
            yield from _expand_splice(SPLICE, item)
    else:
        yield key, node, False


def wrap_in_envelope(envelope: Node, wire: str, body: Node) -> Node:
    """The envelope with `$wire` and `$body` filled in."""
    if isinstance(envelope, Slot):
        return {WIRE: Constant(wire, envelope.path), BODY: body}.get(envelope.name, envelope)
    if isinstance(envelope, Object):
        return Object(
            _inline_splices([(key, wrap_in_envelope(node, wire, body)) for key, node in envelope.items]), envelope.path
        )
    if isinstance(envelope, Array):
        return Array(tuple(wrap_in_envelope(node, wire, body) for node in envelope.items), envelope.path)
    return envelope


def nested_row(filter_name: str) -> tuple[str, str] | None:
    """`each` or `as`, and the row of `objects` that the filter names; None for any other filter."""
    word, _, row = filter_name.partition(" ")
    return (word, row) if row else None


def slots(node: Node) -> Iterator[tuple[Slot, str | None]]:
    """Every slot, with the key whose value it is; None if it is not the value of a key."""
    if isinstance(node, Slot):
        yield node, None
    elif isinstance(node, Object):
        for key, child in node.items:
            yield from ((slot, key if slot is child else inner) for slot, inner in slots(child))
    elif isinstance(node, Array):
        for child in node.items:
            yield from slots(child)


def splices_body(node: Node) -> bool:
    """Whether the envelope uses fields of the body, rather than the body as a whole."""
    if isinstance(node, Object):
        return any((key == SPLICE and isinstance(child, Slot) and child.name == BODY) or splices_body(child)
                   for key, child in node.items)
    return isinstance(node, Array) and any(map(splices_body, node.items))
