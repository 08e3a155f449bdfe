"""Bytes to and from upstream servers: HTTP/1.1 connections, their pool, decompression, server-sent events."""

from .error_messages import error_text
from .http1_connection import Http1Connection
from .http_client import MAX_BODY_BYTES, EventStream, HttpClient
from .sse_decoder import SseDecoder, SseEvent

__all__ = [
    "MAX_BODY_BYTES",
    "EventStream",
    "Http1Connection",
    "HttpClient",
    "SseDecoder",
    "SseEvent",
    "error_text",
]
