"""What is known of streams that are translated to and from Blade, beside what the tables declare."""

ONLY_SHOWN: dict[str, dict[str, list[str]]] = {}
"""By target and directive, features that a stream cannot tell although Blade can."""
FIRST_WORDS = b'"text_delta":"hello "'
"""What is in the stream as soon as the agent has begun to say hello."""
