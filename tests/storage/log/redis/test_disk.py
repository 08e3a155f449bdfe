"""`durability: fsync` on Redis: what must be on the disk is waited for, by the server's own word for it."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

import gateway.model as m
from gateway.errors import GatewayError
from gateway.storage import StorageUnusable
from gateway.storage.log.redis import RedisLog
from gateway.storage.redis import RedisAddress, RedisClient, RedisConnection
from tests.support.gateway_server import simulation, until
from tests.support.redis_server import RedisServer
from tests.support.storage.event_logs import created, note, put

END = m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN)
ASKED = re.compile(rb"\*4\r\n\$7\r\nWAITAOF\r\n\$1\r\n1\r\n\$1\r\n0\r\n\$\d+\r\n\d+\r\n")
"""`WAITAOF 1 0 MILLISECONDS`: the server's own disk, and no other's."""


def packed(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Newer:
    """What makes a server before 7.2 one that can wait for its disk.

    It is set to write to its disk before it answers, so that the true answer to every WAITAOF is known.
    """

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self.waits = 0
        self.on_disk = b"1"

    @asynccontextmanager
    async def address(self) -> AsyncIterator[RedisAddress]:
        async with await asyncio.start_server(self._relay, "127.0.0.1", 0) as listening:
            yield RedisAddress.read(f"redis://127.0.0.1:{listening.sockets[0].getsockname()[1]}/0")

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._server.port)
        await asyncio.gather(self._pass(reader, back), self._pass(there, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while chunk := await reader.read(65536):
                writer.write(self._newer(chunk))
                await writer.drain()
        writer.close()

    def _newer(self, chunk: bytes) -> bytes:
        self.waits += len(ASKED.findall(chunk))
        chunk = ASKED.sub(packed(b"EVAL", b"return {%s, 0}" % self.on_disk, b"0"), chunk)
        return chunk.replace(packed(b"COMMAND", b"INFO", b"WAITAOF"), packed(b"COMMAND", b"INFO", b"WAIT"))


async def said(server: RedisServer, *command: str) -> object:
    line = RedisConnection(RedisAddress.read(server.url), 5)
    try:
        return await line.ask(*command)
    finally:
        await line.close()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[RedisServer]:
    made = RedisServer(tmp_path / "redis")
    made.start()
    yield made
    made.stop(kill=True)


@asynccontextmanager
async def opened(address: RedisAddress, lease: float = 10.0) -> AsyncIterator[RedisLog]:
    log = RedisLog(RedisClient(address, lease=lease, fsync=True, clock=simulation().time), fsync=True)
    await log.open()
    try:
        yield log
    finally:
        await log.close()


@asynccontextmanager
async def that_waits(server: RedisServer) -> AsyncIterator[RedisAddress]:
    """The server itself, where it can."""
    known = await said(server, "COMMAND", "INFO", "WAITAOF")
    if isinstance(known, list) and known[0]:
        yield RedisAddress.read(server.url)
        return
    await said(server, "CONFIG", "SET", "appendfsync", "always")
    async with Newer(server).address() as address:
        yield address


async def test_what_was_waited_for_is_there_after_the_server_was_killed(server: RedisServer) -> None:
    async with that_waits(server) as address, opened(address) as log:
        await put(log, created("s"), note("s", 2))
        await put(log, m.Record(seq=3, at=1.0, session_id="s", turn_id="t", event=END))
        server.stop(kill=True)
        server.start()
        assert [record.seq for record in await log.read("s")] == [1, 2, 3]


async def test_only_asks_and_ends_of_turns_are_waited_for(server: RedisServer) -> None:
    newer = Newer(server)
    async with newer.address() as address, opened(address) as log:
        await put(log, created("s"), note("s", 2))
        assert newer.waits == 0
        await put(log, m.Record(seq=3, at=1.0, session_id="s", turn_id="t", event=END))
        assert newer.waits == 1


async def test_a_disk_that_does_not_come_to_it_is_told(server: RedisServer) -> None:
    newer = Newer(server)
    async with newer.address() as address, opened(address, lease=1.0) as log:
        await put(log, created("s"))
        newer.on_disk = b"0"
        with pytest.raises(GatewayError, match=r"nothing can be stored just now: .* does not get to write to its disk"):
            await put(log, m.Record(seq=2, at=1.0, session_id="s", turn_id="t", event=END))
        newer.on_disk = b"1"
        await until(lambda: log.write_error is None)
        assert [record.seq for record in await log.read("s")] == [1, 2]


async def test_a_server_that_leaves_it_to_the_system_is_refused(server: RedisServer) -> None:
    await said(server, "CONFIG", "SET", "appendfsync", "no")
    async with Newer(server).address() as address:
        redis = RedisClient(address, fsync=True)
        with pytest.raises(StorageUnusable, match=r"needs `appendfsync everysec` or `always`, and .* has `no`"):
            await redis.open()
