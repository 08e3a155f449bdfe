"""Reads a stream over as many connections as it takes: after a break the stream is resumed at its cursor."""

import asyncio
from collections.abc import Hashable
from typing import Protocol, TypeVar

from gateway.errors import ConnectionLost, GatewayError

from .retry import MAX_RETRY_WAIT, backoff_seconds, requested_wait

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
