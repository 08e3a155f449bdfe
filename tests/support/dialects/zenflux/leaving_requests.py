"""Requests of ZenFlux that last as long as a turn; a client may leave before."""

from typing import Any


def requests(words: str) -> dict[str, tuple[str, Any]]:
    """By name, the path below the mount and the body; {} stands for the session."""
    said = {"message": words, "conversation_id": "{}"}
    return {
        "streamed": ("/chat", {**said, "stream": True}),
        "titled": ("/chat", {**said, "stream": True, "background_tasks": ["title_generation"]}),
        "at once": ("/chat", {**said, "stream": False}),
    }
