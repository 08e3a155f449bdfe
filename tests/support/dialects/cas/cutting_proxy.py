"""A line that breaks: a proxy between a client and a server that cuts streams in the middle, a few times."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class CuttingProxy:
    """Forwards bytes; the first connections that ask for a stream are cut after a while."""

    def __init__(self, port: int, cuts: int, after: int) -> None:
        self.port = port
        self.cuts = cuts
        self.after = after
        self.made = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", self.port)
        ways = self._up(reader, upstream), self._down(upstream_reader, writer)
        tasks = [asyncio.create_task(way) for way in ways]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        for end in (upstream, writer):
            with suppress(OSError):
                end.transport.abort()

    async def _up(self, reader: asyncio.StreamReader, upstream: asyncio.StreamWriter) -> None:
        while said := await reader.read(65536):
            upstream.write(said)

    async def _down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent, is_stream = 0, False
        while said := await reader.read(65536):
            is_stream = is_stream or b"text/event-stream" in said
            if is_stream and self.made < self.cuts and sent + len(said) > self.after:
                writer.write(said[:self.after - sent])
                await writer.drain()
                self.made += 1
                return
            sent += len(said) if is_stream else 0
            writer.write(said)


@asynccontextmanager
async def cutting_proxy(port: int, *, cuts: int, after: int) -> AsyncIterator[tuple[str, CuttingProxy]]:
    line = CuttingProxy(port, cuts, after)
    server = await asyncio.start_server(line.serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", line
