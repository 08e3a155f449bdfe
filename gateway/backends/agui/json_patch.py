"""JSON Patch: a new document with the operations applied."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any


class PatchError(Exception):
    """An operation that does not fit the document."""


def apply_patch(document: Any, operations: Iterable[Mapping[str, Any]]) -> Any:
    """Raises `PatchError` if an operation fails; then none was applied."""
    holder = {"": deepcopy(document)}
    for operation in operations:
        try:
            _apply(holder, operation)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise PatchError(f"{operation.get('op')} at '{operation.get('path')}': {error}") from None
    return holder[""]


def _apply(holder: Any, operation: Mapping[str, Any]) -> None:
    path = _steps(operation["path"])
    match operation["op"]:
        case "add":
            _add(holder, path, deepcopy(operation["value"]))
        case "remove":
            _remove(holder, path)
        case "replace":
            _remove(holder, path)
            _add(holder, path, deepcopy(operation["value"]))
        case "move":
            source = _steps(operation["from"])
            if path[:len(source)] == source and path != source:
                raise ValueError("nothing is moved into itself")
            _add(holder, path, _remove(holder, source))
        case "copy":
            _add(holder, path, deepcopy(_at(holder, _steps(operation["from"]))))
        case "test":
            if _at(holder, path) != operation["value"]:
                raise ValueError("another value is there")
        case other:
            raise ValueError(f"there is no operation {other}")


def _steps(pointer: str) -> list[str]:
    """The path of the whole document is empty; `~1` is a slash in a name, `~0` a tilde."""
    if pointer and not pointer.startswith("/"):
        raise ValueError("a path begins with a slash")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")]


def _at(place: Any, steps: list[str]) -> Any:
    for step in steps:
        place = place[_index(step, len(place) - 1) if isinstance(place, list) else step]
    return place


def _add(holder: Any, steps: list[str], value: Any) -> None:
    place, last = _at(holder, steps[:-1]), steps[-1]
    if isinstance(place, list):
        place.insert(len(place) if last == "-" else _index(last, len(place)), value)
    else:
        place[last] = value


def _remove(holder: Any, steps: list[str]) -> Any:
    place, last = _at(holder, steps[:-1]), steps[-1]
    return place.pop(_index(last, len(place) - 1)) if isinstance(place, list) else place.pop(last)


def _index(step: str, most: int) -> int:
    if not (step.isascii() and step.isdigit()) or (step != "0" and step.startswith("0")) or int(step) > most:
        raise IndexError(f"there is no place {step}")
    return int(step)
