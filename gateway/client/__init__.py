"""The client side: HTTP to upstream servers, and the assembly of valid events from their responses."""

from .address_policy import AddressPolicy, AddressRefused, GuardedResolver
from .ask_readers import read_continuation, read_questions, read_rollback
from .cue_handlers import CueHandler, cue_handlers, decodes, read_names
from .event_writer import INPUT_FRAGMENT_LENGTH, NO_USAGE, BackendEvents, BackendOutputs, EventWriter, events_of
from .json_readers import (
    members,
    objects,
    optional_text,
    parse_timestamp,
    read_count,
    read_usage,
    require_id,
    require_object,
    require_objects,
    text,
)
from .pages import MAX_PAGES, PAGE, read_offsets, read_pages
from .reconnect import Reconnector, ResumableStream
from .redaction import MIN_SECRET_LENGTH, Redactor, long_secrets, redact
from .remote_turn import GeneratorTurn, ItemGenerator, generator_turn
from .retry import RETRYABLE_ERRORS, retry
from .secret_filter import SecretFilter
from .session_memory import SessionMemory
from .socketio import Acknowledgement, SocketIOConnection, SocketIOConnector
from .status import NOT_SERVED_STATUSES, status_error, suppress_statuses, upstream_status
from .stream_assembler import StreamAssembler
from .surrogates import replace_lone_surrogates, replace_lone_surrogates_in_steps
from .transport import (
    MAX_BODY_BYTES,
    EventStream,
    Http1Connection,
    HttpClient,
    SseDecoder,
    SseEvent,
    error_text,
)
from .websocket import WebSocketConnection, WebSocketConnector

__all__ = [
    "INPUT_FRAGMENT_LENGTH",
    "MAX_BODY_BYTES",
    "MAX_PAGES",
    "MIN_SECRET_LENGTH",
    "NOT_SERVED_STATUSES",
    "NO_USAGE",
    "PAGE",
    "RETRYABLE_ERRORS",
    "Acknowledgement",
    "AddressPolicy",
    "AddressRefused",
    "BackendEvents",
    "BackendOutputs",
    "CueHandler",
    "EventStream",
    "EventWriter",
    "GeneratorTurn",
    "GuardedResolver",
    "Http1Connection",
    "HttpClient",
    "ItemGenerator",
    "Reconnector",
    "Redactor",
    "ResumableStream",
    "SecretFilter",
    "SessionMemory",
    "SocketIOConnection",
    "SocketIOConnector",
    "SseDecoder",
    "SseEvent",
    "StreamAssembler",
    "WebSocketConnection",
    "WebSocketConnector",
    "cue_handlers",
    "decodes",
    "error_text",
    "events_of",
    "generator_turn",
    "long_secrets",
    "members",
    "objects",
    "optional_text",
    "parse_timestamp",
    "read_continuation",
    "read_count",
    "read_names",
    "read_offsets",
    "read_pages",
    "read_questions",
    "read_rollback",
    "read_usage",
    "redact",
    "replace_lone_surrogates",
    "replace_lone_surrogates_in_steps",
    "require_id",
    "require_object",
    "require_objects",
    "retry",
    "status_error",
    "suppress_statuses",
    "text",
    "upstream_status",
]
