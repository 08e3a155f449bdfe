"""A server whose every connection a test talks on itself, and that knows how many are open."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import uvloop

from gateway.client import HttpClient

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LOOPS = pytest.mark.parametrize("make", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
Make = Callable[[], asyncio.AbstractEventLoop]


class CountingServer:
    """What a test knows of its server. A connection is open until its other end has left."""

    def __init__(self) -> None:
        self.url = ""
        self.open = self.connections = 0
        self._gone = asyncio.Event()

    def begin(self) -> None:
        self.open, self.connections = self.open + 1, self.connections + 1
        self._gone.clear()

    def end(self) -> None:
        self.open -= 1
        if self.open == 0:
            self._gone.set()

    async def all_gone(self) -> None:
        """There was somebody, and nobody is left."""
        await asyncio.wait_for(self._gone.wait(), 60)


@asynccontextmanager
async def counting_server(
    talk: Talk, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None,
) -> AsyncIterator[CountingServer]:
    """After the talk whatever comes is thrown away, until the other end closes."""
    server, tasks = CountingServer(), set[asyncio.Task[Any]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.begin()
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
                await talk(reader, writer)
                while await reader.read(1 << 16):
                    pass
        finally:
            server.end()
            writer.close()

    listening = await asyncio.start_server(serve, host, 0, ssl=tls)
    port = listening.sockets[0].getsockname()[1]
    server.url = f"http{'s' if tls else ''}://{f'[{host}]' if ':' in host else host}:{port}"
    try:
        yield server
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def says(piece: bytes) -> Talk:
    """This, and then nothing more."""
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(piece)
        await writer.drain()

    return talk


async def gone(server: CountingServer, upstream: HttpClient) -> None:
    """There was one connection, and nobody has it any more."""
    await server.all_gone()
    assert server.connections == 1 and not upstream._pool._connections
    await upstream.close()


def run(make: Make, work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=make) as runner:
        runner.run(asyncio.wait_for(work, 60))


async def request(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """The head and the body of one."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = [line.partition(b":") for line in head.lower().split(b"\r\n")]
    length = next((int(value) for name, _, value in lines if name == b"content-length"), 0)
    return head, await reader.readexactly(length)


def answer(body: bytes = b"1", status: int = 200, **headers: str) -> bytes:
    """A whole one, of JSON where nothing else is said."""
    all_headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in all_headers.items())
    return f"HTTP/1.1 {status} Whatever\r\n{lines}\r\n".encode() + body
