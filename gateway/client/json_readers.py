"""Typed readers for values in the JSON of upstream servers: lenient ones, and ones that name what is malformed."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import gateway.model as m
from gateway.errors import BackendFailed

MOST_TOKENS = 2**53
"""A count that is larger than every JSON number is none."""


def text(value: Any) -> str:
    """A text; an empty one for anything else."""
    return value if isinstance(value, str) else ""


def optional_text(value: Any) -> str | None:
    """A text that is not empty; None for anything else."""
    return value if isinstance(value, str) and value else None


def members(value: Any) -> dict[str, Any]:
    """An object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; none for anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def require_object(value: Any, what: str) -> dict[str, Any]:
    """An object; `what` names it in the error if it is none."""
    if not isinstance(value, dict):
        raise BackendFailed(f"the server sent {what} that is no object")
    return value


def require_objects(value: Any, what: str) -> list[dict[str, Any]]:
    """A list of objects, which may be null; `what` names it in the error if it is none."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise BackendFailed(f"the server sent {what} that are no list")
    return [require_object(one, f"one of {what}") for one in value]


def require_id(value: Mapping[str, Any], what: str) -> str:
    """The id of an object; `what` names the object in the error if it has none."""
    found = optional_text(value.get("id"))
    if found is None:
        raise BackendFailed(f"the server sent {what} that has no id")
    return found


def read_count(value: Any) -> int:
    """A count; 0 for what is no number, is negative or is out of all bounds."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 < value < MOST_TOKENS else 0


def read_usage(counts: Mapping[str, Any] | None) -> m.Usage:
    """Usage by the names of the model."""
    return m.Usage(**{name: read_count(count) for name, count in (counts or {}).items()})


def parse_timestamp(value: Any) -> float | None:
    """An ISO 8601 time in seconds since 1970, in UTC if it has no zone; None for anything else."""
    try:
        at = datetime.fromisoformat(value)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
