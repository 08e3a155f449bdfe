"""What a client may leave out of a list: by type, by status, by time; all of it from the query string."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from multidict import MultiMapping

from gateway.errors import Invalid

Query = MultiMapping[str]
BOUNDS: dict[str, Callable[[float, float], bool]] = {
    "gt": lambda at, bound: at > bound,
    "gte": lambda at, bound: at >= bound,
    "lt": lambda at, bound: at < bound,
    "lte": lambda at, bound: at <= bound,
}


def words(query: Query, *names: str) -> frozenset[str]:
    """All the words given under these names, as `name=a&name=b`, `name[]=a` or `name=a,b`."""
    spelled = [said for name in names for key in (name, f"{name}[]") for said in query.getall(key, [])]
    return frozenset(word for said in spelled for word in said.split(",") if word)


def between(query: Query) -> Callable[[float], bool]:
    """Whether a moment lies within `created_at[gt]` and its like."""
    bounds = [
        (holds, moment(said, key)) for word, holds in BOUNDS.items()
        for key in (f"created_at[{word}]",) if (said := query.get(key))
    ]
    return lambda at: all(holds(at, bound) for holds, bound in bounds)


def moment(said: str, param: str) -> float:
    """A time as RFC 3339 has it, in seconds since the epoch; without a zone it is UTC."""
    try:
        at = datetime.fromisoformat(said.replace(" ", "+"))
    except ValueError:
        raise Invalid(f"{param}: '{said[:64]}' is not a time", param=param) from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def kept_events(query: Query) -> Callable[[Any], bool]:
    """Whether a list of events with this query has one."""
    types, in_time = words(query, "type", "types"), between(query)
    return lambda told: (
        (not types or told.event["type"] in types) and in_time(moment(told.event["created_at"], "created_at"))
    )
