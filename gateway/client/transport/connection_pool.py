"""The wires to one server: opened when they are needed, used again, and closed when nobody has for a while."""

import asyncio
import socket
import ssl as tls
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohappyeyeballs import start_connection
from yarl import URL

from gateway.errors import BackendFailed, ConnectionLost, ServerUnreachable, TimedOut

from .error_messages import os_reason
from .http1_connection import Http1Connection
from .http1_messages import default_headers, encode_request, normalize_headers

IDLE_SECONDS = 30.0
"""A connection that nobody has used for so long is closed."""
MAX_IDLE = 512
"""Of more than these the one that has rested longest is closed."""
HAPPY_EYEBALLS_SECONDS = 0.25
"""If the first of a server's addresses has not answered by then the next is tried beside it."""


class ConnectionPool:
    """Requests to one server, each on a wire of its own for as long as it takes.

    The server is reached as it is: by no proxy, whatever the environment has to say of one. Its cookies are not kept.
    """

    def __init__(
        self, url: URL, name: str, headers: Mapping[str, str], *, connect_seconds: float, ssl: tls.SSLContext | None,
    ) -> None:
        self._url, self._name, self._connect_seconds = url, name, connect_seconds
        self._headers = {**default_headers(url), **normalize_headers(headers)}
        self._ssl = ssl
        self._wires: set[Http1Connection] = set()
        self._resting: dict[Http1Connection, None] = {}
        self._is_closed = False

    @asynccontextmanager
    async def request(
        self, method: str, url: URL, body: Any, headers: Mapping[str, str], *, again: bool, first: float, idle: float,
        total: float,
    ) -> AsyncIterator[Http1Connection]:
        """One answer, up to where its body begins.

        A server may close a wire just as it is used again. Then the request is sent once more on another, unless the
        server may have had all of it, and it does harm to be asked `again`.
        """
        request = encode_request(method, url, body, {**self._headers, **normalize_headers(headers)})
        while True:
            wire, is_used = await self._wire()
            try:
                wire.send(request, first=first, idle=idle, total=total)
                try:
                    await wire.read_head()
                except ConnectionLost:
                    if is_used and not wire.received and (again or not wire.is_sent):
                        continue
                    raise
                yield wire
                return
            finally:
                wire.finish()

    def close(self) -> None:
        """For good: whoever still waits for an answer is cut off, and whoever asks from now on is refused."""
        self._is_closed = True
        for wire in list(self._wires):
            wire.close()

    # -- wires ----------------------------------------------------------------------------------------------------

    async def _wire(self) -> tuple[Http1Connection, bool]:
        """One at rest, or a new one; and whether it was used before."""
        if self._resting:
            return self._resting.popitem()[0], True
        wire = await self._connect()
        if self._is_closed:
            wire.close()
        if not wire.is_open:
            raise ConnectionLost(f"the connection to {self._name} broke (closed)")
        self._wires.add(wire)
        return wire, False

    def _rest(self, wire: Http1Connection) -> None:
        wire.expiry = asyncio.get_running_loop().call_later(IDLE_SECONDS, wire.close)
        self._resting[wire] = None
        if len(self._resting) > MAX_IDLE:
            next(iter(self._resting)).close()

    def _lose(self, wire: Http1Connection) -> None:
        self._wires.discard(wire)
        self._resting.pop(wire, None)

    async def _connect(self) -> Http1Connection:
        if self._is_closed:
            raise BackendFailed(f"the connection pool of {self._name} is closed")
        loop, host = asyncio.get_running_loop(), self._url.raw_host or ""
        secure = self._context() if self._url.scheme == "https" else None
        try:
            async with asyncio.timeout(self._connect_seconds):
                places = await loop.getaddrinfo(host, self._url.port, type=socket.SOCK_STREAM)
                reached = await start_connection(places, happy_eyeballs_delay=HAPPY_EYEBALLS_SECONDS)
                _, wire = await loop.create_connection(
                    lambda: Http1Connection(self._name, loop, self._rest, self._lose), sock=reached, ssl=secure,
                    server_hostname=host.rstrip(".") if secure else None,
                )
        except TimeoutError:
            why = f"{self._name} did not accept a connection within {self._connect_seconds:g} seconds"
            raise TimedOut(why) from None
        except tls.SSLCertVerificationError as error:
            raise BackendFailed(f"{self._name}: its certificate does not verify ({os_reason(error)})") from None
        except tls.SSLError as error:
            why = f"{self._name} does not speak a TLS version that is supported here ({error.reason}); is its address http://?"
            raise BackendFailed(why) from None
        except (OSError, RuntimeError) as error:  # on uvloop some of the former are the latter
            raise ServerUnreachable(f"{self._name} cannot be reached ({os_reason(error)})") from None
        except UnicodeError:
            raise BackendFailed(f"{self._name} is not an address: no host can have this name") from None
        return wire

    def _context(self) -> tls.SSLContext:
        if self._ssl is None:
            self._ssl = tls.create_default_context()
        return self._ssl
