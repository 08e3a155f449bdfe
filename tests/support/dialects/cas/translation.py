"""What is known of streams that are translated to and from CAS, beside what the tables declare."""

ONLY_SHOWN = {
    # The stream of a session tells that there are sub-agents; what they say is told by their own threads.
    "blade": {"/fork": ["subagents"], "/fork-ask": ["subagents"], "/rollback": ["rollbacks"]},
    # A session's stream tells why a turn ended, and not why its last message did, which is what ZenFlux shows.
    "zenflux": {"/refuse": ["stop_reasons"], "/max-tokens": ["stop_reasons"]},
    # CAS tells an answer as a result that the client returned; AAP does not tell a client what it has returned.
    "aap": {"/ask": ["tool_results"], "/fork-ask": ["tool_results"]},
}
"""By target and directive, features that a stream cannot tell although CAS can."""
FIRST_WORDS = b"session.status_running"
"""What is in the stream as soon as the agent has begun to say hello."""
RECORDED_HELLOS = [("POST /sessions/s/events", {"events": [{"type": "user.message", "content": "hello"}]})]
"""Every way in which a recording shows that somebody said hello: the name of a frame or a request, and its body."""
RECORDED_STOPS = [("POST /sessions/s/events", {"events": [{"type": "user.interrupt"}]})]
"""Every way in which a recording shows that somebody stopped the agent."""
