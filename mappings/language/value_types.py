"""Types of values on the wire, as tables name them: `id!`, `text`, `int?`.

`!` marks a value that must be there; a type alone must fit where there is a value; `?` passes over what does not fit.
"""

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple, get_origin

from .scopes import union_members

_SEGMENT = re.compile(r"(?!\.{1,2}$)[^/%?#\s]+")
WHOLE_BODY, SOME_BODY = "object!", "object"
"""What `types` may say of `body`: that every frame has one, which is an object; or that it is one where it is there."""
_SPELLING = re.compile(r"([a-z]+)([!?]?)")


class Need(StrEnum):
    """What becomes of a frame whose value is missing or has another type."""

    REQUIRED = "!"
    """Missing or wrong: the frame is refused."""
    STRICT = ""
    """Wrong: the frame is refused. Missing: the value is null."""
    LENIENT = "?"
    """Missing or wrong: the value is null."""


class ValueType(NamedTuple):
    name: str = "any"
    need: Need = Need.STRICT

    def __str__(self) -> str:
        return self.name + self.need


def _is_blocks(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(block, dict) for block in value)


def _is_time(value: object) -> bool:
    return isinstance(value, str | float) or type(value) is int


CHECKS: dict[str, Callable[[Any], bool]] = {
    "any": lambda value: True,
    "text": lambda value: isinstance(value, str),
    "id": lambda value: isinstance(value, str) and value != "",
    "segment": lambda value: isinstance(value, str) and _SEGMENT.fullmatch(value) is not None,
    "int": lambda value: type(value) is int,
    "number": lambda value: type(value) is int or isinstance(value, float),
    "bool": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "list": lambda value: isinstance(value, list),
    "content": lambda value: isinstance(value, str) or _is_blocks(value),
    "time": _is_time,
}
NOUNS = {
    "any": "a value", "text": "a text", "id": "a text that is not empty",
    "segment": "an id that can be part of an address", "int": "a whole number",
    "number": "a number", "bool": "true or false", "object": "an object", "list": "a list",
    "content": "a text or a list of blocks", "time": "a time",
}


def parse_type(spelled: str) -> ValueType | None:
    """The type of this spelling; None where there is no such type."""
    found = _SPELLING.fullmatch(spelled)
    return ValueType(found[1], Need(found[2])) if found and found[1] in CHECKS else None


def type_of_hint(hint: object) -> str:
    """What a field of the model is on the wire, where no filter changes it."""
    kinds = {get_origin(kind) or kind for kind in union_members(hint)}
    if len(kinds) != 1:
        return "number" if kinds == {int, float} else "any"
    kind = kinds.pop()
    names: dict[Any, str] = {
        str: "text", int: "int", float: "number", bool: "bool", dict: "object", tuple: "list", list: "list",
    }
    return "text" if isinstance(kind, type) and issubclass(kind, StrEnum) else names.get(kind, "any")
