"""Whoever leaves, and whenever, leaves no connection behind; the server is asked whether that is so."""

import asyncio
from typing import Any

import pytest

from gateway.client import HttpClient
from gateway.errors import BackendFailed, ConnectionLost, TimedOut
from gateway.ports.remote import Timeouts
from tests.support.client.byte_server import chunk, head
from tests.support.client.counting_server import LOOPS, Make, answer, counting_server, gone, request, run, says
from tests.support.gateway_server import until

LARGE = "x" * 30_000_000
"""More than the operating system takes at once."""
SLOW = Timeouts(connect=30, first_byte=30, idle=30, total=60, attempts=1)


STATES = {
    "nothing came": b"",
    "half a head": head()[:20],
    "announced": b"HTTP/1.1 100 Continue\r\n\r\n",
    "a head": head(),
    "half a chunk": head() + b"ff\r\nda",
    "half a length": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
    "until it closes": b"HTTP/1.1 200 OK\r\n\r\nhalf",
    "half a complaint": head(400) + chunk(b"because"),
    "half of what is compressed": head(Content_Encoding="gzip") + chunk(b"\x1f\x8b\x08\x00"),
}


async def asking(upstream: HttpClient, heard: int, body: Any = None) -> asyncio.Task[Any]:
    """Somebody who has heard so many bytes, and waits for more, unless the time was up before."""
    task = asyncio.ensure_future(upstream.json("POST", "/", body))
    await until(lambda: task.done() or any(wire.received >= heard for wire in upstream._pool._connections))
    return task


@LOOPS
@pytest.mark.parametrize("state", STATES)
def test_who_is_called_away(make: Make, state: str) -> None:
    async def work() -> None:
        async with counting_server(says(STATES[state])) as server:
            upstream = HttpClient(server.url, timeouts=SLOW)
            task = await asking(upstream, len(STATES[state]))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await gone(server, upstream)

    run(make, work())


@LOOPS
@pytest.mark.parametrize("state", STATES)
def test_when_all_is_closed(make: Make, state: str) -> None:
    """Whoever waits is told, and what cannot be whole is not taken for it."""
    async def work() -> None:
        async with counting_server(says(STATES[state])) as server:
            upstream = HttpClient(server.url, timeouts=SLOW)
            task = await asking(upstream, len(STATES[state]))
            await upstream.close()
            with pytest.raises(BackendFailed, match="answered 400" if "complaint" in state else "was closed"):
                await task
            await gone(server, upstream)
            with pytest.raises(BackendFailed, match=r"the connection pool of .* is closed"):
                await upstream.json("GET", "/")

    run(make, work())


@LOOPS
@pytest.mark.parametrize("state", STATES)
def test_when_time_is_up(make: Make, state: str) -> None:
    patience = Timeouts(connect=30, first_byte=0.05, idle=0.05, total=30, attempts=1)

    async def work() -> None:
        async with counting_server(says(STATES[state])) as server:
            upstream = HttpClient(server.url, timeouts=patience)
            with pytest.raises(BackendFailed if "complaint" in state else TimedOut):
                await upstream.json("POST", "/")
            await gone(server, upstream)

    run(make, work())


@LOOPS
@pytest.mark.parametrize("way", ["called away", "closed", "time is up"])
def test_in_the_middle_of_a_request(make: Make, way: str) -> None:
    reads = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reads.wait()

    async def work() -> None:
        async with counting_server(talk) as server:
            total = 0.3 if way == "time is up" else 60
            upstream = HttpClient(server.url, timeouts=Timeouts(total=total, attempts=1))
            task = await asking(upstream, 0, LARGE)
            if way == "called away":
                task.cancel()
            elif way == "closed":
                await upstream.close()
            with pytest.raises((ConnectionLost, TimedOut, asyncio.CancelledError)):
                await task
            reads.set()
            await gone(server, upstream)

    run(make, work())


@LOOPS
def test_between_two_pieces_and_at_rest(make: Make) -> None:
    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(answer())
        await request(reader)
        writer.write(head() + chunk(b"data: 1\n\n"))

    async def work() -> None:
        async with counting_server(stream) as server:
            upstream = HttpClient(server.url, timeouts=SLOW)
            assert await upstream.json("GET", "/") == 1
            assert server.open == 1
            async with upstream.stream("POST", "/") as events:
                assert [event.data for event in await events.read()] == ["1"]
                assert server.open == 1
            await gone(server, upstream)
        async with counting_server(says(answer())) as server:
            upstream = HttpClient(server.url, timeouts=SLOW)
            assert await upstream.json("GET", "/") == 1
            await upstream.close()
            await gone(server, upstream)

    run(make, work())
