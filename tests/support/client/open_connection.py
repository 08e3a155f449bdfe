"""A wire whose far end is in the hands of a test, and answers to be told on it."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from gateway.client import Http1Connection
from tests.support.client.byte_server import END, chunk, head

TALK = b"data: one\n\ndata: zw\xc3\xb6lf\n\n"
CHUNKED = head() + chunk(TALK[:9]) + chunk(TALK[9:]) + END
COUNTED = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(TALK) + TALK


class FarEnd:
    """The far end of a wire: what was written to it, and whether it is read."""

    def __init__(self) -> None:
        self.written, self.is_paused, self.is_cut = b"", False, False
        self.unsent, self.on_full = 0, lambda: None

    def write(self, data: bytes) -> None:
        self.written += data
        if self.unsent:
            self.on_full()

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        assert (high, low) == (1, 0)

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def abort(self) -> None:
        self.is_cut = True


class OpenConnection:
    """A wire and its far end, with a request on its way."""

    def __init__(self, clock: "ManualLoop | None" = None, **patience: float) -> None:
        self.rested, self.lost = list[Http1Connection](), set[Http1Connection]()
        self.line, loop = FarEnd(), cast(Any, clock or asyncio.get_running_loop())
        self.wire = Http1Connection("there", loop, self.rested.append, self.lost.add)
        self.line.on_full = self.wire.pause_writing
        self.wire.connection_made(self.line)  # type: ignore[arg-type]  # as much of a transport as is used
        self.ask(**patience)

    def ask(self, first: float = 30.0, idle: float = 30.0, total: float = 30.0) -> None:
        self.wire.send(b"GET / HTTP/1.1\r\n\r\n", first=first, idle=idle, total=total)

    async def heard(self) -> bytes:
        await self.wire.read_head()
        body = b""
        while piece := await self.wire.read_body():
            body += piece
        return body


class ManualLoop:
    """As much of a loop as a wire uses, whose time goes by when a test says so."""

    def __init__(self) -> None:
        self.now, self.calls = 0.0, dict[asyncio.Handle, float]()
        self._loop = asyncio.get_running_loop()

    def time(self) -> float:
        return self.now

    def create_future(self) -> asyncio.Future[None]:
        return self._loop.create_future()

    def call_at(self, when: float, call: Callable[[], None]) -> asyncio.Handle:
        handle = asyncio.Handle(call, (), self._loop)
        self.calls[handle] = when
        return handle

    async def pass_by(self, seconds: float) -> None:
        """Whoever waits gets to wait first, and whatever is due by then is done."""
        await asyncio.sleep(0)
        self.now += seconds
        for handle in [handle for handle, when in self.calls.items() if when <= self.now]:
            del self.calls[handle]
            if not handle.cancelled():
                handle._run()
        await asyncio.sleep(0)
