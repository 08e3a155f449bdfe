"""The requests of Blade that tests of all dialects send over plain HTTP."""

from typing import Any

CREATE = ("/api/sessions", {"intent": "x"})
READS = ("/api/sessions", "/api/sessions/{id}", "/api/sessions/{id}/messages")
"""The session among others, the session, and what was said in it."""
WITH_BODY = "/api/sessions"
UNKNOWN_AGENT = None
"""A session has no agent of its own: the message goes to the agent that is served now."""


def message(session: str, words: str) -> tuple[str, Any]:
    """Says this in a session."""
    return f"/api/sessions/{session}/chat", {"message": words}


def error_text(body: Any) -> str:
    return str(body["detail"])
