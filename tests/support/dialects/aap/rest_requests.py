"""The requests of AAP that tests of all dialects send over plain HTTP."""

from typing import Any

CREATE = ("/aap/sessions", {"agent": {"name": "demo", "tools": [{"name": "calc"}]}})
READS = (
    "/aap/sessions", "/aap/sessions/{id}", "/aap/sessions/{id}/history?type=full",
    "/aap/sessions/{id}/history?type=compacted",
)
"""The session among others, the session, and what was said in it."""
WITH_BODY = "/aap/sessions"
UNKNOWN_AGENT = 409
"""The status of a message to an agent that is not served any more."""


def message(session: str, words: str) -> tuple[str, Any]:
    """Says this in a session."""
    return f"/aap/sessions/{session}/turns", {"stream": "none", "messages": [{"role": "user", "content": words}]}


def error_text(body: Any) -> str:
    return str(body["error"])
