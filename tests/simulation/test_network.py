"""Connections in memory behave as TCP does: bytes in order, back-pressure, half-closed ends, breaks and refusals."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar

import aiohttp
import pytest
from aiohttp import web

from tests.simulation.network import Network

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def connected(talk: Talk) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        yield reader, writer
        writer.close()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while said := await reader.read(1000):
        writer.write(said)
    writer.write_eof()
    writer.close()


async def test_bytes_arrive_in_order_and_the_end_after_them() -> None:
    async with connected(echo) as (reader, writer):
        for number in range(100):
            writer.write(b"%d " % number)
        writer.write_eof()
        assert await reader.read() == b"".join(b"%d " % number for number in range(100))


async def test_what_a_server_writes_may_be_on_its_way_for_a_while() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for word in (b"one ", b"two ", b"three "):
            writer.write(word)
        writer.close()

    loop = asyncio.get_running_loop()
    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        loop.network.listeners[port].pace = iter([5.0, 3.0, 0.5, 2.0]).__next__  # type: ignore[attr-defined]
        reader, writer = await asyncio.open_connection(host, port)
        heard = []
        while said := await reader.read(1000):
            heard.append((said, loop.time()))
        writer.close()
    assert heard == [(b"one ", 5.0), (b"two ", 8.0), (b"three ", 8.5)]
    assert loop.time() == 10.5, "and then the end"


async def test_a_writer_waits_for_a_reader_that_takes_nothing() -> None:
    begun, sent = asyncio.Event(), 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        begun.set()
        while sent < 10_000_000:
            writer.write(b"x" * 10_000)
            sent += 10_000
            await writer.drain()
        writer.close()

    async with connected(pour) as (reader, _):
        await begun.wait()
        await asyncio.sleep(3600)
        assert 64_000 <= sent < 1_000_000, "it writes what fits on the way, and no more"
        taken = 0
        while said := await reader.read(65536):
            taken += len(said)
        assert taken == sent == 10_000_000


async def test_what_was_written_before_a_close_still_arrives() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"x" * 500_000)
        writer.close()

    async with connected(answer) as (reader, _):
        assert len(await reader.read()) == 500_000


async def test_whoever_writes_to_a_closed_end_is_told() -> None:
    gone = asyncio.Event()

    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()
        gone.set()

    async with connected(leave) as (reader, writer):
        await gone.wait()
        assert await reader.read() == b""
        writer.write(b"too late")
        await asyncio.sleep(0)
        with pytest.raises(ConnectionError):
            writer.write(b"again")
            await writer.drain()


async def test_an_abort_with_unread_words_breaks_the_connection() -> None:
    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()
        await asyncio.sleep(1)
        writer.transport.abort()

    async with connected(break_off) as (reader, writer):
        writer.write(b"nobody reads this")
        with pytest.raises(ConnectionResetError):
            await reader.read()


async def test_nobody_answers_where_nobody_listens() -> None:
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_a_port_is_taken_once() -> None:
    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        with pytest.raises(OSError, match="taken"):
            await asyncio.start_server(echo, "127.0.0.1", server.sockets[0].getsockname()[1])


async def test_ports_are_given_again_unless_somebody_listens_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.simulation.network.PORTS", range(50_001, 50_004))
    network = Network(asyncio.get_running_loop())
    kept = network.listen(asyncio.Protocol, None, None).port
    given = []
    for _ in range(4):
        listener = network.listen(asyncio.Protocol, None, None)
        given.append(listener.port)
        listener.close()
    assert (kept, given) == (50_001, [50_002, 50_003, 50_002, 50_003])


async def test_a_socket_that_was_bound_before_gives_the_port() -> None:
    bound = socket.create_server(("127.0.0.1", 0))
    async with await asyncio.start_server(echo, sock=bound) as server:
        assert server.sockets[0].getsockname()[1] == bound.getsockname()[1]


async def test_a_web_server_and_its_client_talk_in_simulated_time() -> None:
    async def slow(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(10):
            await asyncio.sleep(60)
            await response.write(b"tick ")
        return response

    async def greet(request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse(heartbeat=30)
        await ws.prepare(request)
        async for message in ws:
            await asyncio.sleep(100)
            await ws.send_str(f"hello {message.data}")
        return ws

    app = web.Application()
    app.add_routes([web.get("/slow", slow), web.get("/ws", greet)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0]
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as client:
        async with client.get(f"http://{host}:{port}/slow") as response:
            assert await response.text() == "tick " * 10
        async with client.ws_connect(f"http://{host}:{port}/ws") as ws:
            await ws.send_str("you")
            assert (await ws.receive()).data == "hello you"
    assert asyncio.get_running_loop().time() >= 700
    await runner.cleanup()


async def test_a_reader_that_pauses_has_had_no_more_than_one_read() -> None:
    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"x" * 9_000_000)
        with pytest.raises(ConnectionResetError):
            await writer.drain()

    server = await asyncio.start_server(pour, "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), limit=10)
        await asyncio.sleep(3600)
        assert len(await reader.read(9_000_000)) < 1_000_000
        writer.transport.abort()
        await asyncio.sleep(1)


async def test_whoever_still_writes_hears_that_nobody_reads_any_more() -> None:
    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()
        await asyncio.sleep(1)
        writer.close()

    async with connected(leave) as (_, writer):
        writer.write(b"x" * 1_000_000)
        with pytest.raises(ConnectionResetError):
            await writer.drain()


async def test_a_connection_runs_in_the_context_of_the_server_that_listens() -> None:
    """As with sockets: a client's variables do not reach the server, nor the server's the client."""
    side, seen = ContextVar("side", default="nobody"), asyncio.get_running_loop().create_future()

    async def tell(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.set_result((side.get(), await reader.read(1)))
        writer.close()

    side.set("server")
    server = await asyncio.start_server(tell, "127.0.0.1", 0)
    side.set("client")
    async with server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"x")
        assert await seen == ("server", b"x")
        writer.close()
