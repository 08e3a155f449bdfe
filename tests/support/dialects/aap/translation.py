"""What is known of streams that are translated to and from AAP, beside what the tables declare."""

from typing import Any

ONLY_SHOWN = {
    # Blade has no id of the task that failed, and every reading makes one up.
    "blade": {"/rollback": ["rollbacks"]},
}
"""By target and directive, features that a stream cannot tell although AAP can."""
FIRST_WORDS = b'data: {"delta":"hello "}'
"""What is in the stream as soon as the agent has begun to say hello."""
RECORDED_HELLOS = [
    ("POST /aap/sessions/s/turns", {"messages": [{"role": "user", "content": "hello"}], "agent": {"name": "x"}}),
]
"""Every way in which a recording shows that somebody said hello: the name of a frame or a request, and its body."""
RECORDED_STOPS: list[tuple[str, Any]] = []
"""Every way in which a recording shows that somebody stopped the agent."""
