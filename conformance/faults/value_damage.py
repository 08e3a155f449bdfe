"""Damage: a JSON value with one thing in it lost or replaced, for servers whose answers cannot be relied on."""

import random
from collections.abc import Iterator
from typing import Any

import orjson

JUNK: list[Any] = [None, 7, "x", [], {}, [{}], {"type": "text"}, True, -1.5]


def places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to everything in a JSON value."""
    yield here
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in inner:
        yield from places(item, (*here, name))


def damaged(value: Any, chance: random.Random) -> Any:
    """The value with one thing in it lost, or replaced by junk."""
    *way, last = chance.choice([place for place in places(value) if place] or [(None,)])
    if last is None:
        return chance.choice(JUNK)
    whole = inner = orjson.loads(orjson.dumps(value))
    for name in way:
        inner = inner[name]
    if chance.random() < 0.4:
        del inner[last]
    else:
        inner[last] = chance.choice(JUNK)
    return whole


def without_nulls(value: Any) -> Any:
    """The value without the members and items that are null."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value if item is not None] if isinstance(value, list) else value
