"""Paths into JSON values that fit every value of the same shape: `agents.each.options.each(select).default`.

Items of lists are `each`, told apart by what they say they are where the dialect has such members (discriminators).
What lies below an opaque member is the user's own and has no paths.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import orjson

ROOT = ""
Slot = tuple[Any, Any]
"""A container and the key or index of one thing in it."""


@dataclass(frozen=True)
class Walk:
    """How the values of a dialect are walked."""

    discriminators: tuple[str, ...] = ()
    opaque: tuple[str, ...] = ()
    """Globs of paths below which nothing is looked at."""

    def paths(self, value: Any) -> Iterator[tuple[str, Any]]:
        """Every path in the value with what is there, the root first."""
        yield from self._walk(value, ROOT)

    def _walk(self, value: Any, here: str) -> Iterator[tuple[str, Any]]:
        yield here, value
        for _, step, item in self._inside(value, here):
            if self.hides(step):
                yield step, item
            else:
                yield from self._walk(item, step)

    def hides(self, path: str) -> bool:
        """Whether what lies at the path is not the protocol's."""
        return any(fnmatchcase(path, glob) for glob in self.opaque)

    def slots(self, value: Any, path: str) -> list[Slot]:
        """Where in the value the path leads; the value itself has no slot."""
        found: list[Slot] = []
        self._find(value, path, found)
        return found

    def values(self, value: Any, path: str) -> list[Any]:
        """What is found at the path."""
        return [value] if path == ROOT else [container[key] for container, key in self.slots(value, path)]

    def _find(self, value: Any, path: str, found: list[Slot]) -> None:
        for key, step, item in self._inside(value, ROOT):
            if path == step:
                found.append((value, key))
            elif path.startswith(step) and path[len(step)] == ".":
                self._find(item, path[len(step) + 1 :], found)

    def _inside(self, value: Any, here: str) -> Iterator[tuple[Any, str, Any]]:
        if isinstance(value, dict):
            for key, item in value.items():
                yield key, joined(here, key), item
        elif isinstance(value, list):
            for place, item in enumerate(value):
                yield place, joined(here, self._each(item)), item

    def _each(self, item: Any) -> str:
        if isinstance(item, dict):
            for name in self.discriminators:
                if isinstance(item.get(name), str):
                    return f"each({item[name]})"
        return "each"


def joined(here: str, step: str) -> str:
    return f"{here}.{step}" if here else step


def copied(value: Any) -> Any:
    """A value that can be changed without changing the other."""
    return orjson.loads(orjson.dumps(value))


def changed(walk: Walk, value: Any, path: str, change: Callable[[Any, Any], None]) -> tuple[Any, int]:
    """A copy with every slot at the path changed, and how many there were."""
    box = [copied(value)]
    slots: list[Slot] = [(box, 0)] if path == ROOT else walk.slots(box[0], path)
    for container, key in reversed(slots):
        change(container, key)
    return (box[0] if box else None), len(slots)
