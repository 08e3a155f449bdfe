"""Requests of Blade that last as long as a turn; a client may leave before."""

from typing import Any


def requests(words: str) -> dict[str, tuple[str, Any]]:
    """By name, the path below the mount and the body; {} stands for the session."""
    return {"plain": ("/sessions/{}/chat", {"message": words})}
