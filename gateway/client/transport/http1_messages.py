"""One request of HTTP/1.1 as it is sent; what could be taken for more than one line, or for another request, is not.

One answer of HTTP/1.1, read as its bytes come: its head, and the pieces of its body. No clock, no socket.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

import httptools
import orjson
from yarl import URL

from gateway.errors import BackendFailed

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNFIT = re.compile("[\0-\x08\n-\x1f\x7f\ud800-\udfff]")


def default_headers(url: URL) -> dict[str, str]:
    """The headers of every request to a server. Nothing compressed is asked for: each piece is wanted at once."""
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
    """The same, their names in lower case; refused where one is more than a line."""
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or _UNFIT.search(value):
            raise BackendFailed(f"the header {name.strip()!r} has a line break or another control character")
    return {name.lower(): value for name, value in headers.items()}


def encode_request(method: str, url: URL, body: Any, headers: Mapping[str, str]) -> bytes:
    """The bytes of a request whose headers are fit."""
    target = url.raw_path_qs
    if not target.isascii() or not target.isprintable() or " " in target:
        raise BackendFailed("the path of a request has a line break or another control character")
    payload, more = b"", dict[str, str]()
    if body is not None:
        payload = orjson.dumps(body)
        more = {"content-type": "application/json", "content-length": str(len(payload))}
    elif method != "GET":
        more = {"content-length": "0"}
    head = "".join([f"{name}: {value}\r\n" for name, value in {**headers, **more}.items()])
    return f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + payload


PARSE_ERRORS = (httptools.HttpParserError, httptools.HttpParserUpgrade)
"""What `feed` raises."""


class ResponseParser:
    """Bytes are fed to it, and it is what they tell; the pieces of a body go straight to where they are kept."""

    def __init__(self) -> None:
        self.status, self.headers = 0, dict[str, str]()
        self.parts: list[bytes] = []
        """What has come of the body and was not taken, as it came."""
        self.has_head = self.is_complete = False
        self.keep_alive = False
        """Whether the server will take another request after this."""
        self.on_body = self.parts.append
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self.feed: Callable[[bytes], None] = self._parser.feed_data

    def release(self) -> None:
        """Nothing more is fed or taken. We and the parser hold each other: without this neither would be forgotten."""
        self._parser, self.feed = None, _ignore
        self.parts.clear()

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "application/octet-stream").partition(";")[0].strip().lower()

    @property
    def ends_with_connection(self) -> bool:
        """Whether nothing but the end of the connection can tell that it is whole."""
        is_chunked = self.headers.get("transfer-encoding", "").lower().endswith("chunked")
        return self.has_head and not is_chunked and "content-length" not in self.headers

    # -- what the parser tells ------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self.is_complete:
            raise httptools.HttpParserInvalidStatusError("there is one answer to each request")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.has_head:  # what comes after a body is nobody's to heed
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status >= 200:  # one below only announces the answer
            self.status, self.keep_alive, self.has_head = status, self._parser.should_keep_alive(), True

    def on_message_complete(self) -> None:
        self.is_complete = self.has_head
        if not self.is_complete:
            self.headers = {}


def _ignore(data: bytes) -> None:
    pass
