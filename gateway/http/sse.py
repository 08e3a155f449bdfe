"""Writes a subscription as server-sent events, with as few writes as possible."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from aiohttp import hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp_sse import EventSourceResponse

from gateway.ports import Subscription

from .backpressure import BATCH_FRAMES, ClientStalled, frame_batches, sse_farewell

OPEN_COMMENT, PING_COMMENT = "open", "ping"
SMALL_WRITE_BYTES = 65536
"""A write of at most so many bytes needs no wait."""
STALL_SECONDS = 1.0
"""A connection that is lost after a write has waited so many seconds was stalled, not closed by its client."""


class SseResponse(EventSourceResponse):
    """A response that sends its own heartbeat comments, and cuts a client that does not read."""

    _send_headers_immediately = False  # the headers leave with the first frames, which follow at once
    _timer: asyncio.Handle | None = None
    _beating: asyncio.Task[None] | None = None
    """Writes a comment; the library would keep a task per response for that."""

    def __init__(
        self, *, heartbeat: float, patience: float, hello: str | bytes, ping: str | bytes,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(sep="\n", headers=headers, allow_all_methods=True, ping_interval=heartbeat, send_timeout=None)
        self._hello, self._ping_line = comment_line(hello), comment_line(ping)
        self._patience = patience
        self.is_stalled = False
        """Whether the connection was lost while the client did not read."""

    async def write_frames(self, words: bytes, *, last: bool = False) -> None:
        """Write frames within the timeout of the client; raises `ClientStalled`."""
        if self._hello:
            words, self._hello = self._hello + words, b""
        write = self.write_eof if last else self.write
        transport = self._req.transport if self._req is not None else None
        has_room = transport is None or not transport.get_write_buffer_size()
        if len(words) <= SMALL_WRITE_BYTES and has_room:
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
            raise ClientStalled("the client does not read") from None
        except (ConnectionError, asyncio.CancelledError):
            self.is_stalled = clock() - since > min(STALL_SECONDS, self._patience)
            raise

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        writer = await web.StreamResponse.prepare(self, request)
        if self._timer is None:  # aiohttp prepares the response once more after its end
            self._timer = asyncio.get_running_loop().call_soon(self._beat, b"")
        return writer

    def _beat(self, words: bytes) -> None:
        """Send a heartbeat, or at first the greeting, unless the first frames carried it."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._ping_interval, self._beat, self._ping_line)
        if (words or self._hello) and (self._beating is None or self._beating.done()):
            self._beating = loop.create_task(self._write_comment(words), name="heartbeat")

    async def _write_comment(self, words: bytes) -> None:
        with suppress(ConnectionResetError, RuntimeError):  # a write after the end raises RuntimeError
            await self.write_frames(words)

    async def __aexit__(self, *raised: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._beating is not None and not self._beating.done():
            self._beating.cancel()
            await asyncio.wait([self._beating])


def comment_line(words: str | bytes) -> bytes:
    return words if isinstance(words, bytes) else f": {words}\n\n".encode()


async def stream_sse(
    request: web.Request, subscription: Subscription, *, heartbeat: float, patience: float, until_yield: bool = False,
    until_end: bool = False, hello: str | bytes = OPEN_COMMENT, ping: str | bytes = PING_COMMENT,
    on_write: Callable[[int], None] | None = None, headers: Mapping[str, str] | None = None,
) -> web.StreamResponse:
    """Stream until the subscription ends or, if wanted, until the turn yields or ends.

    A comment is sent at once, so that the client and every proxy know that the stream is open, and another every
    `heartbeat` seconds. Comments that are bytes are sent unchanged. The connection of a client that does not read for
    `patience` seconds is aborted. If the subscription ends early, a last comment asks the client to reconnect. The
    response to HEAD has no body. `on_write` gets the number of the last record of each write. `headers` are sent, too.
    """
    if request.method == hdrs.METH_HEAD:
        return web.Response(content_type="text/event-stream", headers={hdrs.CACHE_CONTROL: "no-cache"})
    response = SseResponse(heartbeat=heartbeat, patience=patience, hello=hello, ping=ping, headers=headers)
    await response.prepare(request)
    async with response:
        try:
            while chunks := await subscription.chunks():
                bodies: list[bytes] = []
                for chunk in chunks:
                    for frame in chunk.frames:
                        bodies.append(frame.body)  # noqa: PERF401  # most chunks have one frame
                    if (until_yield and chunk.yields) or (until_end and chunk.ends):
                        await _write_frames(response, bodies, last=True)
                        return response
                if len(bodies) > BATCH_FRAMES:
                    await _write_frames(response, bodies)
                else:
                    await response.write_frames(bodies[0] if len(bodies) == 1 else b"".join(bodies))
                if on_write is not None:
                    on_write(chunks[-1].seq)
            if words := sse_farewell(subscription):
                await response.write_frames(words)
        finally:
            if response.is_stalled:
                subscription.cut()
    return response


async def _write_frames(response: SseResponse, bodies: list[bytes], *, last: bool = False) -> None:
    if len(bodies) > BATCH_FRAMES:
        *some, bodies = (list(portion) for portion in frame_batches(bodies))
        for portion in some:
            await response.write_frames(b"".join(portion))
    await response.write_frames(b"".join(bodies), last=last)
