"""What is done to a JSON value at a path: dropped, null, of a wrong type, unheard of, extended, or another value."""

from typing import Any

from conformance.faults.kill.paths import Walk, changed

UNHEARD = "unheard_of"
WRONG: dict[type, Any] = {str: 7, int: "7", float: "7", bool: "yes", list: "x", dict: "x", type(None): 7}


def _drop(container: Any, key: Any) -> None:
    del container[key]


def _null(container: Any, key: Any) -> None:
    container[key] = None


def _type(container: Any, key: Any) -> None:
    container[key] = WRONG[type(container[key])]


def _enum(container: Any, key: Any) -> None:
    container[key] = UNHEARD


def _extra(container: Any, key: Any) -> None:
    container[key][UNHEARD] = {"of": ["this", 1]}


def _alter(container: Any, key: Any) -> None:
    match container[key]:
        case bool(value):
            container[key] = not value
        case int(value) | float(value):
            container[key] = value + 1
        case str(value):
            container[key] = f"{value}-altered"


FIELD_DAMAGE = {"drop": _drop, "null": _null, "type": _type, "enum": _enum, "extra": _extra, "alter": _alter}


def can_damage(kind: str, value: Any, path: str) -> bool:
    """Whether this can be done to the value, and changes it."""
    match kind:
        case "drop":
            return path != ""
        case "null":
            return value is not None
        case "enum":
            return isinstance(value, str)
        case "extra":
            return isinstance(value, dict)
        case "alter":
            return isinstance(value, str | int | float)
        case _:
            return True


def damaged_copy(walk: Walk, kind: str, value: Any, path: str) -> tuple[Any, int]:
    """A copy that is damaged wherever the path leads and damage can be done, and in how many places it is."""
    struck = 0

    def strike(container: Any, key: Any) -> None:
        nonlocal struck
        if can_damage(kind, container[key], path):
            FIELD_DAMAGE[kind](container, key)
            struck += 1

    whole, _ = changed(walk, value, path, strike)
    return whole, struck
