"""The connections to one server: opened on demand, reused, and closed after they were idle for a while."""

import asyncio
import socket
import ssl as tls
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohappyeyeballs import start_connection
from yarl import URL

from gateway.errors import BackendFailed, ConnectionLost, ServerUnreachable, TimedOut

from .certificates import upstream_context
from .error_messages import os_reason
from .http1_connection import Http1Connection
from .http1_messages import default_headers, encode_request, normalize_headers
from .proxy import Proxy, open_tunnel

IDLE_SECONDS = 30.0
"""A connection that was idle for so long is closed."""
MAX_IDLE = 512
"""If more connections are idle, the one that was idle longest is closed."""
HAPPY_EYEBALLS_SECONDS = 0.25
"""After so many seconds without a connection the server's next address is tried in parallel."""


class ConnectionPool:
    """Requests to one server, each on a connection of its own until its response has ended.

    With a proxy, http:// requests are sent to it, and https:// requests to the server through a tunnel. Cookies are
    not kept.
    """

    def __init__(
        self, url: URL, name: str, headers: Mapping[str, str], *, connect_seconds: float, ssl: tls.SSLContext | None,
        proxy: Proxy | None = None,
    ) -> None:
        self._url, self._name, self._connect_seconds = url, name, connect_seconds
        self._headers = {**default_headers(url), **normalize_headers(headers)}
        self._ssl, self._proxy = ssl, proxy
        self._through = f" through the proxy {proxy.name}" if proxy else ""
        self._is_asking_proxy = proxy is not None and url.scheme != "https"
        """Whether requests are sent to the proxy, with the whole address of the server."""
        if proxy is not None and self._is_asking_proxy:
            self._headers |= proxy.headers
        self._connections: set[Http1Connection] = set()
        self._idle: dict[Http1Connection, None] = {}
        self._is_closed = False

    @asynccontextmanager
    async def request(
        self, method: str, url: URL, body: Any, headers: Mapping[str, str], *, again: bool, first: float, idle: float,
        total: float,
    ) -> AsyncIterator[Http1Connection]:
        """The connection, once the head of the response has arrived.

        A server may close an idle connection just as a request is sent. Then the request is sent once more on another
        connection, unless the server may have received all of it and must not receive it `again`.
        """
        whole = {**self._headers, **normalize_headers(headers)}
        request = encode_request(method, url, body, whole, is_absolute=self._is_asking_proxy)
        while True:
            connection, is_used = await self._connection()
            try:
                connection.send(request, first=first, idle=idle, total=total, has_body=method != "HEAD")
                try:
                    await connection.read_head()
                except ConnectionLost:
                    if is_used and not connection.received and (again or not connection.is_sent):
                        continue
                    raise
                yield connection
                return
            finally:
                connection.finish()

    def close(self) -> None:
        """Close all connections; requests that run fail, and so do later ones."""
        self._is_closed = True
        for connection in list(self._connections):
            connection.close()

    # -- connections ----------------------------------------------------------------------------------------------

    async def _connection(self) -> tuple[Http1Connection, bool]:
        """An idle connection or a new one; and whether it was used before."""
        if self._idle:
            return self._idle.popitem()[0], True
        connection = await self._connect()
        if self._is_closed:
            connection.close()
        if not connection.is_open:
            raise ConnectionLost(f"the connection to {self._name} broke (closed)")
        self._connections.add(connection)
        return connection, False

    def _keep_idle(self, connection: Http1Connection) -> None:
        connection.expiry = asyncio.get_running_loop().call_later(IDLE_SECONDS, connection.close)
        self._idle[connection] = None
        if len(self._idle) > MAX_IDLE:
            next(iter(self._idle)).close()

    def _remove(self, connection: Http1Connection) -> None:
        self._connections.discard(connection)
        self._idle.pop(connection, None)

    async def _connect(self) -> Http1Connection:
        if self._is_closed:
            raise BackendFailed(f"the connection pool of {self._name} is closed")
        loop, host = asyncio.get_running_loop(), self._url.raw_host or ""
        secure = self.context() if self._url.scheme == "https" else None
        try:
            async with asyncio.timeout(self._connect_seconds):
                reached = await self._reach()
                _, connection = await loop.create_connection(
                    lambda: Http1Connection(self._name, loop, self._keep_idle, self._remove), sock=reached, ssl=secure,
                    server_hostname=host.rstrip(".") if secure else None,
                )
        except TimeoutError:
            why = f"{self._name} did not accept a connection{self._through} within {self._connect_seconds:g} seconds"
            raise TimedOut(why) from None
        except tls.SSLCertVerificationError as error:
            raise BackendFailed(f"{self._name}: its certificate does not verify ({os_reason(error)})") from None
        except tls.SSLError as error:
            why = f"{self._name} does not speak a TLS version that is supported here ({error.reason}); is its address http://?"
            raise BackendFailed(why) from None
        except (OSError, RuntimeError) as error:  # uvloop raises some OSErrors as RuntimeErrors
            raise ServerUnreachable(f"{self._name} cannot be reached{self._through} ({os_reason(error)})") from None
        except UnicodeError:
            raise BackendFailed(f"{self._name} is not an address: no host can have this name") from None
        return connection

    async def _reach(self) -> socket.socket:
        """A socket that is connected to the server, to the proxy, or to the server through the proxy."""
        place = self._proxy.url if self._proxy is not None else self._url
        found = await asyncio.get_running_loop().getaddrinfo(place.raw_host, place.port, type=socket.SOCK_STREAM)
        reached = await start_connection(found, happy_eyeballs_delay=HAPPY_EYEBALLS_SECONDS)
        if self._proxy is not None and not self._is_asking_proxy:
            try:
                await open_tunnel(reached, self._proxy, self._url)
            except BaseException:
                reached.close()
                raise
        return reached

    def context(self) -> tls.SSLContext:
        """The certificates, read when they are first needed."""
        if self._ssl is None:
            self._ssl = upstream_context()
        return self._ssl
