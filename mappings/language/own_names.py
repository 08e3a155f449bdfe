"""Completes the rows of `objects`: what a row does not mention goes out under its own name."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gateway.yaml_positions import YamlDocument

from .expressions import SPLICE, parse_expression, slots
from .scopes import ObjectNames, object_names

OBJECTS, DROP, ALSO = "objects", "$drop", "also"
ID, TYPE = "id", "type"


class Member(NamedTuple):
    """One member of a row, with the names that its value uses."""

    key: Any
    value: Any
    names: set[str]


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

    `id` stands first, before a constant `type`. `name: $drop` leaves a name out, and `...: $drop` all that are not
    mentioned.
    """
    if row.get(SPLICE) == DROP:
        return {key: value for key, value in row.items() if value != DROP}
    members = [Member(key, value, _names_in(value)) for key, value in row.items() if value != DROP and key != ALSO]
    said = {name for member in members for name in member.names} | set(row)
    for number, name in enumerate(names):
        if name not in said:
            members.insert(_place(members, name, names[:number], names), Member(name, f"${name}", {name}))
    completed = {member.key: member.value for member in members}
    return {**completed, **({ALSO: row[ALSO]} if ALSO in row else {})}


def _place(members: list[Member], name: str, before: tuple[str, ...], names: tuple[str, ...]) -> int:
    for other in reversed(before):
        using = [place for place, member in enumerate(members) if other in member.names]
        found = using or [place for place, member in enumerate(members) if other == member.key]
        if found:
            return _behind(members, found[0])
    if name == ID:
        return 0
    known = set(names)
    return next((place for place, member in enumerate(members) if member.names & known or member.key in known),
                len(members))


def _behind(members: list[Member], place: int) -> int:
    """The place after this one; a constant `type` stays beside what it follows."""
    following = members[place + 1] if place + 1 < len(members) else None
    return place + (2 if following and following.key == TYPE and not following.names else 1)


def _names_in(value: Any) -> set[str]:
    node = parse_expression(value, (), lambda path, message: None)
    return {slot.name for slot, _ in slots(node)}
