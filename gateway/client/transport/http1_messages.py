"""HTTP/1.1 messages: requests to bytes, a parser of responses, decompression of bodies. No clock, no socket."""

import re
import zlib
from base64 import b64encode
from collections.abc import Callable, Mapping

import httptools
import orjson
from yarl import URL

from gateway.errors import BackendFailed, ConnectionLost
from gateway.json_values import JsonValue

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNFIT = re.compile("[\0-\x08\n-\x1f\x7f\ud800-\udfff]")


def default_headers(url: URL) -> dict[str, str]:
    """The headers of every request to a server. Compression is not requested: it delays chunks of a stream."""
    raw_host = url.raw_host or ""
    host = f"[{raw_host}]" if ":" in raw_host else raw_host
    headers = {
        "host": host if url.is_default_port() else f"{host}:{url.port}",
        "accept": "*/*", "accept-encoding": "identity", "user-agent": "dragoman",
    }
    if url.user is not None:
        who = f"{url.user}:{url.password or ''}".encode()
        headers["authorization"] = f"Basic {b64encode(who).decode()}"
    return headers


def normalize_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers with names in lower case; raises `BackendFailed` if one contains a line break."""
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or _UNFIT.search(value):
            raise BackendFailed(f"the header {name.strip()!r} has a line break or another control character")
    return {name.lower(): value for name, value in headers.items()}


def encode_request(
    method: str, url: URL, body: JsonValue | bytes, headers: Mapping[str, str], *, is_absolute: bool = False,
) -> bytes:
    """The bytes of a request; the headers must have been normalized. A proxy is told the whole address.

    A body of bytes is sent as it is, any other body as JSON.
    """
    target = f"{url.origin()}{url.raw_path_qs}" if is_absolute else url.raw_path_qs
    if not target.isascii() or not target.isprintable() or " " in target:
        raise BackendFailed("the path of a request has a line break or another control character")
    payload, more = b"", dict[str, str]()
    if isinstance(body, bytes):
        payload, more = body, {"content-length": str(len(body))}
    elif body is not None:
        payload = orjson.dumps(body)
        more = {"content-type": "application/json", "content-length": str(len(payload))}
    elif method not in ("GET", "HEAD"):
        more = {"content-length": "0"}
    head = "".join([f"{name}: {value}\r\n" for name, value in {**headers, **more}.items()])
    return f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + payload


PARSE_ERRORS = (httptools.HttpParserError, httptools.HttpParserUpgrade)
"""The exceptions of `ResponseParser.feed`."""


class ResponseParser:
    """Parses one response; chunks of the body go directly into `parts`."""

    def __init__(self) -> None:
        self.status, self.headers = 0, dict[str, str]()
        self.has_body = True
        """False if the request was HEAD: the headers then speak of a body that does not come."""
        self.parts: list[bytes] = []
        """The chunks of the body that were not read yet."""
        self.has_head = self.is_complete = False
        self.keep_alive = False
        """Whether the connection can take another request afterwards."""
        self.on_body = self.parts.append
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self.feed: Callable[[bytes], None] = self._parser.feed_data

    def release(self) -> None:
        """Free the parser. This object and the parser refer to each other; without this they would not be freed."""
        self._parser, self.feed = None, _ignore
        self.parts.clear()

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "application/octet-stream").partition(";")[0].strip().lower()

    @property
    def ends_with_connection(self) -> bool:
        """Whether only the end of the connection marks the end of the body."""
        is_chunked = self.headers.get("transfer-encoding", "").lower().endswith("chunked")
        return self.has_head and not is_chunked and "content-length" not in self.headers

    # -- callbacks of the parser ----------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self.is_complete:
            raise httptools.HttpParserInvalidStatusError("there is one answer to each request")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.has_head:  # trailers are ignored
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status >= 200:  # a status below 200 is not the final response
            self.status, self.keep_alive, self.has_head = status, self._parser.should_keep_alive(), True
            self.is_complete = not self.has_body

    def on_message_complete(self) -> None:
        self.is_complete = self.has_head
        if not self.is_complete:
            self.headers = {}


def _ignore(data: bytes) -> None:
    pass


ENCODINGS = ("gzip", "x-gzip", "deflate")
MAX_STEP_BYTES = 1024 * 1024
"""One step returns at most so many bytes: a few compressed bytes may stand for very many."""
_EITHER, _BARE = zlib.MAX_WBITS | 32, -zlib.MAX_WBITS
_MAGIC, _METHOD = 0x1f, 8


class Decompressor:
    """Decompresses one body: feed compressed bytes, take until nothing is returned, call `end` at the end."""

    def __init__(self, name: str, encoding: str) -> None:
        """`name` is the server's name in error messages."""
        self._name, self._encoding = name, encoding
        self._packed = b""
        self._stream: zlib._Decompress | None = None
        self._has_more = self._is_over = False

    def feed(self, packed: bytes) -> None:
        if self._encoding not in ENCODINGS:
            why = f"{self._name} answered in the encoding '{self._encoding[:40]}', which was not asked for"
            raise BackendFailed(why)
        self._packed += packed

    def take(self, most: int = MAX_STEP_BYTES) -> bytes:
        """Some decompressed bytes; empty if more must be fed first."""
        while self._packed or self._has_more:
            try:
                plain = self._step(most)
            except zlib.error:
                raise ConnectionLost(
                    f"the connection to {self._name} broke (its compressed data are malformed)"
                ) from None
            if plain:
                return plain
        return b""

    def _step(self, most: int) -> bytes:
        if self._stream is None:
            if self._is_over and self._packed[0] != _MAGIC:  # only another gzip member may follow
                self._packed = b""
                return b""
            self._stream = zlib.decompressobj(_window(self._packed[0]))
        plain = self._stream.decompress(self._packed, most)
        self._packed, self._has_more = self._stream.unconsumed_tail, len(plain) == most
        if self._stream.eof:
            self._packed, self._stream = self._stream.unused_data, None
            self._has_more, self._is_over = False, True
        return plain

    def end(self) -> None:
        """The body has ended; raises `ConnectionLost` if it is incomplete."""
        if self._stream is not None:
            raise ConnectionLost(f"the connection to {self._name} broke (its compressed data are incomplete)")


def decompressor_for(name: str, encoding: str) -> Decompressor | None:
    """A decompressor for this encoding; None if the body is not compressed."""
    encoding = encoding.strip().lower()
    return None if encoding in ("", "identity") else Decompressor(name, encoding)


def _window(first: int) -> int:
    """The window bits for zlib: some servers omit the two bytes of the zlib header."""
    return _EITHER if first == _MAGIC or first & 0x0f == _METHOD else _BARE
