"""The requests of CAS that tests of all dialects send over plain HTTP."""

from typing import Any

SESSIONS = "/api/v1/cloud/sessions"
CREATE = (SESSIONS, {"agent": "agent_demo", "environment": {"config": {"type": "cloud"}}})
READS = (SESSIONS, f"{SESSIONS}/{{id}}", f"{SESSIONS}/{{id}}/events")
"""The session among others, the session, and what was said in it."""
WITH_BODY = SESSIONS
UNKNOWN_AGENT = 409
"""The status of a message to an agent that is not served any more."""


def message(session: str, words: str) -> tuple[str, Any]:
    """Says this in a session."""
    return f"{SESSIONS}/{session}/events", {"events": [{"type": "user.message", "content": words}]}


def error_text(body: Any) -> str:
    return str(body["error"]["message"])
