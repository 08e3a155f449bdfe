"""The memories that fit a message, for models: a part of the system text."""

from collections.abc import Sequence

import gateway.model as m

HEADING = "What you know of the user from earlier conversations, as far as it fits the message:"


def with_memories(system: str | None, memories: Sequence[m.MemoryRef]) -> str | None:
    """A system text that ends with the memories, if there are any."""
    return "\n\n".join(filter(None, (system, memories_text(memories)))) if memories else system


def memories_text(memories: Sequence[m.MemoryRef]) -> str:
    """The memories, each on a line of its own; nothing if there are none."""
    lines = (f"- {' '.join(memory.content.split())}" for memory in memories)
    return "\n".join((HEADING, *lines)) if memories else ""
