"""Where the events of a run go: to a socket, or into a stream of server-sent events."""

import asyncio
from contextlib import suppress
from typing import Protocol

import orjson
from aiohttp import web

from conformance.clients.reply_queue import ReplyQueue
from conformance.clients.sse import EventStream, hang_up
from conformance.faults.zenflux.state import Body
from conformance.faults.zenflux.writer import DONE, Writer

WRITER = Writer()
PING = {"type": "ping", "data": {"type": "ping"}}


class Sink(Protocol):
    """Carries the events of a run to a client."""

    async def send(self, envelope: Body) -> None: ...
    async def beat(self) -> None: ...
    async def cut(self, envelope: Body | None) -> None: ...


class SocketSink:
    """A WebSocket of a client; once it is closed, what is sent goes nowhere."""

    def __init__(
        self, request: web.Request, socket: web.WebSocketResponse, reply_queue: ReplyQueue, number: int
    ) -> None:
        self.request, self.socket, self.number = request, socket, number
        self._reply_queue = reply_queue

    async def send(self, envelope: Body) -> None:
        await self.frame(WRITER.event_frame(envelope) | self._reply_queue.members)

    async def beat(self) -> None:
        await self.frame(WRITER.tick_frame())

    async def frame(self, frame: Body) -> None:
        if self.socket.closed or self.request.transport is None:
            return
        text = orjson.dumps(frame).decode()
        self._reply_queue.traffic.transcript.sent(text)
        with suppress(ConnectionResetError, RuntimeError):
            await self.socket.send_str(text)
        self._reply_queue.traffic.news()

    async def cut(self, envelope: Body | None) -> None:
        """Break the connection; within a frame, if an envelope is given: its header promises more than comes."""
        transport = self.request.transport
        if envelope is not None and transport is not None:
            part = orjson.dumps(WRITER.event_frame(envelope))[:60]
            transport.write(b"\x81\x7d" + part)
        self._reply_queue.traffic.transcript.remark("the connection is cut" + (" within a frame" if envelope else ""))
        await asyncio.sleep(0)
        hang_up(self.request)


class StreamSink:
    """The stream that answers POST /chat."""

    def __init__(self, request: web.Request, reply_queue: ReplyQueue) -> None:
        self._stream = EventStream(request, reply_queue.traffic)
        self._reply_queue, self._is_cut = reply_queue, False

    @property
    def response(self) -> web.StreamResponse:
        return self._stream.response

    async def open(self) -> None:
        await self._stream.open()

    async def send(self, envelope: Body) -> None:
        await self._write(None, envelope)

    async def beat(self) -> None:
        await self._write(None, PING)

    async def done(self) -> None:
        await self._write("done", DONE)

    async def cut(self, envelope: Body | None) -> None:
        self._is_cut = True
        await self._stream.cut(None, envelope)

    async def _write(self, name: str | None, body: Body) -> None:
        if not self._is_cut:
            with suppress(ConnectionResetError):
                await self._stream.send(name, body | self._reply_queue.members)
