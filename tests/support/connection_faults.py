"""A line that breaks, and a server that dies: what clients have to live with when they resume."""

import asyncio
import itertools
import shutil
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

from tests.support.dialect_tables import DIALECTS
from tests.support.free_ports import free_port
from tests.support.gateway_server import serving
from tests.support.server_process import Running, running


class BreakingProxy:
    """Passes bytes on to a port, and breaks off each answer after a while, until told to hold."""

    def __init__(self, port: int, seed: int) -> None:
        self.port = port
        self.breaks = 0
        self.holds = False
        self.address = ""
        self._random = Random(seed)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", self.port)
            ways = [asyncio.create_task(self._up(reader, upstream)),
                    asyncio.create_task(self._down(upstream_reader, writer))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            upstream.transport.abort()
        writer.transport.abort()

    async def _up(self, reader: asyncio.StreamReader, upstream: asyncio.StreamWriter) -> None:
        while said := await reader.read(65536):
            upstream.write(said)

    async def _down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left = self._random.randint(400, 4000)
        while said := await reader.read(512):
            if not self.holds and len(said) >= left:
                writer.write(said[:left])
                await asyncio.wait_for(writer.drain(), 5)
                self.breaks += 1
                return
            left -= len(said)
            writer.write(said)
            await asyncio.wait_for(writer.drain(), 5)
        await asyncio.sleep(0.05)  # let the last bytes arrive before the connection is aborted


@asynccontextmanager
async def breaking_proxy(port: int, seed: int = 0) -> AsyncIterator[BreakingProxy]:
    line = BreakingProxy(port, seed)
    server = await asyncio.start_server(line.serve, "127.0.0.1", 0)
    line.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield line


class KillableServer:
    """A server in a process of its own that can be killed, and is then the same again: same port, same data."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self._folder = folder
        self._settings = {"dialects": {name: {} for name in DIALECTS}, "port": free_port(), **settings}
        self._life = ExitStack()
        self.start()

    @property
    def port(self) -> int:
        return int(self._settings["port"])

    @property
    def address(self) -> str:
        return self.server.address

    def start(self) -> None:
        self.server: Running = self._life.enter_context(running(self._folder, **self._settings))

    def kill(self) -> None:
        """SIGKILL: no farewell, nothing is written any more."""
        self.server.process.kill()
        self._life.close()

    async def die_and_come_back(self) -> None:
        await asyncio.to_thread(self.kill)
        await asyncio.to_thread(self.start)

    def close(self) -> None:
        self._life.close()


@contextmanager
def killable_server(folder: Path, **settings: Any) -> Iterator[KillableServer]:
    served = KillableServer(folder, settings)
    try:
        yield served
    finally:
        served.close()


class KillableServerInLoop:
    """A gateway that can die: its connections break off, and its next life has what was on disk in that moment."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self._folder = folder
        self._settings = {"dialects": {name: {} for name in DIALECTS}, **settings}
        self._lives = itertools.count()
        self.port = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self, last: Path | None = None) -> None:
        data = self._folder / f"life {next(self._lives)}"
        if last is not None:
            copy_data(last, data)
        self._life = AsyncExitStack()
        settings = {"log": "sqlite", **self._settings, "data": str(data)}
        self._served = await self._life.enter_async_context(
            serving(self._folder, port=self.port, **settings))
        self._data, self.port = data, self._served.port

    @property
    def is_dead(self) -> bool:
        return (self._folder / "left behind").exists()

    @property
    def database(self) -> Path:
        """The file of this life, or of the last one as it was left behind."""
        return (self._folder / "left behind" if self.is_dead else self._data) / "dragoman.db"

    async def die(self) -> None:
        """Nobody is told, and nothing that the old life still writes is in the next one."""
        runner = self._served.runner
        assert runner is not None and runner.server is not None
        for site in list(runner.sites):
            await site.stop()
        for connection in runner.server.connections:
            if connection.transport is not None:
                connection.transport.abort()
        copy_data(self._data, self._folder / "left behind")
        await self.close()

    async def come_back(self) -> None:
        await self.start(self._folder / "left behind")
        shutil.rmtree(self._folder / "left behind")

    async def die_and_come_back(self) -> None:
        await self.die()
        await self.come_back()

    async def close(self) -> None:
        await self._life.aclose()


def copy_data(data: Path, copy: Path) -> None:
    """What a kill would leave of this folder now: of a database, what has been committed."""
    copy.mkdir()
    for file in data.iterdir():
        if file.suffix == ".db":
            with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copy / file.name)) as target:
                source.backup(target)
        elif file.is_dir():
            shutil.copytree(file, copy / file.name)
        elif ".db-" not in file.name:
            shutil.copy(file, copy)


@asynccontextmanager
async def killable_server_in_loop(folder: Path, **settings: Any) -> AsyncIterator[KillableServerInLoop]:
    served = KillableServerInLoop(folder, settings)
    await served.start()
    try:
        yield served
    finally:
        await served.close()


def blocks(stream: bytes) -> list[bytes]:
    """The whole events of a server-sent stream, byte for byte, without comments."""
    whole = stream.split(b"\n\n")[:-1]
    kept = [b"".join(line + b"\n" for line in block.split(b"\n") if line and not line.startswith(b":"))
            for block in whole]
    return [block for block in kept if block]


__all__ = [
    "BreakingProxy",
    "KillableServer",
    "KillableServerInLoop",
    "blocks",
    "breaking_proxy",
    "free_port",
    "killable_server",
    "killable_server_in_loop",
]
