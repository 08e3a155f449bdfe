"""One connection to a server, for one exchange of HTTP/1.1 after the other: a request out, its answer in as it comes.

What aiohttp's client does for each piece of an answer costs more than all that becomes of the piece afterwards. Here
the pieces that came at once are taken at once, and nothing is done for each of them but to keep it.
"""

import asyncio
from collections.abc import Callable
from typing import cast

from gateway.errors import BackendFailed, ConnectionLost, GatewayError, TimedOut

from .decompress import Decompressor, decompressor_for
from .http1_messages import PARSE_ERRORS, ResponseParser

MAX_UNREAD_BYTES = 256 * 1024
"""With so many bytes waiting to be taken nothing more is read."""
MAX_RESPONSE_HEAD_BYTES = 128 * 1024
"""A head of more bytes than this is nobody's to send."""


class Http1Connection(asyncio.Protocol):
    """A connection; at rest between two exchanges. Whatever breaks it is raised where its answer is waited for."""

    def __init__(
        self, name: str, loop: asyncio.AbstractEventLoop, on_rest: Callable[["Http1Connection"], None],
        on_lost: Callable[["Http1Connection"], None],
    ) -> None:
        """`on_lost` is called as soon as nothing more can be asked on it, maybe more than once."""
        self.name, self._loop, self._on_rest, self._on_lost = name, loop, on_rest, on_lost
        self.is_open = True
        self.is_sent = True
        """Whether all of the request may have reached the server."""
        self.received = 0
        """How many bytes of the present answer have come, its head among them."""
        self._taken = 0
        """How many there were when its body was taken last."""
        self.expiry: asyncio.TimerHandle | None = None
        """When it has been at rest for too long."""
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._answer = ResponseParser()
        self._unpacking: Decompressor | None = None
        self._failure: GatewayError | None = None
        self._at_work = self._is_paused = False
        self._idle, self._patience, self._total = 0.0, 0.0, 0.0
        self._until = self._since = 0.0
        self._unsent = 0

    # -- an exchange ----------------------------------------------------------------------------------------------

    def send(self, request: bytes, *, first: float, idle: float, total: float) -> None:
        """Send a request; its answer is waited for so long until it begins, between its pieces, and in all."""
        assert self._transport is not None, "it was opened"
        if self.expiry is not None:
            self.expiry.cancel()
        self._answer = ResponseParser()
        self._at_work, self.received, self._taken, self._unpacking = True, 0, 0, None
        self._idle, self._patience, self._total = idle, first, total
        self._since = self._loop.time()
        self._until = self._since + total
        self._wind(self._since)
        self._transport.write(request)
        self._unsent = 0 if self.is_sent else self._transport.get_write_buffer_size()

    @property
    def status(self) -> int:
        return self._answer.status

    @property
    def headers(self) -> dict[str, str]:
        """Their names are in lower case."""
        return self._answer.headers

    @property
    def content_type(self) -> str:
        """Of what type the body is, in lower case, without parameters."""
        return self._answer.content_type

    async def read_head(self) -> None:
        """Wait until `status` and `headers` are there."""
        while not self._answer.has_head:
            await self._news()
        self._unpacking = decompressor_for(self.name, self.headers.get("content-encoding", ""))

    async def read_body(self) -> bytes:
        """What has come of the body since it was asked for last; nothing once all has come."""
        body = self._unpacking
        if body is None:
            return await self._pieces()
        while not (said := body.take()):
            if not (packed := await self._pieces()):
                body.end()
                return b""
            body.feed(packed)
        return said

    async def _pieces(self) -> bytes:
        parts = self._answer.parts
        while not parts:
            if self._answer.is_complete:
                return b""
            await self._news()
        said = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        if not self._taken:  # from now on each piece is waited for as long as a pause may last
            self._patience = self._idle
            self._wind(self._loop.time())
        self._taken = self.received
        if self._is_paused and self._transport is not None and self.is_open:
            self._is_paused = False
            self._transport.resume_reading()
        return said

    def finish(self) -> None:
        """The exchange is over: at rest where all was sent, the answer is whole and the server stays, else closed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._at_work = False
        answer = self._answer
        answer.release()
        if answer.is_complete and answer.keep_alive and self.is_open and self.is_sent and not self._is_paused:
            self._on_rest(self)
        else:
            self.close()

    def close(self) -> None:
        """Whoever still waits for an answer is told that it was cut."""
        self.is_open = False
        if self.expiry is not None:
            self.expiry.cancel()
        if self._at_work and self._failure is None:
            self._failure = ConnectionLost(f"the connection to {self.name} was closed before the end of the response")
        if self._transport is not None:
            self._transport.abort()
        self._on_lost(self)
        self._wake()

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

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _look(self) -> None:
        """Now and then: whether what is waited for has taken too long. A request on its way is waited for, too."""
        now = self._loop.time()
        if not self.is_sent and self._transport is not None:
            before, self._unsent = self._unsent, self._transport.get_write_buffer_size()
            self._since = now if self._unsent < before else self._since
        if now >= self._until:
            self._fail(TimedOut(f"{self.name} took longer than {self._total:g} seconds in all"))
        elif self._waiter is not None and now >= self._since + self._patience:
            self._fail(TimedOut(f"{self.name} sent nothing for {self._patience:g} seconds"))
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

    # -- what comes -----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self._transport.set_write_buffer_limits(high=1, low=0)  # we are told of anything that cannot be sent at once

    def pause_writing(self) -> None:
        self.is_sent = False

    def resume_writing(self) -> None:
        self.is_sent, self._unsent, self._since = True, 0, self._loop.time()

    def data_received(self, data: bytes) -> None:
        if not self._at_work:
            self.close()  # nobody has asked
            return
        self.received += len(data)
        answer = self._answer
        try:
            answer.feed(data)
        except PARSE_ERRORS:
            answer.keep_alive = False
            if not answer.is_complete:
                self._fail(ConnectionLost(f"the connection to {self.name} broke (its response is not HTTP)"))
                return
        if self.received - self._taken > MAX_RESPONSE_HEAD_BYTES:
            self._hold(answer)
        self._wake()

    def _hold(self, answer: ResponseParser) -> None:
        """Much has come that was not taken."""
        if not answer.has_head:
            self._fail(BackendFailed(f"{self.name} answered with a head of more than {MAX_RESPONSE_HEAD_BYTES} bytes"))
        elif answer.is_complete or self.received - self._taken <= MAX_UNREAD_BYTES:
            return
        elif not answer.parts:
            self._fail(BackendFailed(f"{self.name} sent more than {MAX_UNREAD_BYTES} bytes outside of a body"))
        elif not self._is_paused and self.is_open and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def eof_received(self) -> None:
        self._over(None)

    def connection_lost(self, error: Exception | None) -> None:
        self._over(error)
        self._transport = None

    def _over(self, error: Exception | None) -> None:
        self.is_open = False
        self._on_lost(self)
        if not self._at_work or self._failure is not None or self._answer.is_complete:
            return
        if error is None and self._answer.ends_with_connection:
            self._answer.is_complete = True
            self._wake()
        else:
            self._fail(
                ConnectionLost(f"the connection to {self.name} broke ({type(error).__name__ if error else 'closed'})")
            )
