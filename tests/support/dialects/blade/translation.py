"""What is known of streams that are translated to and from Blade, beside what the tables declare."""

ONLY_SHOWN: dict[str, dict[str, list[str]]] = {}
"""By target and directive, features that a stream cannot tell although Blade can."""
FIRST_WORDS = b'"text_delta":"hello "'
"""What is in the stream as soon as the agent has begun to say hello."""
RECORDED_HELLOS = [
    ("chat:send", {"session_id": "s", "message": "hello"}),
    ("POST /api/sessions/s/chat", {"message": "hello"}),
    ("turn:start", {"role": "user", "blocks": [{"type": "text", "content": "hello"}]}),
]
"""Every way in which a recording shows that somebody said hello: the name of a frame or a request, and its body."""
RECORDED_STOPS = [("chat:stop", {"session_id": "s"}), ("POST /api/sessions/s/stop", {})]
"""Every way in which a recording shows that somebody stopped the agent."""
