"""A line that is cut after so many bytes of what a server says on its socket; what else is asked passes."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress


class CuttingProxy:
    """Passes bytes on; each socket in turn is cut after as many bytes as the next of `cuts` says."""

    def __init__(self, port: int, cuts: Iterator[int]) -> None:
        self.port, self.cuts = port, cuts
        self.address = ""
        self.sockets = 0
        self.told = 0
        """Bytes that came through sockets."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._ways: list[asyncio.Task[None]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with suppress(OSError):
            back, upstream = await asyncio.open_connection("127.0.0.1", self.port)
            ways = [asyncio.create_task(self._down(back, writer)),
                    asyncio.create_task(self._up(reader, upstream, writer))]
            self._ways += ways
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            upstream.transport.abort()
        writer.close()
        self._tasks.discard(task)

    async def _up(
        self, reader: asyncio.StreamReader, upstream: asyncio.StreamWriter, writer: asyncio.StreamWriter,
    ) -> None:
        while said := await reader.read(65536):
            if said.startswith(b"GET /socket.io/"):
                self.sockets += 1
                writer.left = next(self.cuts, None)  # type: ignore[attr-defined]
            upstream.write(said)
            await upstream.drain()

    async def _down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while said := await reader.read(65536):
            left = getattr(writer, "left", None)
            if hasattr(writer, "left"):
                self.told += len(said)
            if left is not None:
                said, is_cut = said[:left], len(said) >= left
                writer.left = left - len(said)  # type: ignore[attr-defined]
                writer.write(said)
                await writer.drain()
                if is_cut:
                    return
            else:
                writer.write(said)
                await writer.drain()

    async def close(self) -> None:
        for way in self._ways:
            way.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def cutting_proxy(port: int, cuts: Iterator[int]) -> AsyncIterator[CuttingProxy]:
    line = CuttingProxy(port, cuts)
    server = await asyncio.start_server(line.serve, "127.0.0.1", 0)
    line.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield line
    finally:
        server.close()
        await line.close()
