"""Readers for values in the JSON of upstream servers."""

from datetime import UTC, datetime
from typing import Any


def parse_timestamp(value: Any) -> float | None:
    """An ISO 8601 time in seconds since 1970, in UTC if it has no zone; None for anything else."""
    try:
        at = datetime.fromisoformat(value)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
