"""Bytes: requests read, replies and streams written, callers known, refusals spelled."""

from .context import Context
from .guard import NOBODY, OWNER, Guard, bearer, public
from .jsonio import dumps, parse, read_as, read_bytes, reply
from .paging import cursor_of, ordinal_of
from .refusals import Refusals
from .sse import pump

__all__ = [
    "NOBODY",
    "OWNER",
    "Context",
    "Guard",
    "Refusals",
    "bearer",
    "cursor_of",
    "dumps",
    "ordinal_of",
    "parse",
    "public",
    "pump",
    "read_as",
    "read_bytes",
    "reply",
]
