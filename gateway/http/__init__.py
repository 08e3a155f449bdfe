"""The server side of HTTP: reads requests, writes responses and streams, keeps strangers out."""

from gateway.ports import ANONYMOUS

from .backpressure import ResumedSubscription, limit_send_buffers
from .context import Context
from .error_middleware import ErrorMiddleware, HttpStatusError
from .file_transfer import (
    UploadForm,
    absolute_url,
    attachment,
    guess_media_type,
    receive_files,
    receive_form,
    safe_file_name,
    signed_link_handler,
)
from .health import Readiness, health_routes
from .idempotency import Idempotency
from .json_io import (
    FailFast,
    WireModel,
    dumps,
    encode_array,
    json_response,
    limit_body_size,
    parse_json,
    pieces_response,
    read_bytes,
    read_json,
    read_json_object,
    validate,
)
from .metrics import KeyMetrics, LoopLagMonitor, Metrics, SessionMetrics, metrics_routes
from .pagination import decode_cursor, encode_cursor
from .query import parse_whole_number
from .request_body import delay_100_continue
from .request_id import add_request_id, request_id_of
from .security import (
    CALLER,
    CONNECTION_LIMITS,
    OWNER,
    WRONG_KEY_LIMITER,
    AllowList,
    Authenticator,
    LimitedAppRunner,
    OpenRequests,
    OriginPolicy,
    RateLimiter,
    TrustedProxies,
    WrongKeyLimiter,
    accepts_any_content_type,
    add_cors_headers,
    admins_only,
    bearer_token,
    current_caller,
    public,
)
from .socketio import DeferredAck, SocketIOClient, SocketIOServer
from .sse import stream_sse
from .websocket import OPEN_SOCKETS, WebSocketWriter, send_and_close, serve_websocket, track_open_sockets

__all__ = [
    "ANONYMOUS",
    "CALLER",
    "CONNECTION_LIMITS",
    "OPEN_SOCKETS",
    "OWNER",
    "WRONG_KEY_LIMITER",
    "AllowList",
    "Authenticator",
    "Context",
    "DeferredAck",
    "ErrorMiddleware",
    "FailFast",
    "HttpStatusError",
    "Idempotency",
    "KeyMetrics",
    "LimitedAppRunner",
    "LoopLagMonitor",
    "Metrics",
    "OpenRequests",
    "OriginPolicy",
    "RateLimiter",
    "Readiness",
    "ResumedSubscription",
    "SessionMetrics",
    "SocketIOClient",
    "SocketIOServer",
    "TrustedProxies",
    "UploadForm",
    "WebSocketWriter",
    "WireModel",
    "WrongKeyLimiter",
    "absolute_url",
    "accepts_any_content_type",
    "add_cors_headers",
    "add_request_id",
    "admins_only",
    "attachment",
    "bearer_token",
    "current_caller",
    "decode_cursor",
    "delay_100_continue",
    "dumps",
    "encode_array",
    "encode_cursor",
    "guess_media_type",
    "health_routes",
    "json_response",
    "limit_body_size",
    "limit_send_buffers",
    "metrics_routes",
    "parse_json",
    "parse_whole_number",
    "pieces_response",
    "public",
    "read_bytes",
    "read_json",
    "read_json_object",
    "receive_files",
    "receive_form",
    "request_id_of",
    "safe_file_name",
    "send_and_close",
    "serve_websocket",
    "signed_link_handler",
    "stream_sse",
    "track_open_sockets",
    "validate",
]
