"""How the server parts with a client that is too slow, or when it stops: in words that make the client come again."""

import socket
from collections.abc import Iterable, Iterator, Sequence

from aiohttp import WSCloseCode

from gateway.ports import Subscription

RETRY_MS = 1000
"""After how many milliseconds a reader of server-sent events should come again."""
RETRY_SECONDS = 2
"""The same for whoever is refused because the server has too much to do, or is about to stop."""
PORTION = 128
"""Frames that are sent at once: a slow client has to take so many in its time, however much is ready for it."""
SYSTEM = 2
"""How many times as patient as we the system is, with a peer that does not even acknowledge the little it is sent."""
UNSENT_BYTES = 128 * 1024
"""How much of a stream the system may keep that it has not sent yet."""


class Stalled(ConnectionResetError):
    """The client takes nothing, and was cut."""


def farewell(subscription: Subscription) -> bytes:
    """What a reader of server-sent events is told at the end of a stream that it should resume."""
    if subscription.leaving:
        return f"retry: {RETRY_MS}\n: the server stops, come again\n\n".encode()
    if subscription.cut_at is not None:
        return f"retry: {RETRY_MS}\n: too slow, resume after the last event you have had\n\n".encode()
    return b""


def closing(subscription: Subscription) -> tuple[int, bytes]:
    """Code and reason for a WebSocket whose subscription is over before the turn is."""
    if subscription.leaving:
        return RESTARTING
    if subscription.cut_at is not None:
        return WSCloseCode.TRY_AGAIN_LATER, b"too slow, resume after the last frame you have had"
    return WSCloseCode.INTERNAL_ERROR, b"what was followed is gone"


RESTARTING = (WSCloseCode.SERVICE_RESTART, b"the server stops, come again")


def portions(frames: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """The same frames, so many at a time."""
    if len(frames) <= PORTION:
        yield frames
        return
    for at in range(0, len(frames), PORTION):
        yield frames[at:at + PORTION]


def hold_little(doors: Iterable[socket.socket], patience: float) -> None:
    """What a client does not take waits where it is seen and can be cut, not by the megabyte in the system.

    Whoever comes in by these doors is treated so: a connection has what its door was given.
    """
    limits = {"TCP_NOTSENT_LOWAT": UNSENT_BYTES, "TCP_USER_TIMEOUT": int(SYSTEM * patience * 1000)}
    known = {getattr(socket, name): value for name, value in limits.items() if hasattr(socket, name)}
    for door in doors:
        for option, value in known.items():
            door.setsockopt(socket.IPPROTO_TCP, option, value)
