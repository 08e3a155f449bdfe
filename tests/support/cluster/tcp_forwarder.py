"""Lines that a test can cut: TCP forwarded from a port of its own to one place, or to several in turn."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress


class TcpForwarder:
    """Forwards every connection to where `target` says; cut, hushed and mended at will."""

    def __init__(self, target: Callable[[], Sequence[int]]) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._open = asyncio.Event()
        self._open.set()
        self.is_cut = False
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Every connection breaks, and no other is made."""
        self.is_cut = True
        for end in self._ends:
            end.transport.abort()

    def hush(self) -> None:
        """Nothing is forwarded any more, and nobody is told."""
        self._open.clear()

    def mend(self) -> None:
        self.is_cut = False
        self._open.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._ends.add(writer)
        with suppress(asyncio.CancelledError):
            await self._connect(reader, writer)
        writer.transport.abort()
        self._ends.discard(writer)
        self._tasks.discard(task)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = None
        try:
            there = None if self.is_cut else await self._reach()
            if there is not None:
                self._ends.add(there[1])
                await asyncio.gather(self._carry(reader, there[1]), self._carry(there[0], writer))
        finally:
            if there is not None:
                there[1].transport.abort()
                self._ends.discard(there[1])

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for port in self._target():
            with suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", port)
        return None

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while some := await reader.read(65536):
                await self._open.wait()
                writer.write(some)
                await writer.drain()
            with suppress(RuntimeError):
                writer.write_eof()
            return
        writer.transport.abort()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self.mend()
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class RoundRobinForwarder(TcpForwarder):
    """A load balancer: each connection goes to the next server that takes it."""

    def __init__(self, ports: Callable[[], Sequence[int]]) -> None:
        super().__init__(self._next)
        self._ports = ports
        self._turn = 0

    def _next(self) -> Sequence[int]:
        ports = list(self._ports())
        self._turn += 1
        start = self._turn % len(ports) if ports else 0
        return ports[start:] + ports[:start]
