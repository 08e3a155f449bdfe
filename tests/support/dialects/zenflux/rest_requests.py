"""The requests of ZenFlux that tests of all dialects send over plain HTTP."""

from typing import Any

CREATE = ("/api/v1/conversations?user_id=local", None)
READS = ("/api/v1/conversations", "/api/v1/conversations/{id}", "/api/v1/conversations/{id}/messages")
"""The conversation among others, the conversation, and what was said in it."""
WITH_BODY = "/api/v1/chat"
UNKNOWN_AGENT = 404
"""The status of a message to an agent that is not served any more."""


def message(session: str, words: str) -> tuple[str, Any]:
    """Says this in a conversation."""
    return "/api/v1/chat", {"message": words, "userId": "local", "conversationId": session, "stream": False}


def error_text(body: Any) -> str:
    return str(body["message"])
