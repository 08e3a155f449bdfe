"""Clients of Socket.IO: limits until they show a key; then events in order, no faster than the client reads."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import cache
from typing import Any, Protocol

import orjson
import structlog
from engineio.exceptions import EngineIOError  # type: ignore[import-untyped]

from gateway.http.backpressure import ClientStalled
from gateway.http.security import GetConnectionLimits, OpenRequest, UnauthenticatedClients
from gateway.logging import SampledLogger
from gateway.ports import Caller, Frame, StreamOptions, Subscription
from gateway.time_slices import next_slice

MAX_HANDSHAKE_BYTES = 64 * 1024
"""The number of bytes that a client may send before its key: a CONNECT packet has a key and little else."""
MAX_HANDSHAKE_PACKETS = 16
"""The number of packets that a client may send before its key."""
CONNECT_PACKET = "0"


class PendingHandshakes:
    """The transports of unknown clients; each has a deadline, and the oldest is closed for one too many."""

    def __init__(
        self, limits: GetConnectionLimits, cut: Callable[[str], Coroutine[object, None, None]], sampled: SampledLogger,
    ) -> None:
        self._limits = limits
        self._cut = cut
        self._sampled = sampled
        self._room = UnauthenticatedClients[str](limits)
        self._deadlines: dict[str, asyncio.TimerHandle] = {}
        self._packets: dict[str, int] = {}
        self._cutting: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._deadlines)

    def __contains__(self, transport_id: str) -> bool:
        return transport_id in self._deadlines

    def begin(self, transport_id: str, address: str) -> None:
        self.end(transport_id)
        oldest = self._room.add(transport_id, address)
        seconds = self._limits().handshake_seconds
        later = asyncio.get_running_loop().call_later
        self._deadlines[transport_id] = later(seconds, self._refuse, transport_id, "handshake_seconds")
        self._packets[transport_id] = 0
        if oldest is not None:
            self._refuse(oldest, "max_unauthenticated")

    def end(self, transport_id: str) -> None:
        """Forget a transport: its client is authenticated or has disconnected."""
        self._room.discard(transport_id)
        self._packets.pop(transport_id, None)
        if (deadline := self._deadlines.pop(transport_id, None)) is not None:
            deadline.cancel()

    def accepts_packet(self, transport_id: str, packet: str | bytes) -> bool:
        """Say whether to read a packet: an unknown client may only send CONNECT, and only a few times."""
        if transport_id not in self._deadlines:
            return True
        self._packets[transport_id] += 1
        if self._packets[transport_id] > MAX_HANDSHAKE_PACKETS:
            self._refuse(transport_id, "too many packets")
            return False
        return isinstance(packet, str) and packet.startswith(CONNECT_PACKET)

    def _refuse(self, transport_id: str, reason: str) -> None:
        self._sampled.info("socketio_client_cut", reason=reason)
        self.end(transport_id)
        task = asyncio.create_task(self._cut(transport_id), name=f"cut {transport_id}")
        self._cutting.add(task)
        task.add_done_callback(self._cutting.discard)


log = structlog.get_logger("dragoman.socketio")

EVENT_PACKET = "2"
LARGE_FRAME_BYTES = 256 * 1024
"""A frame with more bytes is written in a slice of its own."""


class SocketIOConnections(Protocol):
    """The connections of clients, as far as sending needs them."""

    patience: Callable[[], float]

    @property
    def eio(self) -> Any: ...
    def room(self, transport_id: str) -> int:
        """Return the number of events that may wait for a client."""
    def queue(self, transport_id: str) -> "asyncio.Queue[Any] | None":
        """Return the queue of a client; None if the client has disconnected."""
    async def cut(self, transport_id: str) -> None:
        """End a connection without a farewell."""


@cache
def _packet_head(name: str) -> str:
    """How the packet of an event of this name begins; names are words of a table, so there are few."""
    return f"{EVENT_PACKET}[{orjson.dumps(name).decode()},"


class SocketIOClient:
    """One connected client."""

    def __init__(self, server: SocketIOConnections, sid: str, transport_id: str, caller: Caller) -> None:
        self.caller = caller
        self.owner = caller.user
        self.admission: OpenRequest | None = None
        self.sid = sid
        self.command_lock = asyncio.Lock()
        self._server = server
        self.transport_id = transport_id
        self._word = asyncio.Lock()
        self._following: dict[str, tuple[StreamOptions, asyncio.Task[None]]] = {}

    # -- sending --------------------------------------------------------------------------------------------------

    async def send(self, frames: Iterable[Frame]) -> None:
        """Send all frames; a client that does not read in time is cut."""
        async with self._word:
            ready = list(frames)
            while ready:
                room = self._server.room(self.transport_id)
                now, ready = ready[:room], ready[room:]
                for frame in now:
                    if len(frame.body) > LARGE_FRAME_BYTES:
                        await next_slice()
                    packet = f"{_packet_head(frame.name)}{frame.body.decode()}]"
                    await self._server.eio.send(self.transport_id, packet)
                await self._taken()

    async def _taken(self) -> None:
        """Wait until the client has taken everything; a client that does not read in time is cut."""
        queue = self._server.queue(self.transport_id)
        if queue is None:
            raise ConnectionResetError("the client has left")
        try:
            async with asyncio.timeout(self._server.patience()):
                await queue.join()
        except TimeoutError:
            log.warning("socketio_client_stalled", user=self.owner)
            await self._server.cut(self.transport_id)
            raise ClientStalled("the client does not read") from None

    def wake_poll(self) -> None:
        """End a polling request that waits for events."""
        if (queue := self._server.queue(self.transport_id)) is not None:
            queue.put_nowait(None)

    # -- following ------------------------------------------------------------------------------------------------

    def followed_options(self, session_id: str) -> StreamOptions | None:
        """Return how the client follows that session, if it does."""
        found = self._following.get(session_id)
        return found[0] if found is not None and not found[1].done() else None

    def follow(
        self, session_id: str, options: StreamOptions, subscription: Subscription, after: int | None = None
    ) -> None:
        """Send the frames of a subscription, instead of what was followed of the session before.

        A client that has had the frames up to the cursor `after` gets only those whose cursor is greater.
        """
        self.unfollow(session_id)
        pumping = asyncio.create_task(self._pump(subscription, after), name=f"follow {session_id}")
        pumping.add_done_callback(_log_failure)
        pumping.add_done_callback(lambda done: subscription.close())  # the task may be cancelled before it starts
        self._following[session_id] = (options, pumping)

    def unfollow(self, session_id: str) -> None:
        if (found := self._following.pop(session_id, None)) is not None:
            found[1].cancel()

    async def wait_until_idle(self) -> None:
        """Return when nothing is being sent to the client."""
        if pumping := [task for _, task in self._following.values()]:
            await asyncio.wait(pumping)

    def unfollow_all(self) -> None:
        for session_id in list(self._following):
            self.unfollow(session_id)

    async def _pump(self, subscription: Subscription, after: int | None) -> None:
        try:
            while chunks := await subscription.chunks():
                await self.send([
                    frame for chunk in chunks for frame in chunk.frames if after is None or _follows(frame, after)
                ])
            if subscription.cut_at is not None:
                await self._server.cut(self.transport_id)
        except ClientStalled:
            subscription.cut()
        except (ConnectionResetError, EngineIOError):
            pass  # the client has disconnected


def _log_failure(pumping: asyncio.Task[None]) -> None:
    if not pumping.cancelled() and (error := pumping.exception()) is not None:
        log.error("socketio_stream_failed", task=pumping.get_name(), exc_info=error)


def _follows(frame: Frame, after: int) -> bool:
    return isinstance(frame.cursor, int) and frame.cursor > after
