"""One client of Socket.IO: sends events in order, no faster than the client reads, and follows sessions for it."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import orjson
import structlog
from engineio.exceptions import EngineIOError  # type: ignore[import-untyped]

from gateway.http.backpressure import ClientStalled
from gateway.http.security import OpenRequest
from gateway.ports import Caller, Subscription
from gateway.time_slices import next_slice

log = structlog.get_logger("dragoman.socketio")

EVENT_PACKET = "2"
LARGE_FRAME_BYTES = 256 * 1024
"""A frame with more bytes is written in a slice of its own."""

FrameFilter = Callable[[bytes], bool]


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


def split_frame(frame: bytes) -> tuple[str, bytes]:
    """Return the name and the payload of a frame `{"event": name, "data": payload}`."""
    if frame.startswith(_HEAD):
        name, found, payload = frame[len(_HEAD):].partition(_MIDDLE)
        if found and b"\\" not in name:
            return name.decode(), payload[:-1]
    whole = orjson.loads(frame)
    return whole["event"], orjson.dumps(whole["data"])


_HEAD, _MIDDLE = b'{"event":"', b'","data":'


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
        self._following: dict[str, tuple[str, asyncio.Task[None]]] = {}

    # -- sending --------------------------------------------------------------------------------------------------

    async def send(self, frames: Iterable[bytes]) -> None:
        """Send all frames; a client that does not read in time is cut."""
        async with self._word:
            ready = list(frames)
            while ready:
                room = self._server.room(self.transport_id)
                now, ready = ready[:room], ready[room:]
                for frame in now:
                    if len(frame) > LARGE_FRAME_BYTES:
                        await next_slice()
                    name, payload = split_frame(frame)
                    await self._server.eio.send(self.transport_id, f'{EVENT_PACKET}["{name}",{payload.decode()}]')
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

    def followed_options(self, session_id: str) -> str | None:
        """Return how the client follows that session, if it does."""
        found = self._following.get(session_id)
        return found[0] if found is not None and not found[1].done() else None

    def follow(self, session_id: str, manner: str, subscription: Subscription, keep: FrameFilter | None = None) -> None:
        """Send all events of the session from now on, in place of an earlier subscription."""
        self.unfollow(session_id)
        pumping = asyncio.create_task(self._pump(subscription, keep), name=f"follow {session_id}")
        pumping.add_done_callback(_log_failure)
        pumping.add_done_callback(lambda done: subscription.close())  # the task may be cancelled before it starts
        self._following[session_id] = (manner, pumping)

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

    async def _pump(self, subscription: Subscription, keep: FrameFilter | None) -> None:
        try:
            while chunks := await subscription.chunks():
                await self.send(_filter_frames(chunks, keep))
            if subscription.cut_at is not None:
                await self._server.cut(self.transport_id)
        except ClientStalled:
            subscription.cut()
        except (ConnectionResetError, EngineIOError):
            pass  # the client has disconnected


def _log_failure(pumping: asyncio.Task[None]) -> None:
    if not pumping.cancelled() and (error := pumping.exception()) is not None:
        log.error("socketio_stream_failed", task=pumping.get_name(), exc_info=error)


def _filter_frames(chunks: Sequence[Any], keep: FrameFilter | None) -> list[bytes]:
    frames = [frame for chunk in chunks for frame in chunk.frames]
    return frames if keep is None else [frame for frame in frames if keep(frame)]
