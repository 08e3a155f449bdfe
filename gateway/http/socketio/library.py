"""Replacements for parts of python-socketio: its WebSocket, its JSON, its request input and its logger."""

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

import orjson
import structlog
from aiohttp import WSCloseCode, web
from engineio.async_drivers.aiohttp import WebSocket, translate_request  # type: ignore[import-untyped]

from gateway.http.request import REQUEST_BODY
from gateway.json_values import JsonValue, Steps, run_steps
from gateway.logging import SampledLogger
from gateway.time_slices import SLICE_BYTES, run_in_slices

log = structlog.get_logger("dragoman.socketio")

UNKNOWN_PACKET_ERROR = "Unknown receive error"
"""The message of the library about a packet of an unknown type."""
JsonReader = Callable[[str], Steps[JsonValue]]


class SocketIOJson:
    """Reads and writes JSON for the Socket.IO server."""

    @staticmethod
    def dumps(value: object, **_: object) -> str:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()

    def __init__(self, reads: JsonReader) -> None:
        self._reads = reads
        self._ahead: tuple[str, JsonValue] | None = None

    async def read_ahead(self, text: str) -> None:
        """Parse JSON in slices before the library, which parses at once, asks for it."""
        self._ahead = text, await run_in_slices(self._reads(text))

    def loads(self, text: str) -> JsonValue:
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == text:
            return ahead[1]
        if len(text) > SLICE_BYTES:
            raise ValueError("a long packet is an event: its number, and an array")
        return run_steps(self._reads(text))


class PacketErrorHandler(Protocol):
    """Receives packets that are refused."""

    async def refuse_size(self, transport_id: str) -> None: ...
    def log_malformed(self, error: Exception) -> str: ...


class SocketIOWebSocket(WebSocket):  # type: ignore[misc]  # the library has no types
    """The WebSocket of the library; a client whose packet is too large or malformed learns why it is disconnected."""

    def __init__(self, server: PacketErrorHandler, handler: Any, eio: object) -> None:
        super().__init__(handler, eio)
        self._connection, self._server = handler.__self__, server

    async def __call__(self, environ: dict[str, Any]) -> web.WebSocketResponse:
        refuse = partial(self._server.refuse_size, self._connection.sid)
        self._sock = _SizeLimitedResponse(refuse, max_msg_size=self.server.max_http_buffer_size, compress=False)
        await self._sock.prepare(environ["aiohttp.request"])
        try:
            await self.handler(self)
        except ValueError as error:
            self._server.log_malformed(error)
            await self._connection.close(wait=False, abort=True)
            await self._sock.close(code=WSCloseCode.PROTOCOL_ERROR)
        return self._sock


class _SizeLimitedResponse(web.WebSocketResponse):
    """A WebSocket that sends a reason before it closes on a message that is too large."""

    def __init__(self, refuse: Callable[[], Awaitable[None]], **given: Any) -> None:
        super().__init__(**given)
        self._refuse = refuse

    async def close(self, *, code: int = WSCloseCode.OK, message: bytes = b"", drain: bool = True) -> bool:
        if code == WSCloseCode.MESSAGE_TOO_BIG and not self.closed:
            await self._refuse()
        return await super().close(code=code, message=message, drain=drain)


class _RequestInput:
    """The body of a request, read already, as an input of the library."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def read(self, length: int) -> bytes:
        return self._body[:length]


def translate_with_body(request: web.Request) -> JsonValue:
    environ, body = translate_request(request), request.get(REQUEST_BODY, b"")
    return {**environ, "wsgi.input": _RequestInput(body), "CONTENT_LENGTH": str(len(body))}


class SocketIOLibraryLogger:
    """The logger that python-socketio gets: it drops lines that show packets, and writes errors to the server log."""

    def __init__(self, sampled: SampledLogger) -> None:
        self._sampled = sampled

    def debug(self, *_: object, **__: object) -> None: ...
    def info(self, *_: object, **__: object) -> None: ...
    def warning(self, *_: object, **__: object) -> None: ...

    def error(self, words: str, *args: object, **__: object) -> None:
        """Write errors of clients: an unknown version, transport or origin."""
        self._sampled.info("socketio_library_error", text=(words % args if args else words)[:200])

    def exception(self, words: str, *args: object, **__: object) -> None:
        error = sys.exc_info()[1]
        if isinstance(error, ValueError) or words == UNKNOWN_PACKET_ERROR:  # a mistake of the client, not of the server
            self._sampled.info("socketio_packet_malformed", reason=str(error)[:200])
        else:
            log.exception("socketio_library_failed", text=words % args if args else words)
