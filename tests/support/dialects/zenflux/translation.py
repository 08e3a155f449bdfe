"""What is known of streams that are translated to and from ZenFlux, beside what the tables declare."""

ONLY_SHOWN = {
    # ZenFlux tells the results of a message in the next one, so that more seems to wait when a turn stops in between.
    # It does not tell what a sub-agent's question was answered with.
    "aap": {"/parallel": ["permissions"], "/fork-ask": ["tool_results"]},
}
"""By target and directive, features that a stream cannot tell although ZenFlux can."""
FIRST_WORDS = b'"delta":"hello "'
"""What is in the stream as soon as the agent has begun to say hello."""
RECORDED_HELLOS = [
    ("", {"type": "req", "method": "chat.send", "params": {"message": "hello", "user_id": "u"}}),
    ("POST /api/v1/chat", {"message": "hello", "userId": "u"}),
]
"""Every way in which a recording shows that somebody said hello: the name of a frame or a request, and its body."""
RECORDED_STOPS = [
    ("", {"type": "req", "method": "chat.abort", "params": {"session_id": "r"}}),
    ("POST /api/v1/session/r/stop", {}),
]
"""Every way in which a recording shows that somebody stopped the agent."""
