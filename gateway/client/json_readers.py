"""A dialect spoken as a client: what the house wants of those who can, whatever the dialect."""

from datetime import UTC, datetime
from typing import Any


def parse_timestamp(told: Any) -> float | None:
    """The time that a server tells in ISO 8601, in seconds; without a zone it is UTC. None for anything else."""
    try:
        at = datetime.fromisoformat(told)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
