"""Server-sent events: a subscription pumped into a response, what is ready in as few writes as can be."""

import asyncio

from aiohttp import web
from aiohttp_sse import EventSourceResponse

from gateway.ports import Subscription

from .parting import PORTION, Stalled, farewell, hold_little, portions

HELLO, PING = "open", "ping"
ROOM = 65536
"""A write of so many bytes does not have to wait where nothing else does."""
SYSTEM = 2
"""How many times as patient as we the system is, with a peer that does not even acknowledge the little it is sent."""
LONG = 1.0
"""Who makes a write wait for so many seconds and is lost then was not just leaving."""


class EventStream(EventSourceResponse):
    """A response that pings in words of our choice, and gives up a peer that takes nothing."""

    _send_headers_immediately = False  # they leave with the first words, which follow at once

    def __init__(self, *, heartbeat: float, patience: float, ping: str | bytes) -> None:
        super().__init__(sep="\n", allow_all_methods=True, ping_interval=heartbeat, send_timeout=SYSTEM * patience)
        self._ping_line = comment(ping)
        self._patience = patience
        self.is_stalled = False
        """Whether the connection was lost while the peer took nothing: given up by us, by the system, or by itself."""

    async def say(self, words: bytes, *, last: bool = False) -> None:
        """Write, and wait no longer than the peer is given; raises `Stalled`."""
        write = self.write_eof if last else self.write
        if len(words) <= ROOM and self._has_room:
            await write(words)
            return
        clock = asyncio.get_running_loop().time
        since = clock()
        try:
            async with asyncio.timeout(self._patience):
                await write(words)
        except TimeoutError:
            self.is_stalled = True
            self._abort_transport()
            raise Stalled("the client takes nothing") from None
        except (ConnectionError, asyncio.CancelledError):
            self.is_stalled = clock() - since > min(LONG, self._patience)
            raise

    @property
    def _has_room(self) -> bool:
        transport = self._req.transport if self._req is not None else None
        return transport is None or not transport.get_write_buffer_size()

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(self._ping_interval)
            try:
                await self.say(self._ping_line)
            except (ConnectionResetError, RuntimeError):  # a write after the end is a RuntimeError
                return


def comment(words: str | bytes) -> bytes:
    return words if isinstance(words, bytes) else f": {words}\n\n".encode()


async def pump(
    request: web.Request, subscription: Subscription, *, heartbeat: float, patience: float, until_yield: bool = False,
    until_end: bool = False, hello: str | bytes = HELLO, ping: str | bytes = PING,
) -> web.StreamResponse:
    """Stream until the subscription is over or, if so asked, until the turn yields or ends.

    A comment is sent at once, so that a client and every proxy on the way know the stream is there, and one every
    `heartbeat` seconds; the connection of a peer that takes nothing for `patience` is aborted. Bytes in the place of
    the words of a comment are sent as they are. Who is parted with before the end is told to come again.
    """
    response = EventStream(heartbeat=heartbeat, patience=patience, ping=ping)
    hold_little(request.transport)
    await response.prepare(request)
    async with response:
        await response.write(comment(hello))
        try:
            await _tell(response, subscription, until_yield=until_yield, until_end=until_end)
        finally:
            if response.is_stalled:
                subscription.cut()
    return response


async def _tell(response: EventStream, subscription: Subscription, *, until_yield: bool, until_end: bool) -> None:
    while chunks := await subscription.chunks():
        frames: list[bytes] = []
        for chunk in chunks:
            frames += chunk.frames
            if (until_yield and chunk.yields) or (until_end and chunk.ends):
                await _say(response, frames, last=True)
                return
        await _say(response, frames)
    if words := farewell(subscription):
        await response.say(words)


async def _say(response: EventStream, frames: list[bytes], *, last: bool = False) -> None:
    if len(frames) > PORTION:
        *some, frames = (list(portion) for portion in portions(frames))
        for portion in some:
            await response.say(b"".join(portion))
    await response.say(b"".join(frames), last=last)
