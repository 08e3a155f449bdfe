"""Bytes: requests read, replies and streams written, callers known, refusals spelled."""

from .context import Context
from .cors import Cors
from .downloads import address, attachment, linked
from .fail_fast import FailFast
from .guard import NOBODY, OWNER, Guard, bearer, public
from .health import Readiness
from .health import routes as health_routes
from .idempotency import Idempotency
from .jsonio import checked, dumps, encoded, limited, parse, read_as, read_bytes, reply
from .metrics import LagWatch, Metrics
from .metrics import routes as metrics_routes
from .paging import cursor_of, ordinal_of
from .parting import hold_little
from .peers import Peer, parted
from .refusals import Refusals, Refused
from .resuming import Rest
from .socketio import Later, SocketServer
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
    "FailFast",
    "Form",
    "Guard",
    "Idempotency",
    "LagWatch",
    "Later",
    "Metrics",
    "Peer",
    "Readiness",
    "Refusals",
    "Refused",
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
    "encoded",
    "health_routes",
    "hold_little",
    "keep_sockets",
    "limited",
    "linked",
    "media_type_of",
    "metrics_routes",
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
