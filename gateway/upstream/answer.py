"""One answer of HTTP/1.1, read as its bytes come: its head, and the pieces of its body. No clock, no socket."""

from collections.abc import Callable

import httptools

NO_HTTP = (httptools.HttpParserError, httptools.HttpParserUpgrade)
"""What `feed` raises."""


class Answer:
    """Bytes are fed to it, and it is what they tell; the pieces of a body go straight to where they are kept."""

    def __init__(self) -> None:
        self.status, self.headers = 0, dict[str, str]()
        self.parts: list[bytes] = []
        """What has come of the body and was not taken, as it came."""
        self.is_head_whole = self.is_whole = False
        self.stays = False
        """Whether the server will take another request after this."""
        self.on_body = self.parts.append
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self.feed: Callable[[bytes], None] = self._parser.feed_data

    def let_go(self) -> None:
        """Nothing more is fed or taken. We and the parser hold each other: without this neither would be forgotten."""
        self._parser, self.feed = None, _nothing
        self.parts.clear()

    @property
    def kind(self) -> str:
        return self.headers.get("content-type", "application/octet-stream").partition(";")[0].strip().lower()

    @property
    def ends_with_connection(self) -> bool:
        """Whether nothing but the end of the connection can tell that it is whole."""
        is_chunked = self.headers.get("transfer-encoding", "").lower().endswith("chunked")
        return self.is_head_whole and not is_chunked and "content-length" not in self.headers

    # -- what the parser tells ------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self.is_whole:
            raise httptools.HttpParserInvalidStatusError("there is one answer to each request")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.is_head_whole:  # what comes after a body is nobody's to heed
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status >= 200:  # one below only announces the answer
            self.status, self.stays, self.is_head_whole = status, self._parser.should_keep_alive(), True

    def on_message_complete(self) -> None:
        self.is_whole = self.is_head_whole
        if not self.is_whole:
            self.headers = {}


def _nothing(data: bytes) -> None:
    pass
