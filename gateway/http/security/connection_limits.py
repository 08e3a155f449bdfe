"""Limits connections: how many may be open, how long a request may take to arrive, and which one makes room.

aiohttp has no interface for this: `LimitedConnection` reads private attributes of its protocol.
"""

import asyncio
import resource
from collections.abc import Callable, Hashable
from ipaddress import ip_address, ip_network
from typing import Any, Generic, Protocol, TypeVar, cast

import orjson
from aiohttp import HttpVersion11, web

from gateway.logging import SampledLogger, get_logger

from .aiohttp_logger import AiohttpServerLogger

log = get_logger("dragoman.connections")

RESERVED_FILES = 128
"""Open files that are reserved for the log, for uploads and for agents."""
MAX_HEAD_BYTES = 64 * 1024
"""The largest head of a request, in bytes."""
LINGER_SECONDS = 5.0
"""Seconds in which the rest of a refused body is read, so that its client can read the response."""


class ConnectionLimits(Protocol):
    """The limits of the settings; they are read each time, because settings may change."""

    @property
    def header_seconds(self) -> float: ...
    @property
    def body_seconds(self) -> float: ...
    @property
    def handshake_seconds(self) -> float: ...
    @property
    def idle_seconds(self) -> float: ...
    @property
    def max_connections(self) -> int: ...
    @property
    def max_connections_per_address(self) -> int: ...
    @property
    def max_unauthenticated(self) -> int: ...
    @property
    def max_unauthenticated_per_address(self) -> int: ...


class GetConnectionLimits(Protocol):
    """Returns the limits that hold now."""

    def __call__(self) -> ConnectionLimits: ...


CONNECTION_LIMITS = web.AppKey[GetConnectionLimits]("limits")
T = TypeVar("T", bound=Hashable)


class UnauthenticatedClients(Generic[T]):
    """Clients without a credential: limited in all and per address; the oldest is closed for a new one."""

    def __init__(self, limits: GetConnectionLimits) -> None:
        self._limits = limits
        self._all: dict[T, str] = {}
        self._by_address: dict[str, dict[T, None]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, one: T, address: str) -> T | None:
        """Add a client; return the client that must be closed for it."""
        limits = self._limits()
        neighbours = self._by_address.setdefault(address, {})
        oldest = None
        if len(neighbours) >= limits.max_unauthenticated_per_address and not _is_local(address):
            oldest = next(iter(neighbours))
        elif len(self._all) >= limits.max_unauthenticated:
            oldest = self.oldest
        self._all[one] = address
        neighbours[one] = None
        if oldest is not None:
            self.discard(oldest)
        return oldest

    @property
    def oldest(self) -> T | None:
        return next(iter(self._all), None)

    def discard(self, one: T) -> None:
        address = self._all.pop(one, None)
        if address is not None:
            neighbours = self._by_address[address]
            del neighbours[one]
            if not neighbours:
                del self._by_address[address]


class ConnectionLimiter:
    """Counts connections, and refuses those beyond the limits."""

    def __init__(self, limits: GetConnectionLimits) -> None:
        self.limits = limits
        self.sampled = SampledLogger(log)
        self.unauthenticated = UnauthenticatedClients["LimitedConnection"](limits)
        self._open = 0
        self._by_address: dict[str, int] = {}
        self._most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]

    def __len__(self) -> int:
        return self._open

    def accept(self, connection: "LimitedConnection", address: str) -> bool:
        """Count a connection, or return the reason to refuse it."""
        limits = self.limits()
        if not _is_local(address) and self._by_address.get(address, 0) >= limits.max_connections_per_address:
            self.sampled.info("connection_refused", address=address, reason="max_connections_per_address")
            return False
        if self._open >= self._most(limits) and not self._make_room():
            self.sampled.info("connection_refused", address=address, reason="max_connections")
            return False
        self._open += 1
        self._by_address[address] = self._by_address.get(address, 0) + 1
        if (oldest := self.unauthenticated.add(connection, address)) is not None:
            self.sampled.info("connection_cut", address=address, reason="max_unauthenticated")
            oldest.abort()
        return True

    def release(self, connection: "LimitedConnection", address: str) -> None:
        self.unauthenticated.discard(connection)
        self._open -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def _most(self, limits: ConnectionLimits) -> int:
        """Return the largest number of connections: more than the process may open files would break the log, too."""
        if self._most_files == resource.RLIM_INFINITY:
            return limits.max_connections
        return min(limits.max_connections, max(self._most_files - RESERVED_FILES, 1))

    def _make_room(self) -> bool:
        oldest = self.unauthenticated.oldest
        if oldest is None:
            return False
        self.unauthenticated.discard(oldest)
        oldest.abort()
        return True


class LimitedConnection(asyncio.Protocol):
    """One connection: passes everything to the protocol of aiohttp, and limits the time until a request is complete."""

    def __init__(self, limiter: ConnectionLimiter, serve: Callable[[], asyncio.Protocol]) -> None:
        self._limiter = limiter
        self._serve = serve
        self._inner: Any = None
        self._transport: asyncio.Transport | None = None
        self._address = ""
        self._deadline: asyncio.TimerHandle | None = None
        self._head = 0
        """The bytes of an incomplete head."""
        self._budget: int | None = None

    # -- what handlers report ---------------------------------------------------------------------------------------

    def mark_authenticated(self) -> None:
        """The client has shown a valid credential."""
        self._budget = None
        self._limiter.unauthenticated.discard(self)

    def restrict(self, most: int) -> None:
        """Accept only so many further bytes until the client is authenticated."""
        self._budget = most

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # -- what the event loop reports --------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        address = client_network_of(transport)
        transport = cast(asyncio.Transport, transport)  # the transport of uvloop is one without saying so
        if not self._limiter.accept(self, address):
            transport.write(
                _raw_response(503, "Service Unavailable", "too many connections; try again later")
            )
            transport.close()
            return
        self._transport, self._address, self._inner = transport, address, self._serve()
        self._start_deadline()
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._inner is None:
            return
        if self._budget is not None:
            self._budget -= len(data)
            if self._budget < 0:
                reason = "too many bytes before a key"
                self._limiter.sampled.info("connection_cut", address=self._address, reason=reason)
                self.abort()
                return
        inner, requests = self._inner, self._inner._request_count
        inner.data_received(data)
        if inner._request_count != requests:
            self._head = 0
            self._stop_deadline()
        elif inner._waiter is not None and not inner._waiter.done():  # it waits for a request, and has a part of it
            self._head += len(data)
            if self._head > MAX_HEAD_BYTES:
                self._refuse(431, "Request Header Fields Too Large", f"a head may have {MAX_HEAD_BYTES} bytes")
            elif self._deadline is None:
                self._start_deadline()

    def eof_received(self) -> bool | None:
        return None if self._inner is None else self._inner.eof_received()

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._inner is not None:
            self._stop_deadline()
            self._limiter.release(self, self._address)
            self._transport = None
            self._inner.connection_lost(exc)

    # -- the time limit of a request --------------------------------------------------------------------------------

    def _start_deadline(self) -> None:
        self._deadline = asyncio.get_running_loop().call_later(self._limiter.limits().header_seconds, self._expire)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        self._deadline = None
        self._refuse(408, "Request Timeout", "the head of the request did not arrive in time")

    def _refuse(self, status: int, reason: str, words: str) -> None:
        """Close the connection; a client that sent nothing gets no response, as browsers expect of a spare one."""
        if self._transport is not None and not self._transport.is_closing():
            self._limiter.sampled.info("connection_cut", address=self._address, reason=reason)
            if self._head:
                self._transport.write(_raw_response(status, reason, words))
            self._transport.close()


class LimitedAppRunner(web.AppRunner):
    """The runner of aiohttp with limits for connections; handlers decompress bodies after the key was checked."""

    def __init__(self, app: web.Application, limits: GetConnectionLimits, *, shutdown_timeout: float) -> None:
        self.limiter = ConnectionLimiter(limits)
        super().__init__(
            app, handler_cancellation=True, access_log=None, logger=AiohttpServerLogger(self.limiter.sampled),
            auto_decompress=False, keepalive_timeout=limits().idle_seconds, lingering_time=LINGER_SECONDS,
            shutdown_timeout=shutdown_timeout,
        )

    @property
    def server(self) -> Any:
        """The factory of protocols."""
        server = super().server
        return None if server is None else ConnectionFactory(self.limiter, server)

    def close_idle_connections(self) -> None:
        """Close connections that wait for another request; the others are closed after their response.

        A connection that has not brought its first request is left: the request may be on its way.
        """
        server = super().server
        for connection in list(server.connections) if server is not None else ():
            if connection._request_count:
                connection.close()


class ConnectionFactory:
    """The server of aiohttp as far as listening sockets and tests need it; connections pass the limiter."""

    def __init__(self, limiter: ConnectionLimiter, server: web.Server) -> None:
        self._limiter = limiter
        self._server = server

    def __call__(self) -> LimitedConnection:
        return LimitedConnection(self._limiter, self._server)

    @property
    def connections(self) -> list[web.RequestHandler]:
        return list(self._server.connections)


# -- for handlers -----------------------------------------------------------------------------------------------------

def connection_of(request: web.BaseRequest) -> LimitedConnection | None:
    """Return the connection of a request; None if it is closed, or the server has no limiter."""
    found = request.transport.get_protocol() if request.transport is not None else None
    return found if isinstance(found, LimitedConnection) else None


def mark_authenticated(request: web.BaseRequest) -> None:
    """Mark the connection of this request as authenticated."""
    if (connection := connection_of(request)) is not None:
        connection.mark_authenticated()


# -- addresses and responses ------------------------------------------------------------------------------------------

def client_network_of(transport: asyncio.BaseTransport) -> str:
    """Return what a connection is counted by: its address, or the /64 network, which belongs to one customer."""
    peer = transport.get_extra_info("peername")
    if not isinstance(peer, tuple) or not peer:
        return ""
    host = str(peer[0]).partition("%")[0]
    if ":" not in host or "." in host or host == "::1":
        return host
    return str(ip_network(f"{host}/64", strict=False))


def _is_local(address: str) -> bool:
    """Say whether the address is local: a proxy on this machine has the connections of all clients."""
    return not address or ip_address(address.partition("/")[0]).is_loopback


def _raw_response(status: int, reason: str, words: str) -> bytes:
    body = orjson.dumps({"error": {"message": words}})
    head = f"HTTP/{HttpVersion11.major}.{HttpVersion11.minor} {status} {reason}\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nRetry-After: 2\r\n\r\n"
    return head.encode() + body
