"""Server-sent events: a subscription pumped into a response, what is ready in as few writes as can be."""

import asyncio
from collections.abc import Callable

from aiohttp import hdrs, web
from aiohttp_sse import EventSourceResponse

from gateway.ports import Subscription

from .parting import PORTION, Stalled, farewell, portions

HELLO, PING = "open", "ping"
ROOM = 65536
"""A write of so many bytes does not have to wait where nothing else does."""
LONG = 1.0
"""Who makes a write wait for so many seconds and is lost then was not just leaving."""


class EventStream(EventSourceResponse):
    """A response that pings in words of our choice, and gives up a peer that takes nothing."""

    _send_headers_immediately = False  # they leave with the first words, which follow at once

    def __init__(self, *, heartbeat: float, patience: float, hello: str | bytes, ping: str | bytes) -> None:
        super().__init__(sep="\n", allow_all_methods=True, ping_interval=heartbeat, send_timeout=None)
        self._hello, self._ping_line = comment(hello), comment(ping)
        self._patience = patience
        self.is_stalled = False
        """Whether the connection was lost while the peer took nothing: given up by us, by the system, or by itself."""

    async def say(self, words: bytes, *, last: bool = False) -> None:
        """Write, and wait no longer than the peer is given; raises `Stalled`."""
        if self._hello:
            words, self._hello = self._hello + words, b""
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
        """Begins when everything else waits: the first words are out by then or they will take a while."""
        try:
            if self._hello:
                await self.say(b"")
            while True:
                await asyncio.sleep(self._ping_interval)
                await self.say(self._ping_line)
        except (ConnectionResetError, RuntimeError):  # a write after the end is a RuntimeError
            return


def comment(words: str | bytes) -> bytes:
    return words if isinstance(words, bytes) else f": {words}\n\n".encode()


async def pump(
    request: web.Request, subscription: Subscription, *, heartbeat: float, patience: float, until_yield: bool = False,
    until_end: bool = False, hello: str | bytes = HELLO, ping: str | bytes = PING,
    told: Callable[[int], None] = lambda seq: None,
) -> web.StreamResponse:
    """Stream until the subscription is over or, if so asked, until the turn yields or ends.

    A comment is sent at once, so that a client and every proxy on the way know the stream is there, and one every
    `heartbeat` seconds; the connection of a peer that takes nothing for `patience` is aborted. Bytes in the place of
    the words of a comment are sent as they are. Who is parted with before the end is told to come again. The answer to
    a HEAD has no body. `told` gets the number of the last record of each write.
    """
    if request.method == hdrs.METH_HEAD:
        return web.Response(content_type="text/event-stream", headers={hdrs.CACHE_CONTROL: "no-cache"})
    response = EventStream(heartbeat=heartbeat, patience=patience, hello=hello, ping=ping)
    await response.prepare(request)
    async with response:
        try:
            await _tell(response, subscription, told, until_yield=until_yield, until_end=until_end)
        finally:
            if response.is_stalled:
                subscription.cut()
    return response


async def _tell(
    response: EventStream, subscription: Subscription, told: Callable[[int], None], *, until_yield: bool,
    until_end: bool,
) -> None:
    while chunks := await subscription.chunks():
        frames: list[bytes] = []
        for chunk in chunks:
            frames += chunk.frames
            if (until_yield and chunk.yields) or (until_end and chunk.ends):
                await _say(response, frames, last=True)
                return
        await _say(response, frames)
        told(chunks[-1].seq)
    if words := farewell(subscription):
        await response.say(words)


async def _say(response: EventStream, frames: list[bytes], *, last: bool = False) -> None:
    if len(frames) > PORTION:
        *some, frames = (list(portion) for portion in portions(frames))
        for portion in some:
            await response.say(b"".join(portion))
    await response.say(b"".join(frames), last=last)
