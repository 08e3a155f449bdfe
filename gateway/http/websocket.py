"""Serves WebSockets: reads frames, writes encoded frames, and sends heartbeats."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Protocol

import structlog
from aiohttp import WSCloseCode, WSMsgType, web

from gateway.errors import Invalid, Overloaded
from gateway.ports import ANONYMOUS, Subscription
from gateway.quotas import Quotas
from gateway.supervision import take_error

from .backpressure import RESTART_CLOSE, ClientStalled, frame_batches, websocket_close_reason
from .security import OPEN_REQUEST, OWNER, REVOKED_MESSAGE

log = structlog.get_logger("dragoman.http")

CLOSE_SECONDS = 1.0
"""Seconds that a client has to answer a close frame."""
REVOKED_CLOSE_SECONDS = 0.25
"""Seconds that a client with a revoked key has to read the close frame."""
DISCARD_SECONDS = 5.0
"""Seconds in which the rest of a frame that is too large is read, so that its client can read the close frame."""
REASON_BYTES = 120
"""The number of bytes that a close frame has for its reason."""
SendFrames = Callable[[Iterable[bytes]], Awaitable[None]]


class WebSocketListener(Protocol):
    """Handles the frames of a client, one after the other."""

    async def on_frame(self, frame: bytes) -> None: ...
    async def wait_until_idle(self) -> None:
        """Return when no frames are being sent to the client."""
    async def on_disconnect(self) -> None:
        """Handle the disconnect of the client."""


class OpenSocket(Protocol):
    """One connected client, or several."""

    async def close_when_idle(self) -> None:
        """Close each connection when no frames are being sent: the server is about to stop."""
    async def close(self) -> None:
        """Close the connections now: the server stops."""


class OpenSockets:
    """The open connections, and whether new ones are accepted."""

    def __init__(self, tally: Quotas) -> None:
        self.leaving = False
        self.tally = tally
        """The quotas that count an open socket as a stream of its owner."""
        self._open: set[OpenSocket] = set()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: OpenSocket) -> None:
        self._open.add(connection)

    def discard(self, connection: OpenSocket) -> None:
        self._open.discard(connection)

    def check_open(self) -> None:
        if self.leaving:
            raise Overloaded("the server is shutting down and accepts no new connections; try again when it is back")

    async def close_when_idle(self) -> None:
        self.leaving = True
        await asyncio.gather(*(connection.close_when_idle() for connection in list(self._open)))

    async def close(self) -> None:
        await asyncio.gather(*(connection.close() for connection in list(self._open)))


OPEN_SOCKETS: web.AppKey[OpenSockets] = web.AppKey("sockets", OpenSockets)


class WebSocketWriter:
    """One connection with several writers; a client that does not read for `patience` seconds is cut."""

    def __init__(self, ws: web.WebSocketResponse, transport: asyncio.Transport | None, patience: float) -> None:
        self._ws = ws
        self._transport = transport
        self._patience = patience
        self._word = asyncio.Lock()

    async def send(self, frames: Iterable[bytes]) -> None:
        async with self._word:
            await self._write(frames)

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[SendFrames]:
        """Hold back all other writers during this block."""
        async with self._word:
            yield self._write

    async def follow(self, subscription: Subscription) -> bool:
        """Send frames until the turn has ended; return False if the subscription ended before."""
        try:
            while chunks := await subscription.chunks():
                bodies: list[bytes] = []
                for chunk in chunks:
                    for frame in chunk.frames:
                        bodies.append(frame.body)  # noqa: PERF401  # most chunks have one frame
                    if chunk.ends:
                        await self.send(bodies)
                        return True
                await self.send(bodies)
        except ClientStalled:
            subscription.cut()
            raise
        return False

    async def close_unfinished(self, subscription: Subscription) -> None:
        """Close the connection of a client that has not received all frames, with a code that says what to do."""
        code, words = websocket_close_reason(subscription)
        await self._ws.close(code=code, message=words)

    async def close_try_again(self, why: str) -> None:
        """Close the connection with a code that makes the client try again."""
        await self._ws.close(code=WSCloseCode.TRY_AGAIN_LATER, message=why.encode()[:REASON_BYTES])

    async def _write(self, frames: Iterable[bytes]) -> None:
        for portion in frame_batches(list(frames)):
            try:
                async with asyncio.timeout(self._patience):
                    for frame in portion:
                        await self._ws.send_frame(frame, WSMsgType.TEXT)
            except TimeoutError:
                if self._transport is not None:
                    self._transport.abort()
                raise ClientStalled("the client does not read") from None


class SizeLimitedWebSocketResponse(web.WebSocketResponse):
    """A WebSocket that sends a reason before it refuses a frame that is larger than the limit.

    The frame is refused by its header, while its body is still arriving. A connection that is closed with unread bytes
    is reset, and the client may lose the close frame.
    """

    def __init__(self, most: int) -> None:
        super().__init__(max_msg_size=most, compress=False, decode_text=False, timeout=CLOSE_SECONDS)
        self._most = most

    async def close(self, *, code: int = WSCloseCode.OK, message: bytes = b"", drain: bool = True) -> bool:
        if code == WSCloseCode.MESSAGE_TOO_BIG and not self.closed:
            words = b"a frame may have less than %d bytes" % self._most
            with suppress(ConnectionResetError):
                await self.send_frame(code.to_bytes(2, "big") + words, WSMsgType.CLOSE)
                await asyncio.sleep(DISCARD_SECONDS)
        return await super().close(code=code, message=message, drain=drain)


class OpenWebSocket:
    """One WebSocket and its listener."""

    def __init__(self, ws: web.WebSocketResponse, listener: WebSocketListener) -> None:
        self._ws = ws
        self._listener = listener

    async def close_when_idle(self) -> None:
        await self._listener.wait_until_idle()
        code, words = RESTART_CLOSE
        await self._ws.close(code=code, message=words)

    async def close(self) -> None:
        await self._ws.close(code=WSCloseCode.GOING_AWAY, message=b"server restarts")


async def serve_websocket(
    request: web.Request,
    listener: Callable[[WebSocketWriter], WebSocketListener],
    *,
    beat: Callable[[], bytes],
    every: float,
    patience: float,
) -> web.WebSocketResponse:
    """Serve one WebSocket until the client disconnects."""
    sockets = request.app[OPEN_SOCKETS]
    sockets.check_open()
    check_upgrade_headers(request)
    with sockets.tally.reserve_stream(request.get(OWNER, ANONYMOUS)):
        return await _serve(request, listener, beat, every, patience)


async def send_and_close(request: web.Request, frames: Iterable[bytes]) -> web.WebSocketResponse:
    """Accept a WebSocket, send these frames as text, and close it."""
    request.app[OPEN_SOCKETS].check_open()
    check_upgrade_headers(request)
    ws = SizeLimitedWebSocketResponse(request.client_max_size)
    await ws.prepare(request)
    with suppress(ConnectionResetError):  # the client has disconnected
        for frame in frames:
            await ws.send_str(frame.decode())
        await ws.close()
    return ws


async def _serve(
    request: web.Request,
    listener: Callable[[WebSocketWriter], WebSocketListener],
    beat: Callable[[], bytes],
    every: float,
    patience: float,
) -> web.WebSocketResponse:
    ws = SizeLimitedWebSocketResponse(request.client_max_size)
    await ws.prepare(request)
    socket = WebSocketWriter(ws, request.transport, patience)
    beating = asyncio.create_task(_send_heartbeats(socket, beat, every))
    hearing = listener(socket)
    talk = OpenWebSocket(ws, hearing)
    request.app[OPEN_SOCKETS].add(talk)
    if (admission := request.get(OPEN_REQUEST)) is not None:
        admission.on_revoked(partial(close_revoked, ws, request.transport))
    try:
        async for message in ws:
            if admission is not None and admission.is_revoked:
                continue  # the frame came with a key that is revoked now
            if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                await hearing.on_frame(message.data)
    except ConnectionResetError:
        pass  # the client has disconnected before the response
    except Exception:  # a bug: the client may reconnect, the server log gets the traceback
        log.exception("websocket_failed", path=request.path)
        await ws.close(code=WSCloseCode.INTERNAL_ERROR)
    finally:
        request.app[OPEN_SOCKETS].discard(talk)
        beating.cancel()
        await hearing.on_disconnect()
    return ws


def close_revoked(ws: web.WebSocketResponse, transport: asyncio.Transport | None) -> None:
    """Tell the client that its key was revoked, and close the connection even if the client does not read."""
    goodbye = asyncio.create_task(ws.close(code=WSCloseCode.POLICY_VIOLATION, message=REVOKED_MESSAGE, drain=False))
    goodbye.add_done_callback(take_error)
    if transport is not None:
        asyncio.get_running_loop().call_later(REVOKED_CLOSE_SECONDS, transport.abort)


def check_upgrade_headers(request: web.Request) -> None:
    """Refuse headers of a handshake that the library cannot handle."""
    for name, value in request.headers.items():
        if not value.isascii() and name.lower().startswith(("upgrade", "connection", "sec-websocket-")):
            raise Invalid(f"{name}: must be ASCII", param=name)


async def _send_heartbeats(socket: WebSocketWriter, beat: Callable[[], bytes], every: float) -> None:
    with suppress(ConnectionResetError):
        while True:
            await asyncio.sleep(every)
            await socket.send((beat(),))


def track_open_sockets(app: web.Application, tally: Quotas | None = None) -> None:
    """Track open WebSockets, and close them when the server stops."""
    app[OPEN_SOCKETS] = OpenSockets(tally or Quotas())

    async def farewell(app: web.Application) -> None:
        await app[OPEN_SOCKETS].close()

    app.on_shutdown.append(farewell)
