"""A server made of bytes: each request is answered as the test wrote it, down to where the packets are cut."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import orjson


@dataclass
class ReceivedRequest:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


Answer = Callable[[asyncio.StreamWriter, ReceivedRequest], Awaitable[None]]


@dataclass
class Server:
    """What a test knows of its server: where it is, and what it was asked."""

    url: str = ""
    asked: list[ReceivedRequest] = field(default_factory=list)
    connections: int = 0
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    """Set as soon as an answer hangs."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set as soon as somebody has left a hanging answer."""


def head(status: int = 200, kind: str = "text/event-stream", **headers: str) -> bytes:
    """The first lines of an answer whose body is chunked."""
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Type: {kind}", "Transfer-Encoding: chunked"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def chunk(piece: bytes) -> bytes:
    return f"{len(piece):x}\r\n".encode() + piece + b"\r\n"


END = b"0\r\n\r\n"


def stream(*pieces: bytes, ends: bool = True) -> Answer:
    """A stream of events in these pieces, each a packet of its own as far as that can be had."""
    async def answer(writer: asyncio.StreamWriter, asked: ReceivedRequest) -> None:
        writer.write(head())
        for piece in pieces:
            writer.write(chunk(piece))
            await writer.drain()
            await asyncio.sleep(0)
        if ends:
            writer.write(END)
        else:
            writer.close()

    return answer


def says(body: bytes, status: int = 200, kind: str = "application/json", **headers: str) -> Answer:
    """A whole answer."""
    async def answer(writer: asyncio.StreamWriter, asked: ReceivedRequest) -> None:
        writer.write(head(status, kind, **headers) + (chunk(body) if body else b"") + END)

    return answer


def raw(*pieces: bytes) -> Answer:
    """Bytes as they are, then the end of the connection."""
    async def answer(writer: asyncio.StreamWriter, asked: ReceivedRequest) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        writer.close()

    return answer


async def endless(writer: asyncio.StreamWriter, asked: ReceivedRequest) -> None:
    """A stream with a line that does not end."""
    writer.write(head() + chunk(b"data: "))
    for _ in range(100):
        writer.write(chunk(b"x" * 1_000_000))
        await writer.drain()


def hangs(server: Server, *before: bytes) -> Answer:
    """Bytes, and then nothing more for as long as anybody waits."""
    async def answer(writer: asyncio.StreamWriter, asked: ReceivedRequest) -> None:
        for piece in before:
            writer.write(piece)
        await writer.drain()
        server.hanging.set()
        with suppress(ConnectionError):
            await writer.wait_closed()
        server.gone.set()

    return answer


@asynccontextmanager
async def serving(*answers: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """A server that answers its requests in turn, the last answer over and over."""
    server, tasks, writers = Server(), set[asyncio.Task[Any]](), set[asyncio.StreamWriter]()
    left = list(answers)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        writers.add(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, asyncio.CancelledError):
            while not writer.is_closing():
                server.asked.append(await _read(reader))
                answer = left.pop(0) if len(left) > 1 else left[0]
                await _while_connected(reader, writer, answer, server.asked[-1])
        writer.close()

    listening = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=tls, limit=1 << 26)
    server.url = f"http{'s' if tls else ''}://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)


async def _while_connected(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer, asked: ReceivedRequest,
) -> None:
    """Answer; whoever goes away in the middle ends it."""
    answering = asyncio.ensure_future(answer(writer, asked))
    leaving = asyncio.ensure_future(_left(reader))
    try:
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if leaving.done():
            writer.close()
        await answering
        if not writer.is_closing():
            await writer.drain()
    finally:
        for task in (answering, leaving):
            task.cancel()
        await asyncio.gather(answering, leaving, return_exceptions=True)


async def _left(reader: asyncio.StreamReader) -> None:
    """Wait for the end of what is said; to read would take the next request's bytes."""
    if reader.at_eof():
        return
    left, feed_eof = asyncio.Event(), reader.feed_eof

    def hear_the_end() -> None:
        feed_eof()
        left.set()

    reader.feed_eof = hear_the_end  # type: ignore[method-assign]
    await left.wait()


async def _read(reader: asyncio.StreamReader) -> ReceivedRequest:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    method, path, _ = first.split(" ")
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return ReceivedRequest(method, path, headers, body)
