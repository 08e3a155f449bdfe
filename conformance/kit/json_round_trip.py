"""JSON round trips: values that a server must store unchanged, and a check that it returns them unchanged."""

import json
from typing import Any

from conformance.kit import expect

SAFE = 2**53 - 1
"""The largest integer that every JSON library keeps: beyond it a library may have no more than a double's digits."""
CARRIED: dict[str, Any] = {
    "nothing": None,
    "yes": True,
    "no": False,
    "numbers": [0, -1, 0.25, 2**31, 2**32 + 1, SAFE, -SAFE],
    "words": ["", " spaced ", "«ÄÖ 中文 😀»", "a\nb\t\"c\" \\ \u2028"],
    "empty": [{}, [], ""],
    "deep": {"a": [{"b": [[{"c": [None, {"d": {"e": []}}]}]]}]},
    "": "a name without letters",
    "snake_case camelCase": {"type": "text", "id": "not an id of yours", "content": [{"type": "nobody-knows"}]},
}
"""Everything JSON can say, in names and shapes that no protocol has a use for."""
HUGE: dict[str, Any] = {"above": [SAFE + 2, 2**63, 2**64 + 1], "far above": 10**30, "below": -(2**63) - 1}
"""Integers that a server may refuse, but not turn into something else."""


def written(value: Any) -> bytes:
    """The value as JSON, with every digit of its integers."""
    return json.dumps(value).encode()


def came_back(what: str, sent: Any, seen: Any) -> None:
    """Expect the value that was sent: numbers to the precision of a double, everything else exactly."""
    expect.that(_told(sent) == _told(seen), f"{what} as it was sent: {expect.show(sent)}", seen)


def has_huge(value: Any) -> bool:
    """Whether there is a number beyond the safe ones anywhere in the value."""
    if isinstance(value, (dict, list)):
        return any(has_huge(item) for item in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, (int, float)) and abs(value) > SAFE


def _told(value: Any) -> str:
    return json.dumps(_rounded(value), sort_keys=True)


def _rounded(value: Any) -> Any:
    match value:
        case dict():
            return {name: _rounded(item) for name, item in value.items()}
        case list():
            return [_rounded(item) for item in value]
        case bool():
            return value
        case int() | float():
            return float(value)
        case _:
            return value
