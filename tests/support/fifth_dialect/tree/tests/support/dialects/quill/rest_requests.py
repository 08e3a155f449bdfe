"""The requests of Quill that tests of all dialects send over plain HTTP."""

from typing import Any

CREATE = ("/quill/talks", None)
READS = ("/quill/talks", "/quill/talks/{id}")
"""The talk among others, and what was written in it."""
WITH_BODY = "/quill/talks/nobody/lines"
UNKNOWN_AGENT = 409
"""The status of a line to an agent that is not served any more."""


def message(session: str, words: str) -> tuple[str, Any]:
    """Writes this in a talk."""
    return f"/quill/talks/{session}/lines", {"text": words}


def error_text(body: Any) -> str:
    return str(body["error"])
