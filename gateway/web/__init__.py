"""Bytes: requests read, replies and streams written, callers known, refusals spelled."""

from .context import Context
from .cors import Cors
from .downloads import address, attachment, linked
from .guard import NOBODY, OWNER, Guard, bearer, public
from .idempotency import Idempotency
from .jsonio import checked, dumps, limited, parse, read_as, read_bytes, reply
from .paging import cursor_of, ordinal_of
from .refusals import Refusals
from .resuming import Rest
from .socketio import Later, Peer, SocketServer, parted
from .sockets import SOCKETS, Socket, converse, keep_sockets
from .sse import pump
from .tracing import name_request, request_id_of
from .uploads import Form, clean_name, media_type_of, receive, receive_many

__all__ = [
    "NOBODY",
    "OWNER",
    "SOCKETS",
    "Context",
    "Cors",
    "Form",
    "Guard",
    "Idempotency",
    "Later",
    "Peer",
    "Refusals",
    "Rest",
    "Socket",
    "SocketServer",
    "address",
    "attachment",
    "bearer",
    "checked",
    "clean_name",
    "converse",
    "cursor_of",
    "dumps",
    "keep_sockets",
    "limited",
    "linked",
    "media_type_of",
    "name_request",
    "ordinal_of",
    "parse",
    "parted",
    "public",
    "pump",
    "read_as",
    "read_bytes",
    "receive",
    "receive_many",
    "reply",
    "request_id_of",
]
