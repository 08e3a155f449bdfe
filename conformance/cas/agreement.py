"""Two showings of one thing: what both of them have must be the same; either may have more."""

from typing import Any

from conformance.kit import expect


def shared(value: Any, other: Any) -> Any:
    """The value without the members that the other does not have."""
    if isinstance(value, dict) and isinstance(other, dict):
        return {name: shared(item, other[name]) for name, item in value.items() if name in other}
    if isinstance(value, list) and isinstance(other, list) and len(value) == len(other):
        return [shared(item, its) for item, its in zip(value, other, strict=True)]
    return value


def agree(what: str, first: Any, second: Any) -> None:
    """Expect that the two do not contradict each other."""
    expect.equal(what, shared(first, second), shared(second, first))
