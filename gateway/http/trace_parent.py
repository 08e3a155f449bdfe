"""Takes up the trace of a client's request: turns that the request starts are part of it."""

from aiohttp import web
from aiohttp.typedefs import Handler

from gateway.trace_context import HEADER, read_traceparent, within_trace


@web.middleware
async def take_traceparent(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A WebSocket is one request: all turns that its messages start belong to the trace of the handshake."""
    parent = read_traceparent(request.headers.get(HEADER, ""))
    if parent is None:
        return await handler(request)
    with within_trace(parent.header):
        return await handler(request)
