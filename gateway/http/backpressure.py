"""How the server parts with a client that is too slow, or when it stops: in words that make the client come again.

The rest of a turn, for one who has had its first frames.
"""

import socket
from collections.abc import Iterable, Iterator, Sequence

from aiohttp import WSCloseCode
from msgspec.structs import replace

from gateway.ports import Chunk, Subscription

RETRY_MS = 1000
"""After how many milliseconds a reader of server-sent events should come again."""
RETRY_SECONDS = 2
"""The same for whoever is refused because the server has too much to do, or is about to stop."""
BATCH_FRAMES = 128
"""Frames that are sent at once: a slow client has to take so many in its time, however much is ready for it."""
KERNEL_TIMEOUT_FACTOR = 2
"""How many times as patient as we the system is, with a peer that does not even acknowledge the little it is sent."""
MAX_UNSENT_BYTES = 128 * 1024
"""How much of a stream the system may keep that it has not sent yet."""


class ClientStalled(ConnectionResetError):
    """The client takes nothing, and was cut."""


def sse_farewell(subscription: Subscription) -> bytes:
    """What a reader of server-sent events is told at the end of a stream that it should resume."""
    if subscription.is_draining:
        return f"retry: {RETRY_MS}\n: server restarts; reconnect\n\n".encode()
    if subscription.cut_at is not None:
        return f"retry: {RETRY_MS}\n: client too slow; reconnect with the last event id\n\n".encode()
    return b""


def websocket_close_reason(subscription: Subscription) -> tuple[int, bytes]:
    """Code and reason for a WebSocket whose subscription is over before the turn is."""
    if subscription.is_draining:
        return RESTART_CLOSE
    if subscription.cut_at is not None:
        return WSCloseCode.TRY_AGAIN_LATER, b"client too slow; reconnect with the last frame id"
    return WSCloseCode.INTERNAL_ERROR, b"session deleted"


RESTART_CLOSE = (WSCloseCode.SERVICE_RESTART, b"server restarts; reconnect")


def frame_batches(frames: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """The same frames, so many at a time."""
    if len(frames) <= BATCH_FRAMES:
        yield frames
        return
    for at in range(0, len(frames), BATCH_FRAMES):
        yield frames[at:at + BATCH_FRAMES]


def limit_send_buffers(doors: Iterable[socket.socket], patience: float) -> None:
    """What a client does not take waits where it is seen and can be cut, not by the megabyte in the system.

    Whoever comes in by these doors is treated so: a connection has what its door was given.
    """
    limits = {"TCP_NOTSENT_LOWAT": MAX_UNSENT_BYTES, "TCP_USER_TIMEOUT": int(KERNEL_TIMEOUT_FACTOR * patience * 1000)}
    known = {getattr(socket, name): value for name, value in limits.items() if hasattr(socket, name)}
    for door in doors:
        for option, value in known.items():
            door.setsockopt(socket.IPPROTO_TCP, option, value)


class ResumedSubscription:
    """A subscription that keeps to itself the frames its reader has had; the turn is made anew from its start."""

    def __init__(self, subscription: Subscription, had: int) -> None:
        self._subscription = subscription
        self._had = had

    @property
    def cut_at(self) -> int | None:
        return self._subscription.cut_at

    @property
    def is_draining(self) -> bool:
        return self._subscription.is_draining

    async def chunks(self) -> Sequence[Chunk]:
        while chunks := await self._subscription.chunks():
            if not self._had:
                return chunks
            if left := [chunk for chunk in map(self._left, chunks) if chunk.frames or chunk.yields]:
                return left
        return ()

    def _left(self, chunk: Chunk) -> Chunk:
        had = min(self._had, len(chunk.frames))
        self._had -= had
        return replace(chunk, frames=chunk.frames[had:]) if had else chunk

    def cut(self) -> None:
        self._subscription.cut()

    def close(self) -> None:
        self._subscription.close()
