"""The network of a world: machines with addresses, connections with delays, and what can happen to them.

A connection is a `Link` with two ends. What is written arrives at the other end later, in order, as long as the way
between the two machines is open. Both ends are asyncio transports, so aiohttp, the Redis client and Socket.IO run on
them as on sockets.

| what happens | what the ends see |
|---|---|
| `cut` | both are told that the connection was reset, each after a delay; what was on its way is lost |
| `sever` | what was on its way is lost and nobody is told: a half-open connection |
| a partition | whatever is sent waits until the partition heals, as TCP repeats it; new connections do not come about |
| a block | connections are reset, and so are new ones as soon as they come about |
| a process dies | the other end is told that the connection was reset |
"""

import asyncio
import zlib
from asyncio.protocols import _feed_data_to_buffered_proto  # type: ignore[attr-defined]
from collections import deque
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from tests.prove.simulation.loop import PROCESS, Process, ProcessState, WorldLoop
from tests.simulation.network import HIGH, IN_FLIGHT, LOW, READ, FakeSocket

Factory = Callable[[], asyncio.BaseProtocol]
Trace = Callable[[str, str, str], None]
"""(process, what happened, more about it)."""
UNACKNOWLEDGED_SECONDS = 30.0
"""How long the system repeats what is not acknowledged: what gateways ask of it (`limits.send_seconds`)."""
LATE_SECONDS = 0.1
"""A server asks Redis, waits for a third of its lease, and may lose that to a few messages which take so long."""
CONNECT_SECONDS = 3.0
"""How long the system waits before it tries to connect again."""


class Listener(asyncio.AbstractServer):
    """A process that takes connections on a port of its machine."""

    def __init__(self, network: "Network", factory: Factory, process: Process, port: int) -> None:
        self.factory = factory
        self.process = process
        self.port = port
        self.sockets: tuple[Any, ...] = (FakeSocket((process.host, port)),)
        self._network = network
        self._closed = asyncio.Event()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._network.loop

    def is_serving(self) -> bool:
        return self._network.listeners.get((self.process.host, self.port)) is self

    async def start_serving(self) -> None:
        self._network.listeners[self.process.host, self.port] = self

    async def serve_forever(self) -> None:
        await self._closed.wait()

    def leave(self) -> None:
        """Nobody listens here any more."""
        if self.is_serving():
            del self._network.listeners[self.process.host, self.port]

    def close(self) -> None:
        self.leave()
        self.sockets = ()
        self._closed.set()

    def close_clients(self) -> None:
        """Connections are closed by those who have them."""

    abort_clients = close_clients

    async def wait_closed(self) -> None:
        await self._closed.wait()


class DialledSocket(FakeSocket):
    """A socket that has been connected, for whoever connects first and gives a protocol afterwards."""

    def __init__(self, link: "Link") -> None:
        super().__init__(link.client.here, link.client.there)
        self.link = link

    def close(self) -> None:
        """Whoever gives up closes the connection."""
        self.link.abandon()


class Network:
    """The machines, the ways between them, and all connections."""

    def __init__(self, loop: WorldLoop, seed: str, trace: Trace | None) -> None:
        self.loop = loop
        self.random = Random(f"{seed} network")
        self.is_traced = trace is not None
        self.trace = trace or (lambda process, kind, words: None)
        self.delay = 0.0005
        """Seconds that a message is on its way, on an average."""
        self.listeners: dict[tuple[str, int], Listener] = {}
        self.balancers: dict[str, Callable[[], list[str]]] = {}
        """By address: the machines to which a connection may go, the next one first."""
        self.links: dict[int, Link] = {}
        self.slow: dict[str, float] = {}
        """By machine: seconds by which every message from and to it is late."""
        self.is_calm = False
        """Whether everything was mended: no message takes long any more."""
        self.last_late = 0.0
        """When the last message came, or comes, that takes so long that its receiver may have given up."""
        self._closed_ways: dict[frozenset[str], int] = {}
        self._blocked_ways: dict[frozenset[str], int] = {}
        self._numbers = count(1)
        loop.network = self

    # -- listening and connecting -----------------------------------------------------------------------------------

    def listen(self, factory: Factory, process: Process, port: int | None) -> Listener:
        number = port or 50_000 + next(self._numbers)
        if (process.host, number) in self.listeners:
            raise OSError(98, f"port {number} of {process.host} is taken")
        listener = self.listeners[process.host, number] = Listener(self, factory, process, number)
        process.exits[listener] = listener.leave
        return listener

    async def connect_socket(self, addr_infos: Any, **given: Any) -> DialledSocket:
        """In place of `aiohappyeyeballs.start_connection`."""
        host, port = addr_infos[0][4][:2]
        return DialledSocket(await self.dial(PROCESS.get(self.loop.host), host, port))

    async def dial(self, process: Process, host: str, port: int) -> "Link":
        """A connection to the machine of that address, or to one of those behind it; raises `OSError`."""
        targets = self.balancers[host]() if host in self.balancers else [host]
        for target in targets:
            while not self.is_open(process.host, target):
                if host in self.balancers:
                    break
                await asyncio.sleep(CONNECT_SECONDS)
            else:
                await asyncio.sleep(2 * self.latency(process.host, target))
                listener = self.listeners.get((target, port))
                if listener is not None and self.is_open(process.host, target):
                    return Link(self, next(self._numbers), process, listener)
        self.trace(process.name, "refused", f"{host}:{port}")
        raise ConnectionRefusedError(111, f"nobody listens at {host}:{port}")

    # -- ways -----------------------------------------------------------------------------------------------------

    def latency(self, one: str, other: str) -> float:
        """Seconds that the next message between these machines is on its way; a few take much longer than most."""
        usual = self.random.expovariate(1.0 / self.delay) + self.slow.get(one, 0.0) + self.slow.get(other, 0.0)
        if self.random.random() >= 0.01 or self.is_calm:
            return usual
        if 20 * usual > LATE_SECONDS:
            self.last_late = self.loop.now + 20 * usual
        return 20 * usual

    def is_open(self, one: str, other: str) -> bool:
        return not self._closed_ways or frozenset((one, other)) not in self._closed_ways

    def close_way(self, one: str, other: str) -> None:
        way = frozenset((one, other))
        self._closed_ways[way] = self._closed_ways.get(way, 0) + 1

    def open_way(self, one: str, other: str) -> None:
        """The last one to mend the way opens it: what waited is on its way again."""
        way = frozenset((one, other))
        self._closed_ways[way] -= 1
        if not self._closed_ways[way]:
            del self._closed_ways[way]
            for link in list(self.links.values()):
                link.mended()

    def block_way(self, one: str, other: str) -> None:
        """Something between the two machines resets every connection."""
        way = frozenset((one, other))
        self._blocked_ways[way] = self._blocked_ways.get(way, 0) + 1
        for link in self.links_between(one, other):
            link.cut()

    def unblock_way(self, one: str, other: str) -> None:
        way = frozenset((one, other))
        self._blocked_ways[way] -= 1
        if not self._blocked_ways[way]:
            del self._blocked_ways[way]

    def is_blocked(self, one: str, other: str) -> bool:
        return bool(self._blocked_ways) and frozenset((one, other)) in self._blocked_ways

    def links_between(self, one: str, other: str) -> list["Link"]:
        return [link for link in self.links.values() if {one, other} == {end.host for end in link.processes}]


class Link:
    """A connection between two processes: both ends, and what is on its way between them."""

    def __init__(self, network: Network, number: int, client: Process, listener: Listener) -> None:
        self.network = network
        self.number = number
        self.processes = client, listener.process
        here, there = (client.host, 40_000 + number % 20_000), (listener.process.host, listener.port)
        self.client, self.server = End(self, client, here, there), End(self, listener.process, there, here)
        self.client.peer, self.server.peer = self.server, self.client
        self.is_severed = False
        self._listener = listener
        network.links[number] = self
        for end in (self.client, self.server):
            end.process.exits[end] = end.process_died
        network.trace(client.name, "connected", f"#{number} {there[0]}:{there[1]}")

    @property
    def is_open(self) -> bool:
        one, other = self.processes
        return not self.is_severed and self.network.is_open(one.host, other.host)

    def open(self, factory: Factory) -> tuple["End", asyncio.BaseProtocol]:
        """The client gives its protocol, and the server hears of the connection."""
        protocol, listener = factory(), self._listener
        self.client.begin(protocol)
        if listener.is_serving():
            context = listener.process.context.copy()
            self.server.context = context
            self.network.loop.call_soon(self._accept, listener, context=context)
        else:
            self.client.reset_later("nobody listens there any more")
        if self.network.is_blocked(*(one.host for one in self.processes)):
            self.cut()
        return self.client, protocol

    def _accept(self, listener: Listener) -> None:
        self.server.begin(listener.factory())

    def abandon(self) -> None:
        """Whoever connected does not want the connection."""
        if self.client.protocol is None:
            self.forget()

    def cut(self) -> None:
        """The connection is reset, as by a machine between the two."""
        self.network.trace("network", "cut", f"#{self.number} {self.processes[0].name} {self.processes[1].name}")
        self.sever()
        self.client.reset_later("cut")
        self.server.reset_later("cut")

    def sever(self) -> None:
        """Nothing comes through any more, and nobody is told."""
        self.is_severed = True
        self.client.on_the_way.clear()
        self.server.on_the_way.clear()

    def mended(self) -> None:
        self.client.deliver_soon()
        self.server.deliver_soon()

    def forget(self) -> None:
        self.network.links.pop(self.number, None)


EOF = b""


class End(asyncio.Transport):
    """One end of a link: what the other end has written waits here until it is due, and until this end reads."""

    peer: "End"

    def __init__(self, link: Link, process: Process, here: tuple[str, int], there: tuple[str, int]) -> None:
        super().__init__({"sockname": here, "peername": there, "socket": FakeSocket(here, there)})
        self.link = link
        self.process = process
        self.here, self.there = here, there
        self.context = process.context.copy()
        self.protocol: Any = None
        self.on_the_way: deque[tuple[float, bytes]] = deque()
        """What comes to this end, and when."""
        self._bytes = 0
        """How many of them."""
        self._last = 0.0
        self._due: asyncio.TimerHandle | None = None
        self._timeout: asyncio.TimerHandle | None = None
        self._is_reading, self._is_writing_paused = True, False
        self._is_closing = self._has_sent_eof = self._is_lost = self._has_read_eof = False
        self._loop = link.network.loop
        self._high, self._low = HIGH, LOW

    def begin(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol
        protocol.connection_made(self)
        self.deliver_soon()

    # -- reading --------------------------------------------------------------------------------------------------

    def arrive(self, given: bytes) -> None:
        """The other end has written this, or its end."""
        if self.link.is_severed:
            return
        one, other = self.link.processes
        self._last = max(self._last, self._loop.now + self.link.network.latency(one.host, other.host))
        self.on_the_way.append((self._last, given))
        self._bytes += len(given)
        self.deliver_soon()

    def deliver_soon(self) -> None:
        can_read = self._is_reading and not self._is_lost and self.protocol is not None
        if self._due is None and self.on_the_way and can_read:
            when = max(self.on_the_way[0][0], self._loop.now)
            self._due = self._loop.call_at(when, self._deliver, context=self.context)

    def _deliver(self) -> None:
        self._due = None
        if not self._is_reading or self._is_lost or not self.on_the_way or not self.link.is_open:
            return  # whoever mends the way, or reads again, delivers the rest
        network, now = self.link.network, self._loop.now
        if self.on_the_way[0][1] is EOF:
            self.on_the_way.popleft()
            network.trace(self.process.name, "end", f"#{self.link.number}")
            self._has_read_eof = True
            if not self.protocol.eof_received():
                self.close()
            return
        pieces, size = [], 0
        while self.on_the_way and self.on_the_way[0][0] <= now and self.on_the_way[0][1] and size < READ:
            pieces.append(self.on_the_way.popleft()[1])
            size += len(pieces[-1])
        given = b"".join(pieces) if len(pieces) != 1 else pieces[0]
        self._bytes -= len(given)
        if given:
            if network.is_traced:
                network.trace(
                    self.process.name, "read", f"#{self.link.number} {len(given)} {zlib.crc32(given):08x}")
            self.peer._drained()
            if isinstance(self.protocol, asyncio.BufferedProtocol):
                _feed_data_to_buffered_proto(self.protocol, given)
            else:
                self.protocol.data_received(given)
        self.deliver_soon()

    def is_reading(self) -> bool:
        return self._is_reading and not self._is_closing

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self.deliver_soon()

    # -- writing --------------------------------------------------------------------------------------------------

    def write(self, data: Any) -> None:
        if self._is_lost or self._has_sent_eof or not data:
            return
        if self.peer._is_lost and self.peer.process.state is not ProcessState.DEAD and not self.link.is_severed:
            self.reset_later("the other end is closed")
            return
        if self.link.is_severed:
            self._give_up_later()
            return
        self.peer.arrive(bytes(data))
        if self.get_write_buffer_size() > self._high and not self._is_writing_paused:
            self._is_writing_paused = True
            self.protocol.pause_writing()

    def _give_up_later(self) -> None:
        """The system repeats what nobody acknowledges, and then tells the process that the connection is dead."""
        if self._timeout is None:
            error = TimeoutError(110, "nobody acknowledges what was sent")
            self._timeout = self._loop.call_later(UNACKNOWLEDGED_SECONDS, self.lose, error, context=self.context)

    def get_write_buffer_size(self) -> int:
        return max(0, self.peer._bytes - IN_FLIGHT)

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

    def _resume_writing(self) -> None:
        if not self._is_lost and not self._is_writing_paused:
            self.protocol.resume_writing()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._has_sent_eof and not self._is_lost:
            self._has_sent_eof = True
            self.peer.arrive(EOF)

    # -- the end --------------------------------------------------------------------------------------------------

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        """What was written still arrives, and then the end."""
        if self._is_closing:
            return
        self._is_closing, self._is_reading = True, False
        unread = any(piece for _, piece in self.on_the_way)
        if unread:  # as a socket that is closed before everything was read
            self.peer.reset_later("the other end was closed before it had read everything")
        else:
            self.write_eof()
        self._loop.call_soon(self.lose, None, context=self.context)

    def abort(self) -> None:
        if not self._is_closing:
            self._is_closing, self._is_reading = True, False
            self.peer.reset_later("the other end has broken off")
            self._loop.call_soon(self.lose, None, context=self.context)

    def _force_close(self, error: Exception | None) -> None:
        self.abort()

    def process_died(self) -> None:
        """The system closes the socket of a process that is gone."""
        if not self._is_lost:
            self._is_lost = True
            if self.on_the_way or self.link.network.random.random() < 0.5:
                self.peer.reset_later("the other process has died")
            else:
                self.peer.arrive(EOF)
            if self.peer._is_lost:  # else the other end has a dead connection, and may never notice
                self.link.forget()

    def reset_later(self, why: str) -> None:
        """This end hears that the connection was reset, when the message of that has come; never if none comes."""
        if not self._is_lost and not self._is_closing:
            one, other = self.link.processes
            error = ConnectionResetError(104, why)
            delay = self.link.network.latency(one.host, other.host)
            self._loop.call_later(delay, self._reset, error, context=self.context)

    def _reset(self, error: Exception) -> None:
        one, other = self.link.processes
        if not self.link.network.is_open(one.host, other.host):
            self._loop.call_later(CONNECT_SECONDS, self._reset, error, context=self.context)
            return
        self.lose(error)

    def lose(self, error: Exception | None) -> None:
        if self._is_lost:
            return
        self._is_closing = self._is_lost = True
        self.process.exits.pop(self, None)
        if self.peer._is_lost:
            self.link.forget()
        if self.protocol is not None:
            self.link.network.trace(self.process.name, "lost", f"#{self.link.number} {error or ''}")
            self.protocol.connection_lost(error)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self.protocol  # type: ignore[no-any-return]
