"""No request of CAS lasts as long as a turn: streams are read apart from messages."""

from typing import Any


def requests(words: str) -> dict[str, tuple[str, Any]]:
    """By name, the path below the mount and the body."""
    return {}
