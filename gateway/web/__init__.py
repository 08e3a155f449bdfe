"""Bytes: requests read, replies and streams written, callers known, refusals spelled."""

from .admissions import Admissions
from .allow_list import AllowList
from .bodies import deferred
from .connections import LIMITS, Runner
from .context import Context
from .cors import mark
from .downloads import address, attachment, linked
from .fail_fast import FailFast
from .guard import CALLER, NOBODY, OWNER, Guard, bearer, current_caller, for_admins, public
from .health import Readiness
from .health import routes as health_routes
from .idempotency import Idempotency
from .jsonio import checked, dumps, encoded, limited, parse, read_as, read_bytes, reply
from .long_answers import answer
from .metrics import LagWatch, Metrics
from .metrics import routes as metrics_routes
from .origin_policy import OriginPolicy, takes_any_type
from .paging import cursor_of, ordinal_of
from .parting import hold_little
from .peers import Peer, parted
from .rates import WRONG_KEYS, Rates, WrongKeys
from .refusals import Refusals, Refused
from .resuming import Rest
from .socketio import Later, SocketServer
from .sockets import SOCKETS, Socket, converse, keep_sockets
from .sse import pump
from .tracing import name_request, request_id_of
from .trusted_proxies import TrustedProxies
from .uploads import Form, clean_name, media_type_of, receive, receive_many

__all__ = [
    "CALLER",
    "LIMITS",
    "NOBODY",
    "OWNER",
    "SOCKETS",
    "WRONG_KEYS",
    "Admissions",
    "AllowList",
    "Context",
    "FailFast",
    "Form",
    "Guard",
    "Idempotency",
    "LagWatch",
    "Later",
    "Metrics",
    "OriginPolicy",
    "Peer",
    "Rates",
    "Readiness",
    "Refusals",
    "Refused",
    "Rest",
    "Runner",
    "Socket",
    "SocketServer",
    "TrustedProxies",
    "WrongKeys",
    "address",
    "answer",
    "attachment",
    "bearer",
    "checked",
    "clean_name",
    "converse",
    "current_caller",
    "cursor_of",
    "deferred",
    "dumps",
    "encoded",
    "for_admins",
    "health_routes",
    "hold_little",
    "keep_sockets",
    "limited",
    "linked",
    "mark",
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
    "takes_any_type",
]
