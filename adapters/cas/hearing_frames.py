"""CAS, heard: what can be known of an event from outside: its type, its id, and whether the server keeps it."""

from gateway.upstream import Frame

PASSING = frozenset((
    "event_start", "event_delta", "agent.message_start", "agent.content_block_start", "agent.content_block_delta",
    "agent.content_block_stop", "agent.message_delta", "agent.message_stop",
))
"""What is told of a message while it is written, and never kept."""


def type_of(frame: Frame) -> str:
    """The type an event has itself, or else the name the transport gave it."""
    own = frame.body.get("type") if isinstance(frame.body, dict) else None
    return own if isinstance(own, str) else frame.name


def event_id_of(frame: Frame) -> str:
    """The id an event has itself, or else the one the transport gave it."""
    own = frame.body.get("id") if isinstance(frame.body, dict) else None
    return own if isinstance(own, str) and own else frame.id


def is_kept(frame: Frame) -> bool:
    """Whether a server keeps this event, so that a stream can be taken up after it."""
    return type_of(frame) not in PASSING


def final_id_of(frame: Frame) -> str:
    """The id of the event that a preview is of, where it names it."""
    event = frame.body.get("event") if isinstance(frame.body, dict) else None
    named = frame.body.get("event_id") if isinstance(frame.body, dict) else None
    found = event.get("id") if isinstance(event, dict) else named
    return found if isinstance(found, str) else ""
