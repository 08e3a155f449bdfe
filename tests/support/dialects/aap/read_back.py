"""What an AAP client reads of a conversation, and what an import of it loses."""

from typing import Any

PATHS = ("/aap/sessions/{}", "/aap/sessions/{}/history?type=full")
HINTS = ("A person must decide whether the agent goes on.", "A person must choose a state to go back to.")


def comparable(bodies: list[Any]) -> list[Any]:
    """Without what the import declares as lost: the choices of the agent, and hints how to answer."""
    session, history = bodies
    for message in history["history"]["full"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block.get("description", "").startswith(HINTS):
                del block["description"]
    return [{**session, "agent": {**session["agent"], "options": {}, "tools": []}}, history]
