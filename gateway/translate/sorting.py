"""Which session a piece belongs to, by what it says of itself or by the stream it came on."""

import re
from collections.abc import Mapping
from typing import Any

from gateway.upstream import Frame

NAMES = ("conversation_id", "conversationId", "session_id", "sessionId")
"""What sessions go by, the durable name before the fleeting one."""
INSIDE = ("payload", "params", "data")
PATH = re.compile(r"/(?:sessions|conversations)/([^/?\s]+)")
LIKE_AN_ID = re.compile(r"[\w.:\-]{1,128}", re.ASCII)


class Sorter:
    """Remembers, stream by stream, what the sessions on it are called."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[str, str]] = {}

    def session_of(self, stream: str, frame: Frame) -> str | None:
        """The session's name; that of the frame before, where this one has none; None where there is none at all.

        On a stream whose frames have had the durable name the fleeting one counts for nothing.
        """
        found = _named(frame)
        before = self._last.get(stream)
        if found is None or (before is not None and NAMES.index(found[0]) > NAMES.index(before[0])):
            return before[1] if before is not None else None
        if len(self._last) > 4096:
            self._last.clear()
        self._last[stream] = found
        return found[1]


def _named(frame: Frame) -> tuple[str, str] | None:
    on_path = PATH.search(frame.name)
    if on_path is not None and LIKE_AN_ID.fullmatch(on_path[1]):
        return NAMES[0], on_path[1]
    body = frame.body if isinstance(frame.body, Mapping) else {}
    inner: list[Mapping[str, Any]] = [body, *(body[at] for at in INSIDE if isinstance(body.get(at), Mapping))]
    for name in NAMES:
        for where in inner:
            value = where.get(name)
            if isinstance(value, str) and LIKE_AN_ID.fullmatch(value):
                return name, value
    return None
