"""No message of CAS waits for a place on a stream: streams are read apart from messages."""

from tests.support.refused_messages import Say

WAYS: dict[str, Say] = {}
AT_ONCE: tuple[str, ...] = ()
"""Those whose answer comes when the turn is over."""
