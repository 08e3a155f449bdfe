"""What is known of streams that are translated to and from Quill, beside what the tables declare."""

from typing import Any

ONLY_SHOWN: dict[str, Any] = {}
"""By target and directive, features that a stream cannot tell although Quill can."""
FIRST_WORDS = b'"text":"hello "'
"""What is in the stream as soon as the agent has begun to say hello."""
