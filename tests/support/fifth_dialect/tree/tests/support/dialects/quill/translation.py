"""What is known of streams that are translated to and from Quill, beside what the tables declare."""

from typing import Any

ONLY_SHOWN: dict[str, Any] = {}
"""By target and directive, features that a stream cannot tell although Quill can."""
FIRST_WORDS = b'"text":"hello "'
"""What is in the stream as soon as the agent has begun to say hello."""
RECORDED_HELLOS = [("POST /quill/talks/t/lines", {"text": "hello"})]
"""Every way in which a recording shows that somebody said hello: the name of a frame or a request, and its body."""
RECORDED_STOPS: list[tuple[str, Any]] = []
"""Every way in which a recording shows that somebody stopped the agent."""
