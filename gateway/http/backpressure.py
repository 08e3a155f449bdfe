"""How the server ends streams of slow clients, or all streams when it stops, so that clients resume them."""

import socket
from collections.abc import Iterable, Iterator, Sequence

from aiohttp import WSCloseCode
from msgspec.structs import replace

from gateway.ports import Chunk, Subscription

RETRY_MS = 1000
"""Milliseconds until a client of server-sent events should reconnect."""
RETRY_SECONDS = 2
"""Seconds for Retry-After of a server that has too much to do or is about to stop."""
BATCH_FRAMES = 128
"""The number of frames of one write: a slow client must take so many within its timeout, however many are ready."""
KERNEL_TIMEOUT_FACTOR = 2
"""How many times longer than `send_seconds` the system waits for a peer that acknowledges nothing."""
MAX_UNSENT_BYTES = 128 * 1024
"""The number of unsent bytes of a stream that the system may hold."""


class ClientStalled(ConnectionResetError):
    """The client does not read, and its connection was cut."""


def sse_farewell(subscription: Subscription) -> bytes:
    """Return the last bytes of a stream of server-sent events that its client should resume."""
    if subscription.is_draining:
        return f"retry: {RETRY_MS}\n: server restarts; reconnect\n\n".encode()
    if subscription.cut_at is not None:
        return f"retry: {RETRY_MS}\n: client too slow; reconnect with the last event id\n\n".encode()
    return b""


def websocket_close_reason(subscription: Subscription) -> tuple[int, bytes]:
    """Return code and reason to close a WebSocket whose subscription ended before its turn."""
    if subscription.is_draining:
        return RESTART_CLOSE
    if subscription.cut_at is not None:
        return WSCloseCode.TRY_AGAIN_LATER, b"client too slow; reconnect with the last frame id"
    return WSCloseCode.INTERNAL_ERROR, b"session deleted"


RESTART_CLOSE = (WSCloseCode.SERVICE_RESTART, b"server restarts; reconnect")


def frame_batches(frames: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Yield the frames in batches."""
    if len(frames) <= BATCH_FRAMES:
        yield frames
        return
    for at in range(0, len(frames), BATCH_FRAMES):
        yield frames[at:at + BATCH_FRAMES]


def limit_send_buffers(doors: Iterable[socket.socket], patience: float) -> None:
    """Limit the send buffers of listening sockets; their connections inherit the limit.

    Unsent data then wait in the server, where a slow client is noticed and cut, not by the megabyte in the system.
    """
    limits = {"TCP_NOTSENT_LOWAT": MAX_UNSENT_BYTES, "TCP_USER_TIMEOUT": int(KERNEL_TIMEOUT_FACTOR * patience * 1000)}
    known = {getattr(socket, name): value for name, value in limits.items() if hasattr(socket, name)}
    for door in doors:
        for option, value in known.items():
            door.setsockopt(socket.IPPROTO_TCP, option, value)


class ResumedSubscription:
    """A subscription that starts at the beginning of the turn and leaves out frames that its client has received."""

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
