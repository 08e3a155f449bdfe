"""One HTTP/1.1 connection to a server, for one request and its streamed response after the other.

All chunks that have arrived are taken at once, and a single chunk costs no more than its place in a list. aiohttp's
client takes 1.4 times the CPU per delta, whether deltas come one by one or all at once, as measured by
`make bench ARGS="--only client"`. Below 1.3 times this module should give way to aiohttp's.
"""

import asyncio
from collections.abc import Callable
from typing import cast

from gateway.errors import BackendFailed, ConnectionLost, GatewayError, TimedOut

from .http1_messages import PARSE_ERRORS, Decompressor, ResponseParser, decompressor_for

MAX_UNREAD_BYTES = 256 * 1024
"""If so many bytes wait to be taken, reading from the socket pauses."""
MAX_RESPONSE_HEAD_BYTES = 128 * 1024
"""The head of a response has at most so many bytes."""


class Http1Connection(asyncio.Protocol):
    """A connection, idle between two requests. A failure is raised where the response is awaited."""

    def __init__(
        self, name: str, loop: asyncio.AbstractEventLoop, on_rest: Callable[["Http1Connection"], None],
        on_lost: Callable[["Http1Connection"], None],
    ) -> None:
        """`on_lost` is called as soon as the connection takes no more requests, maybe more than once."""
        self.name, self._loop, self._on_rest, self._on_lost = name, loop, on_rest, on_lost
        self.is_open = True
        self.is_sent = True
        """Whether all of the request may have reached the server."""
        self.received = 0
        """How many bytes of the present response have arrived, with its head."""
        self._taken = 0
        """The value of `received` when the body was read last."""
        self.expiry: asyncio.TimerHandle | None = None
        """Closes the connection after it was idle for too long."""
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._answer = ResponseParser()
        self._decompressor: Decompressor | None = None
        self._failure: GatewayError | None = None
        self._is_busy = self._is_paused = False
        self._idle, self._timeout, self._total = 0.0, 0.0, 0.0
        self._until = self._since = 0.0
        self._unsent = 0

    # -- a request and its response --------------------------------------------------------------------------------

    def send(
        self, request: bytes, *, first: float, idle: float, total: float, has_body: bool = True,
    ) -> None:
        """Send a request; the timeouts are for the beginning of the response, for each pause in it, and in total."""
        assert self._transport is not None, "the connection is open"
        if self.expiry is not None:
            self.expiry.cancel()
        self._answer = ResponseParser()
        self._answer.has_body = has_body
        self._is_busy, self.received, self._taken, self._decompressor = True, 0, 0, None
        self._idle, self._timeout, self._total = idle, first, total
        self._since = self._loop.time()
        self._until = self._since + total
        self._set_timer(self._since)
        self._transport.write(request)
        self._unsent = 0 if self.is_sent else self._transport.get_write_buffer_size()

    @property
    def status(self) -> int:
        return self._answer.status

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the response, with names in lower case."""
        return self._answer.headers

    @property
    def content_type(self) -> str:
        """The media type of the body in lower case, without parameters."""
        return self._answer.content_type

    async def read_head(self) -> None:
        """Wait until `status` and `headers` have arrived."""
        while not self._answer.has_head:
            await self._next_data()
        self._decompressor = decompressor_for(self.name, self.headers.get("content-encoding", ""))

    async def read_body(self) -> bytes:
        """The bytes of the body that have arrived since the last call; empty at the end of the body."""
        body, parts = self._decompressor, self._answer.parts
        while body is None or not (plain := body.take()):
            while not parts:
                if self._answer.is_complete:
                    if body is not None:
                        body.end()
                    return b""
                await self._next_data()
            received = parts[0] if len(parts) == 1 else b"".join(parts)
            parts.clear()
            if not self._taken:  # from now on the timeout is that of a pause
                self._timeout = self._idle
                self._set_timer(self._loop.time())
            self._taken = self.received
            if self._is_paused and self._transport is not None and self.is_open:
                self._is_paused = False
                self._transport.resume_reading()
            if body is None:
                return received
            body.feed(received)
        return plain

    def finish(self) -> None:
        """End the exchange: the connection becomes idle if it can take another request, and is closed otherwise."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._is_busy = False
        answer = self._answer
        answer.release()
        if answer.is_complete and answer.keep_alive and self.is_open and self.is_sent and not self._is_paused:
            self._on_rest(self)
        else:
            self.close()

    def close(self) -> None:
        """Close at once; a task that waits for the response gets `ConnectionLost`."""
        self.is_open = False
        if self.expiry is not None:
            self.expiry.cancel()
        if self._is_busy and self._failure is None:
            self._failure = ConnectionLost(f"the connection to {self.name} was closed before the end of the response")
        if self._transport is not None:
            self._transport.abort()
        self._on_lost(self)
        self._wake()

    # -- waiting --------------------------------------------------------------------------------------------------

    def _next_data(self) -> "asyncio.Future[None]":
        """Done when more has arrived, or the connection has failed. No coroutine: this is awaited for every read."""
        if self._failure is not None:
            raise self._failure
        self._since = self._loop.time()
        self._waiter = self._loop.create_future()
        return self._waiter

    @property
    def _is_waiting(self) -> bool:
        return self._waiter is not None and not self._waiter.done()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _check_timeouts(self) -> None:
        """Check the timeouts; time in which bytes of the request are still being sent does not count."""
        now = self._loop.time()
        if not self.is_sent and self._transport is not None:
            before, self._unsent = self._unsent, self._transport.get_write_buffer_size()
            self._since = now if self._unsent < before else self._since
        if now >= self._until:
            self._fail(TimedOut(f"{self.name} took longer than {self._total:g} seconds in all"))
        elif self._is_waiting and now >= self._since + self._timeout:
            self._fail(TimedOut(f"{self.name} sent nothing for {self._timeout:g} seconds"))
        else:
            self._set_timer(self._since if self._is_waiting else now)

    def _set_timer(self, since: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(min(self._until, since + self._timeout), self._check_timeouts)

    def _fail(self, failure: GatewayError) -> None:
        if self._failure is None:
            self._failure = failure
        self.close()

    # -- callbacks of the transport -------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is not a subclass
        self._transport.set_write_buffer_limits(high=1, low=0)  # pause_writing is called for any unsent byte

    def pause_writing(self) -> None:
        self.is_sent = False

    def resume_writing(self) -> None:
        self.is_sent, self._unsent, self._since = True, 0, self._loop.time()

    def data_received(self, data: bytes) -> None:
        if not self._is_busy:
            self.close()  # there is no request
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
        """Pause or fail: many bytes have arrived that were not read."""
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
        if not self._is_busy or self._failure is not None or self._answer.is_complete:
            return
        if error is None and self._answer.ends_with_connection:
            self._answer.is_complete = True
            self._wake()
        else:
            self._fail(
                ConnectionLost(f"the connection to {self.name} broke ({type(error).__name__ if error else 'closed'})")
            )
