"""Completes the rows of `objects`: what a row does not mention goes out under its own name."""

from collections.abc import Mapping
from typing import Any

from gateway.yaml_positions import YamlDocument

from .expressions import SPLICE, parse_expression, slots
from .scopes import ObjectNames, object_names

OBJECTS, DROP, ALSO = "objects", "$drop", "also"


def complete_objects(document: YamlDocument, objects: Mapping[str, ObjectNames]) -> None:
    """Write the names that the rows leave out into the document, before any override changes it."""
    section = document.value.get(OBJECTS) if isinstance(document.value, dict) else None
    if not isinstance(section, dict):
        return
    document.value[OBJECTS] = {
        name: complete_row(row, object_names(objects[name])) if name in objects and isinstance(row, dict) else row
        for name, row in section.items()
    }


def complete_row(row: dict[Any, Any], names: tuple[str, ...]) -> dict[Any, Any]:
    """The row with the names that it does not mention, each after the name that is declared before it.

    `name: $drop` leaves a name out, and `...: $drop` all that are not mentioned.
    """
    if row.get(SPLICE) == DROP:
        return {key: value for key, value in row.items() if value != DROP}
    members = [(key, value, _names_in(value)) for key, value in row.items() if value != DROP and key != ALSO]
    said = {name for _, _, used in members for name in used} | set(row)
    for place, name in enumerate(names):
        if name not in said:
            members.insert(_place(members, names[:place], names), (name, f"${name}", {name}))
    completed = {key: value for key, value, _ in members}
    return {**completed, **({ALSO: row[ALSO]} if ALSO in row else {})}


def _place(members: list[tuple[Any, Any, set[str]]], before: tuple[str, ...], names: tuple[str, ...]) -> int:
    for name in reversed(before):
        for index, (key, _, used) in enumerate(members):
            if name in used or name == key:
                return index + 1
    known = set(names)
    return next((index for index, (key, _, used) in enumerate(members) if used & known or key in known), len(members))


def _names_in(value: Any) -> set[str]:
    node = parse_expression(value, (), lambda path, message: None)
    return {slot.name for slot, _ in slots(node)}
