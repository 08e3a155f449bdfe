"""Connections in memory between a server and a client of one event loop; they look like TCP to asyncio's protocols."""

import asyncio
import itertools
import socket
from asyncio.protocols import _feed_data_to_buffered_proto  # type: ignore[attr-defined]
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any

LOCAL = ("127.0.0.1", "localhost", "::1")
IN_FLIGHT = 64 * 1024
"""How many bytes are on their way before the writer keeps the rest in its own buffer: the system's share."""
READ = 256 * 1024
"""How many bytes are read in one go, as from a socket: whoever pauses then has not had the rest."""
PORTS = range(50_001, 65_536)
HIGH, LOW = 64 * 1024, 16 * 1024

Factory = Callable[[], asyncio.BaseProtocol]


class FakeSocket:
    """The part of a socket that servers and clients look at."""

    family = socket.AF_INET

    def __init__(self, here: tuple[str, int], there: tuple[str, int] = ("", 0)) -> None:
        self._here, self._there = here, there

    def getsockname(self) -> tuple[str, int]:
        return self._here

    def getpeername(self) -> tuple[str, int]:
        return self._there

    def fileno(self) -> int:
        return -1  # like a closed one: there is no file

    def setsockopt(self, *given: Any) -> None:
        """There is no system that could be told."""


class Listener(asyncio.AbstractServer):
    """A server that takes connections from clients of the same loop."""

    def __init__(self, network: "Network", factory: Factory, port: int, sock: socket.socket | None) -> None:
        self.factory = factory
        self.port = port
        self.pace: Callable[[], float] | None = None
        """Seconds that each write of this server is on its way, one after the other; None: no time at all."""
        self.context = copy_context()
        """What the connections of this server run in, as with sockets: not in the context of whoever connects."""
        self.sockets: tuple[Any, ...] = (FakeSocket(("127.0.0.1", port)),)
        self._network = network
        self._sock = sock
        self._closed = asyncio.Event()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._network.loop

    def is_serving(self) -> bool:
        return self._network.listeners.get(self.port) is self

    async def start_serving(self) -> None:
        self._network.listeners[self.port] = self

    async def serve_forever(self) -> None:
        await self._closed.wait()

    def close(self) -> None:
        if self.is_serving():
            del self._network.listeners[self.port]
        if self._sock is not None:
            self._sock.close()
        self.sockets = ()
        self._closed.set()

    def close_clients(self) -> None:
        """Connections are closed by those who have them."""

    abort_clients = close_clients

    async def wait_closed(self) -> None:
        await self._closed.wait()


class Network:
    """The listeners of one loop, by port, and the way to them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.listeners: dict[int, Listener] = {}
        self._dialled: dict[socket.socket, Listener] = {}
        self._ports = itertools.cycle(PORTS)

    def listen(self, factory: Factory, port: int | None, sock: socket.socket | None) -> Listener:
        number = sock.getsockname()[1] if sock is not None else port or self._free_port()
        if number in self.listeners:
            raise OSError(98, f"port {number} is taken")
        self.listeners[number] = Listener(self, factory, number, sock)
        return self.listeners[number]

    def _free_port(self) -> int:
        return next(port for port in self._ports if port not in self.listeners)

    def find(self, host: Any, port: Any) -> Listener | None:
        return self.listeners.get(port) if host in LOCAL else None

    def dial(self, sock: socket.socket, address: Any) -> bool:
        """Note where this socket leads, if that is in memory: it is connected when a protocol is given for it."""
        listener = self.find(*address[:2])
        if listener is not None:
            self._dialled[sock] = listener
        return listener is not None

    def dialled(self, sock: socket.socket) -> Listener | None:
        listener = self._dialled.pop(sock, None)
        if listener is not None:
            sock.close()
        return listener

    def connect(self, factory: Factory, listener: Listener) -> tuple["Transport", asyncio.BaseProtocol]:
        if not listener.is_serving():
            raise ConnectionRefusedError(111, "nobody listens there any more")
        here, there = ("127.0.0.1", self._free_port()), ("127.0.0.1", listener.port)
        client = Transport(self.loop, here, there, copy_context())
        server = Transport(self.loop, there, here, listener.context.copy())
        client.peer, server.peer = server, client
        client.pace = listener.pace
        served, protocol = listener.factory(), factory()
        client.begin(protocol)
        server.context.run(server.begin, served)
        return client, protocol


class Transport(asyncio.Transport):
    """One end of a connection: what is written arrives at the other end in the next turn of the loop, or at a pace."""

    peer: "Transport"
    pace: Callable[[], float] | None = None

    def __init__(
        self, loop: asyncio.AbstractEventLoop, here: tuple[str, int], there: tuple[str, int], context: Context,
    ) -> None:
        super().__init__({"sockname": here, "peername": there, "socket": FakeSocket(here, there)})
        self.context = context
        self._loop = loop
        self._inbox: list[bytes] = []
        self._waiting = 0
        self._is_eof_coming = self._is_eof_told = self._is_reset_coming = self._is_delivery_due = False
        self._is_reading, self._is_writing_paused = True, False
        self._is_closing = self._is_ended = self._is_lost = False
        self._high, self._low = HIGH, LOW

    def begin(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol: Any = protocol
        protocol.connection_made(self)

    # -- reading ------------------------------------------------------------------------------------------------

    def _arrive(self, given: bytes) -> None:
        self._inbox.append(given)
        self._waiting += len(given)
        self._deliver_soon()

    def _deliver_soon(self) -> None:
        if not self._is_delivery_due and self._is_reading and not self._is_lost:
            self._is_delivery_due = True
            if self.pace is None:
                self._loop.call_soon(self._deliver, context=self.context)
            else:
                self._loop.call_later(self.pace(), self._deliver, context=self.context)

    def _deliver(self) -> None:
        self._is_delivery_due = False
        if not self._is_reading or self._is_lost or self._is_ended:
            return
        if self._inbox:
            given = self._next_read()
            self.peer._drained()
            if isinstance(self._protocol, asyncio.BufferedProtocol):
                _feed_data_to_buffered_proto(self._protocol, given)
            else:
                self._protocol.data_received(given)
            if self._inbox or self._is_eof_coming:
                self._deliver_soon()  # as from a socket: whoever was told of the words may answer before the end
            return
        if self._is_eof_coming and not self._is_eof_told and not self._inbox and self._is_reading:
            self._is_eof_told = True
            if self._is_reset_coming:
                self._reset()
            elif not self._protocol.eof_received():
                self.close()

    def _next_read(self) -> bytes:
        """All that has arrived, as far as one read goes; at a pace, what was written at once."""
        whole = b"".join(self._inbox) if self.pace is None else self._inbox.pop(0)
        rest = [whole[READ:]] if len(whole) > READ else []
        self._inbox = rest if self.pace is None else [*rest, *self._inbox]
        self._waiting = sum(map(len, self._inbox))
        return whole[:READ] if rest else whole

    def is_reading(self) -> bool:
        return self._is_reading and not self._is_closing

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self._deliver_soon()

    # -- writing --------------------------------------------------------------------------------------------------

    def write(self, data: Any) -> None:
        if self._is_ended or self._is_lost or not data:
            return
        if self.peer._is_ended:
            self._is_closing = True
            self._loop.call_soon(
                self._lose, ConnectionResetError(104, "the other end is closed"), context=self.context)
            return
        self.peer._arrive(bytes(data))
        if self.get_write_buffer_size() > self._high and not self._is_writing_paused:
            self._is_writing_paused = True
            self._protocol.pause_writing()

    def get_write_buffer_size(self) -> int:
        return max(0, self.peer._waiting - IN_FLIGHT)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = HIGH if high is None else high
        self._low = self._high // 4 if low is None else low

    def _drained(self) -> None:
        """The other end has taken some of what was on its way."""
        if self._is_writing_paused and self.get_write_buffer_size() <= self._low:
            self._is_writing_paused = False
            self._loop.call_soon(self._resume_writing, context=self.context)
        if self._is_closing and self.get_write_buffer_size() == 0:
            self._finish()

    def _resume_writing(self) -> None:
        if not self._is_lost and not self._is_writing_paused:
            self._protocol.resume_writing()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.peer._end_coming()

    def _end_coming(self) -> None:
        self._is_eof_coming = True
        if self._is_reset_coming and not self._is_reading:
            self._loop.call_soon(self._reset, context=self.context)
        self._deliver_soon()

    # -- the end ---------------------------------------------------------------------------------------------------

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        """What was written is still delivered; then the other end is told."""
        if not self._is_closing:
            self._is_closing, self._is_reading = True, False
            if self.get_write_buffer_size() == 0:
                self._finish()

    def _finish(self) -> None:
        if not self._is_ended:
            self._is_ended = True
            self.peer._is_reset_coming = bool(self._inbox)
            self._inbox, self._waiting = [], 0
            self.peer._end_coming()
            self._loop.call_soon(self._lose, None, context=self.context)

    def abort(self) -> None:
        """What the other end has not been sent is dropped; what this end had not read breaks the connection."""
        if self._is_ended:
            return
        self._is_closing, self._is_reading = True, False
        if self._inbox:
            self._is_ended = True
            self._loop.call_soon(self._lose, None, context=self.context)
            self._loop.call_soon(
                self.peer._lose, ConnectionResetError(104, "the other end has broken off"), context=self.peer.context)
            return
        if self.get_write_buffer_size():
            kept = b"".join(self.peer._inbox)[:IN_FLIGHT]
            self.peer._inbox, self.peer._waiting = [kept], len(kept)
        self._finish()

    def _force_close(self, error: Exception | None) -> None:
        """As asyncio's TLS breaks off."""
        self.abort()

    def _reset(self) -> None:
        """As when a socket is closed before all was read: the other end hears of it even if it only writes."""
        self._lose(ConnectionResetError(104, "the other end was closed before it had read everything"))

    def _lose(self, error: Exception | None) -> None:
        if not self._is_lost:
            self._is_closing = self._is_ended = self._is_lost = True
            self._protocol.connection_lost(error)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol  # type: ignore[no-any-return]
