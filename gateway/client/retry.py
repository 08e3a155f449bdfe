"""Retries after temporary failures: a request is repeated, a stream is resumed at its cursor."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable
from typing import Protocol, TypeVar

from gateway.errors import ConnectionLost, GatewayError, Overloaded, RateLimited, ServerUnreachable

MAX_RETRY_WAIT = 20.0
"""If an upstream asks for a longer wait in seconds, there is no retry."""
RETRYABLE_ERRORS = (ServerUnreachable, ConnectionLost, RateLimited, Overloaded)
"""Temporary failures, after which a retry may succeed."""
Response = TypeVar("Response")


async def retry(request: Callable[[], Awaitable[Response]], attempts: int) -> Response:
    """The response to a request that the server may receive several times; at most so many attempts are made."""
    attempt = 1
    while True:
        try:
            return await request()
        except GatewayError as error:
            await wait_before_retry(error, attempt, attempts)
        attempt += 1


async def wait_before_retry(error: GatewayError, attempt: int, attempts: int) -> None:
    """Wait before the next attempt; raises the error of this attempt if there is to be no other."""
    wait = requested_wait(error)
    wait = backoff_seconds(attempt) if wait is None else wait
    if not isinstance(error, RETRYABLE_ERRORS) or attempt >= attempts or wait > MAX_RETRY_WAIT:
        raise error
    await asyncio.sleep(wait)


def requested_wait(error: GatewayError) -> float | None:
    """The seconds that the server wants us to wait; None if it wants no wait."""
    found = (error.details or {}).get("retry_after", error.retry_after)
    return found if isinstance(found, int | float) else None


def backoff_seconds(failures: int) -> float:
    """The seconds to wait after so many failures: twice as many each time, and not the same for all clients."""
    return random.uniform(0.2, 0.4) * 2.0 ** failures  # noqa: S311  # no secret


MAX_RECONNECT_WAIT = 5.0
"""The longest wait in seconds before the next connection, unless the server wants a longer one."""
GOOD_CONNECTION_SECONDS = 5.0
"""A connection that lasted longer than this was a good one, even if nothing new came."""
Item = TypeVar("Item")
Received = TypeVar("Received", covariant=True)


class ResumableStream(Protocol[Received]):
    """A stream that can be continued on another connection."""

    @property
    def cursor(self) -> Hashable:
        """How far the stream was read; everything new changes it."""
    async def connect(self) -> None:
        """Open a connection that continues after the cursor; nothing happens if there is one."""
    async def receive(self) -> Received:
        """The next items of the connection; at its end, `ConnectionLost`."""
    async def disconnect(self) -> None:
        """Close the connection, if there is one."""
    async def check_resumable(self, error: GatewayError) -> None:
        """Raise the error of a connection, or a better one, unless the stream can be resumed after it."""


class Reconnector:
    """Reads one stream. If so many connections in a row bring nothing new, the last failure is raised.

    The first connection after progress is made at once, each further one after a longer wait.
    """

    def __init__(self, attempts: int) -> None:
        self._attempts = attempts
        self._failures = 0
        self._is_connected = False
        self._cursor: Hashable = None
        """The cursor when the last connection was made."""
        self._connected_at = 0.0

    async def read(self, stream: ResumableStream[Item]) -> Item:
        """The next items. A stream has no end here: its reader knows the last item."""
        while True:
            try:
                if not self._is_connected:
                    self._cursor, self._connected_at = stream.cursor, asyncio.get_running_loop().time()
                    await stream.connect()
                    self._is_connected = True
                return await stream.receive()
            except GatewayError as error:
                await stream.disconnect()
                self._is_connected = False
                await stream.check_resumable(error)
                await self._wait(error, stream.cursor)

    async def _wait(self, error: GatewayError, cursor: Hashable) -> None:
        """Wait before the next connection; raises the error if there is to be none."""
        self._failures = 0 if self._was_good(error, cursor) else self._failures + 1
        wanted = requested_wait(error)
        if self._failures >= self._attempts or (wanted is not None and wanted > MAX_RETRY_WAIT):
            raise error
        if wanted is None:
            wanted = min(backoff_seconds(self._failures - 1), MAX_RECONNECT_WAIT) if self._failures else 0.0
        await asyncio.sleep(wanted)

    def _was_good(self, error: GatewayError, cursor: Hashable) -> bool:
        seconds = asyncio.get_running_loop().time() - self._connected_at
        return cursor != self._cursor or (isinstance(error, ConnectionLost) and seconds > GOOD_CONNECTION_SECONDS)
