"""Server-sent events: a subscription pumped into a response, all that is ready in one write."""

import asyncio

from aiohttp import web
from aiohttp_sse import EventSourceResponse

from gateway.ports import Subscription

HELLO, PING = "open", "ping"


class EventStream(EventSourceResponse):
    """A response that pings in words of our choice, and gives up a peer that takes nothing."""

    def __init__(self, *, heartbeat: float, patience: float, ping: str | bytes) -> None:
        super().__init__(sep="\n", allow_all_methods=True, ping_interval=heartbeat, send_timeout=patience)
        self._ping_line = comment(ping)

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(self._ping_interval)
            try:
                async with asyncio.timeout(self._send_timeout):
                    await self.write(self._ping_line)
            except TimeoutError:
                self._abort_transport()
                return
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
    the words of a comment are sent as they are.
    """
    response = EventStream(heartbeat=heartbeat, patience=patience, ping=ping)
    await response.prepare(request)
    async with response:
        await response.write(comment(hello))
        while chunks := await subscription.chunks():
            frames: list[bytes] = []
            for chunk in chunks:
                frames += chunk.frames
                if (until_yield and chunk.yields) or (until_end and chunk.ends):
                    await response.write_eof(b"".join(frames))
                    return response
            await response.write(b"".join(frames))
    return response
