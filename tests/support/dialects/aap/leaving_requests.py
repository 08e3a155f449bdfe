"""Requests of AAP that last as long as a turn; a client may leave before."""

from typing import Any


def requests(words: str) -> dict[str, tuple[str, Any]]:
    """By name, the path below the mount and the body; {} stands for the session."""
    said = [{"role": "user", "content": words}]
    return {
        "streamed": ("/sessions/{}/turns", {"messages": said, "stream": "delta"}),
        "at once": ("/sessions/{}/turns", {"messages": said, "stream": "none"}),
    }
