"""One connection to a server, for one exchange of HTTP/1.1 after the other: a request out, its answer in as it comes.

What aiohttp's client does for each piece of an answer costs more than all that becomes of the piece afterwards. Here
the pieces that came at once are taken at once, and nothing is done for each of them but to keep it.
"""

import asyncio
import zlib
from collections.abc import Callable
from typing import cast

import httptools

from gateway.errors import BackendFailed, GatewayError, TimedOut

from .failures import Cut

HELD = 256 * 1024
"""With so many bytes waiting to be taken nothing more is read."""
LONGEST_HEAD = 128 * 1024
"""A head of more bytes than this is nobody's to send."""
INFLATED = ("gzip", "x-gzip", "deflate")


class Wire(asyncio.Protocol):
    """A connection; at rest between two exchanges. Whatever breaks it is raised where its answer is waited for."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop, on_rest: Callable[["Wire"], None]) -> None:
        self.name, self._loop, self._on_rest = name, loop, on_rest
        self.status, self.headers = 0, dict[str, str]()
        self.is_open = True
        self.heard = 0
        """How many bytes of the present answer have come, its head among them."""
        self._taken = 0
        """How many there were when its body was taken last."""
        self.expiry: asyncio.TimerHandle | None = None
        """When it has been at rest for too long."""
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._parts: list[bytes] = []
        self._failure: GatewayError | None = None
        self._inflate: Callable[[bytes], bytes] | None = None
        self._at_work = self._is_head_whole = self._is_whole = self._is_paused = self._stays = False
        self._idle, self._patience, self._total = 0.0, 0.0, 0.0
        self._until = self._since = 0.0

    # -- an exchange ----------------------------------------------------------------------------------------------

    def ask(self, request: bytes, *, first: float, idle: float, total: float) -> None:
        """Send a request; its answer is waited for so long until it begins, between its pieces, and in all."""
        assert self._transport is not None, "it was opened"
        if self.expiry is not None:
            self.expiry.cancel()
        self._parser = httptools.HttpResponseParser(_Ears(self, self._parts))
        self._at_work, self._is_head_whole, self._is_whole, self._stays = True, False, False, False
        self.status, self.headers, self.heard, self._taken, self._inflate = 0, {}, 0, 0, None
        self._idle, self._patience, self._total = idle, first, total
        self._since = self._loop.time()
        self._until = self._since + total
        self._wind(self._since)
        self._transport.write(request)

    async def head(self) -> None:
        """Wait until `status` and `headers` are there."""
        while not self._is_head_whole:
            await self._news()

    async def body(self) -> bytes:
        """What has come of the body since it was asked for last; nothing once all has come."""
        while said := await self._pieces():
            if self._inflate is None:
                return said
            if said := self._inflated(said):
                return said
        return b""

    async def _pieces(self) -> bytes:
        parts = self._parts
        while not parts and not self._is_whole:
            await self._news()
        if not parts:
            return b""
        said = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        if not self._taken:  # from now on each piece is waited for as long as a pause may last
            self._patience = self._idle
            self._wind(self._loop.time())
        self._taken = self.heard
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()
        return said

    def leave(self) -> None:
        """The exchange is over: at rest where the answer is whole and the server stays, else closed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._at_work = False
        if self._is_whole and self._stays and self.is_open and not self._is_paused:
            self._parts.clear()
            self._on_rest(self)
        else:
            self.close()

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    # -- waiting --------------------------------------------------------------------------------------------------

    async def _news(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._since = self._loop.time()
        waiter = self._waiter = self._loop.create_future()
        try:
            await waiter
        finally:
            self._waiter = None
        if self._failure is not None and not self._parts:
            raise self._failure

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _look(self) -> None:
        """Now and then: whether what is waited for has taken too long."""
        now = self._loop.time()
        if now >= self._until:
            self._fail(TimedOut(f"{self.name} took longer than {self._total:g} seconds in all"))
        elif self._waiter is not None and now >= self._since + self._patience:
            self._fail(TimedOut(f"{self.name} took too long: nothing came for {self._patience:g} seconds"))
        else:
            self._wind(self._since if self._waiter is not None else now)

    def _wind(self, since: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(min(self._until, since + self._patience), self._look)

    def _fail(self, failure: GatewayError) -> None:
        if self._failure is None:
            self._failure = failure
        self.close()
        self._wake()

    # -- what comes -----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name

    def data_received(self, data: bytes) -> None:
        if not self._at_work:
            self.close()  # nobody has asked
            return
        self.heard += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._stays = False
            if not self._is_whole:
                self._fail(Cut(f"the connection to {self.name} broke (what it sent is no HTTP)"))
                return
        if not self._is_head_whole and self.heard > LONGEST_HEAD:
            self._fail(BackendFailed(f"{self.name} answered with a head of more than {LONGEST_HEAD} bytes"))
        elif not self._is_paused and self.heard - self._taken > HELD:
            self._is_paused = True
            if self._transport is not None:
                self._transport.pause_reading()
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open, self._transport = False, None
        if self._at_work and not self._is_whole:
            if self._is_head_whole and self._ends_with_connection and error is None:
                self._is_whole = True
                self._wake()
            else:
                self._fail(Cut(f"the connection to {self.name} broke ({type(error).__name__ if error else 'closed'})"))

    @property
    def _ends_with_connection(self) -> bool:
        return "transfer-encoding" not in self.headers and "content-length" not in self.headers

    def head_is_whole(self, status: int, stays: bool) -> None:
        self.status, self._stays = status, stays
        self._is_head_whole = status >= 200  # one below only announces the answer
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        if encoding in INFLATED:
            self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress
        elif encoding != "identity" and self._is_head_whole:
            why = f"{self.name} answered in the encoding '{encoding[:40]}', which was not asked for"
            self._fail(BackendFailed(why))

    def is_whole(self) -> None:
        if self._is_head_whole:
            self._is_whole = True
        else:
            self.headers = {}

    def begins(self) -> None:
        """An answer begins; there is one to each request."""
        if self._is_whole:
            raise httptools.HttpParserInvalidStatusError("a second answer")

    def _inflated(self, said: bytes) -> bytes:
        assert self._inflate is not None
        try:
            return self._inflate(said)
        except zlib.error:
            raise Cut(f"the connection to {self.name} broke (what it compressed cannot be read)") from None


class _Ears:
    """What the parser tells; the pieces of a body go straight to where they are kept."""

    __slots__ = ("_wire", "on_body")

    def __init__(self, wire: Wire, parts: list[bytes]) -> None:
        self._wire, self.on_body = wire, parts.append

    def on_message_begin(self) -> None:
        self._wire.begins()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._wire.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        parser = self._wire._parser
        self._wire.head_is_whole(parser.get_status_code(), parser.should_keep_alive())

    def on_message_complete(self) -> None:
        self._wire.is_whole()
