"""What is read of a request: its body within limits, the numbers and cursors of its query, and its id."""

import asyncio
import re
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Iterable
from typing import TypeVar

from aiohttp import ClientPayloadError, hdrs, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError

from gateway.errors import Invalid, TooLarge
from gateway.ids import request_id

from .security import CONNECTION_LIMITS

T = TypeVar("T")

REQUEST_BODY = web.RequestKey("body", bytes)
MIN_BYTES_PER_SECOND = 16 * 1024
"""A body that arrives at this rate, in bytes per second, may take as long as it needs."""
MAX_COMPRESSION_RATIO = 100
"""How many times larger a body may become when decompressed; text becomes about five times larger."""
ALWAYS_ALLOWED_BYTES = 1024 * 1024
"""A body may become so large whatever the ratio."""
INFLATE_STEP_BYTES = 256 * 1024
"""The number of bytes that are decompressed in one slice."""
ZLIB_WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
BODY_ERRORS = (HttpProcessingError, RequestPayloadError, ClientPayloadError)


async def read_body(request: web.Request, most: int) -> bytes:
    """Return the whole decompressed body; a second call returns the same bytes."""
    found = request.get(REQUEST_BODY)
    if found is None:
        if (request.content_length or 0) > most:
            raise _too_large(most)
        content = request.content
        if content.is_eof() and content.exception() is None and hdrs.CONTENT_ENCODING not in request.headers:
            found = content.read_nowait()  # it arrived with the head
        else:
            found = await _read_in_pieces(request, most)
        request[REQUEST_BODY] = found
    if len(found) > most:
        raise _too_large(most)
    return found


async def _read_in_pieces(request: web.Request, most: int) -> bytes:
    body = bytearray()
    async for chunk in _inflated(request, most):
        body += chunk
        if len(body) > most:
            raise _too_large(most)
    return bytes(body)


def delay_100_continue(routes: Iterable[web.RouteDef]) -> list[web.RouteDef]:
    """Return the routes; a client that sends `Expect: 100-continue` is answered only when a handler reads the body."""
    return [web.RouteDef(route.method, route.path, route.handler, {"expect_handler": _ignore_expect, **route.kwargs})
            for route in routes]


async def _ignore_expect(request: web.Request) -> None:
    """Do not answer yet: the key is checked before the body is wanted."""


class BodyDeadline:
    """The time limit of a body: some seconds, and more while bytes keep arriving."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._began = asyncio.get_running_loop().time()
        self._seconds = request.app[CONNECTION_LIMITS]().body_seconds
        self._is_awaited = request.headers.get("Expect", "").lower() == "100-continue" and not request.content.is_eof()

    async def read(self, reading: Awaitable[T]) -> T:
        """Wait for a piece of the body; raises an error if it is late or malformed."""
        if self._is_awaited:
            self._is_awaited = False
            await self._request.writer.write(CONTINUE)
            self._request.writer.output_size = 0  # the response has not begun
        due = self._began + self._seconds + self._request.content.total_bytes / MIN_BYTES_PER_SECOND
        try:
            async with asyncio.timeout_at(due):
                return await reading
        except TimeoutError:
            raise web.HTTPRequestTimeout(
                reason=f"the body did not arrive within {self._seconds:g} seconds; send it faster, or in parts"
            ) from None
        except BODY_ERRORS as error:
            raise Invalid(f"the body cannot be read: {type(error).__name__}") from None


def refuse_compressed(request: web.Request) -> None:
    """Refuse a compressed body where the body is read without decompression."""
    if (encoding := _encoding(request)) != "identity":
        raise _unsupported_encoding(encoding, "none")


async def _inflated(request: web.Request, most: int) -> AsyncIterator[bytes]:
    encoding, deadline, content = _encoding(request), BodyDeadline(request), request.content
    if encoding != "identity" and encoding not in ZLIB_WINDOWS:
        raise _unsupported_encoding(encoding, "gzip and deflate")
    inflater = None
    while chunk := await deadline.read(content.readany()):
        if encoding == "identity":
            yield chunk
            continue
        inflater = inflater or _Inflater(encoding, chunk, most)
        async for piece in inflater.inflate(chunk, content.total_bytes):
            yield piece
    if inflater is not None:
        inflater.check_end()


class _Inflater:
    """Decompresses one body, and checks its ratio while it grows."""

    def __init__(self, encoding: str, first: bytes, most: int) -> None:
        window = ZLIB_WINDOWS[encoding]
        if encoding == "deflate" and first[0] & 0xF != 8:  # some clients leave out the header that RFC 1950 demands
            window = -window
        self._encoding = encoding
        self._zlib = zlib.decompressobj(window)
        self._size = 0
        self._most = most

    async def inflate(self, chunk: bytes, came: int) -> AsyncIterator[bytes]:
        while chunk and not self._zlib.eof:
            try:
                piece = self._zlib.decompress(chunk, INFLATE_STEP_BYTES)
            except zlib.error:
                raise self._broken() from None
            self._size += len(piece)
            if self._size > self._most:
                raise _too_large(self._most)
            if self._size > max(ALWAYS_ALLOWED_BYTES, MAX_COMPRESSION_RATIO * came):
                raise TooLarge(
                    f"the body becomes more than {MAX_COMPRESSION_RATIO} times as large when decompressed; "
                    "send it uncompressed"
                )
            yield piece
            chunk = self._zlib.unconsumed_tail
            if chunk:
                await asyncio.sleep(0)
        if chunk or self._zlib.unused_data:
            raise self._broken()

    def check_end(self) -> None:
        if not self._zlib.eof:
            raise self._broken()

    def _broken(self) -> Invalid:
        return Invalid(
            f"the body is not {self._encoding}, as its Content-Encoding says; send it so, or without the header",
            param="Content-Encoding",
        )


def _encoding(request: web.Request) -> str:
    return request.headers.get("Content-Encoding", "").strip().lower() or "identity"


def _too_large(most: int) -> TooLarge:
    return TooLarge(f"the body is larger than {most} bytes")


def _unsupported_encoding(encoding: str, known: str) -> web.HTTPUnsupportedMediaType:
    shown = encoding.encode("ascii", "replace").decode()[:40]
    return web.HTTPUnsupportedMediaType(reason=f"Content-Encoding: '{shown}' is not supported; {known} is")


def parse_whole_number(given: str, max_digits: int = 9) -> int | None:
    """The number that these ASCII digits are; None for anything else, and for more digits than allowed."""
    return int(given) if given.isascii() and given.isdigit() and len(given) <= max_digits else None


MAX_ORDINAL = 2**63 - 1
"""The largest position that every log supports."""


def encode_cursor(ordinal: int | None) -> str | None:
    return None if ordinal is None else urlsafe_b64encode(f"o{ordinal}".encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None) -> int | None:
    """Return the position of a cursor; raises an error if the cursor is not ours."""
    if cursor is None:
        return None
    try:
        text = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        if not text.startswith("o") or not 0 <= int(text[1:]) <= MAX_ORDINAL:
            raise ValueError(text)
        return int(text[1:])
    except ValueError:
        raise Invalid(f"'{cursor}' is not a cursor of this list") from None


REQUEST_ID_HEADER = "X-Request-Id"
REQUEST_ID = web.RequestKey("request_id", str)
_SAFE_ID = re.compile(r"[\x21-\x7e]{1,128}")


def request_id_of(request: web.BaseRequest) -> str:
    found = request.get(REQUEST_ID)
    if found is None:
        given = request.headers.get(REQUEST_ID_HEADER, "")
        found = request[REQUEST_ID] = given if _SAFE_ID.fullmatch(given) else request_id()
    return found


async def add_request_id(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """Add the id to a response; called before the response is sent."""
    response.headers.setdefault(REQUEST_ID_HEADER, request_id_of(request))
