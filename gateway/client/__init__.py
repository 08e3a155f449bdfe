"""The client side: HTTP to upstream servers, and the assembly of valid events from their responses."""

from .address_policy import AddressPolicy, AddressRefused, GuardedResolver
from .event_writer import INPUT_FRAGMENT_LENGTH, NO_USAGE, BackendEvents, BackendOutputs, EventWriter, events_of
from .json_readers import parse_timestamp
from .redaction import MIN_SECRET_LENGTH, REDACTED, long_secrets, redact
from .remote_turn import GeneratorTurn, ItemGenerator, generator_turn
from .secret_filter import SecretFilter
from .stream_assembler import StreamAssembler
from .surrogates import replace_lone_surrogates, replace_lone_surrogates_in_steps
from .transport import (
    MAX_BODY_BYTES,
    MAX_RETRY_WAIT,
    EventStream,
    Http1Connection,
    HttpClient,
    SseDecoder,
    SseEvent,
    error_text,
)

__all__ = [
    "INPUT_FRAGMENT_LENGTH",
    "MAX_BODY_BYTES",
    "MAX_RETRY_WAIT",
    "MIN_SECRET_LENGTH",
    "NO_USAGE",
    "REDACTED",
    "AddressPolicy",
    "AddressRefused",
    "BackendEvents",
    "BackendOutputs",
    "EventStream",
    "EventWriter",
    "GeneratorTurn",
    "GuardedResolver",
    "Http1Connection",
    "HttpClient",
    "ItemGenerator",
    "SecretFilter",
    "SseDecoder",
    "SseEvent",
    "StreamAssembler",
    "error_text",
    "events_of",
    "generator_turn",
    "long_secrets",
    "parse_timestamp",
    "redact",
    "replace_lone_surrogates",
    "replace_lone_surrogates_in_steps",
]
