"""A WebSocket at a server: what it sends, what it takes, and how long it waits."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from gateway.client import HttpClient, WebSocketConnector
from gateway.errors import BackendFailed, ConnectionLost, GatewayError, Overloaded, ServerUnreachable
from gateway.ports import RemoteAddress, Timeouts
from tests.support.free_ports import free_port

KEY = "sk-0123456789abcdef"
PATIENCE = Timeouts(connect=10, first_byte=5, idle=5, total=20, attempts=3)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def connector(handler: Handler) -> AsyncIterator[WebSocketConnector]:
    app = web.Application()
    app.router.add_get("/api/talk", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    address = RemoteAddress(url=f"http://127.0.0.1:{runner.addresses[0][1]}/api", key=KEY, patience=PATIENCE)
    upstream = HttpClient.at(address)
    sockets = WebSocketConnector(upstream, "/talk")
    try:
        yield sockets
    finally:
        await sockets.close()
        await upstream.close()
        await runner.cleanup()


async def echo(request: web.Request) -> web.StreamResponse:
    """Repeats each text with the key of the client, in binary and as text; a `bye` ends the connection."""
    ws = web.WebSocketResponse()
    await ws.prepare(request)
    async for message in ws:
        said = message.json()["said"]
        if said == "bye":
            await ws.close(code=4001)
        elif said == "nonsense":
            await ws.send_str("{")
        else:
            await ws.send_json({"said": said, "key": request.headers["Authorization"]})
            await ws.send_bytes(b'{"said": 2}')
    return ws


async def test_frames_go_out_and_come_in_without_our_key() -> None:
    async with connector(echo) as sockets:
        line = await sockets.open()
        await line.send({"said": "hi"})
        assert await line.receive(20) == {"said": "hi", "key": "Bearer ***"}
        assert await line.receive(20) == {"said": 2}
        with pytest.raises(TimeoutError):
            await line.receive(0.01)
        await line.send({"said": "bye"})
        with pytest.raises(ConnectionLost, match=r"closed the connection before the end of the turn \(code 4001\)"):
            await line.receive(20)
        with pytest.raises(BackendFailed):
            await line.send({"said": "hi"})
        await line.close()


async def test_a_frame_that_is_no_json_is_a_failure() -> None:
    async with connector(echo) as sockets:
        line = await sockets.open()
        await line.send({"said": "nonsense"})
        with pytest.raises(BackendFailed, match="a frame that is not JSON"):
            await line.receive(20)


@pytest.mark.parametrize(("status", "error", "words", "tries"), [
    (200, BackendFailed, "answered 200, and opened no socket", 1),
    (302, BackendFailed, "answered 302 with a redirect", 1),
    (401, BackendFailed, "answered 401: who are you", 1),
    (503, Overloaded, "answered 503: who are you", 3),
])
async def test_a_server_that_opens_no_socket(status: int, error: type[GatewayError], words: str, tries: int) -> None:
    asked = list[str]()

    async def refuse(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.json_response({"error": "who are you"}, status=status, headers={"Location": "http://127.0.0.1:9/"})

    async with connector(refuse) as sockets:
        with pytest.raises(error, match=words):
            await sockets.open()
        assert len(asked) == tries
        with pytest.raises(error, match=words):
            await sockets.connect()
        assert len(asked) == tries + 1, "that is one attempt"


async def test_a_server_that_comes_back_is_waited_for() -> None:
    left = [503, 503]

    async def busy(request: web.Request) -> web.StreamResponse:
        return web.Response(status=left.pop(), headers={"Retry-After": "7"}) if left else await echo(request)

    async with connector(busy) as sockets:
        began = asyncio.get_running_loop().time()
        await (await sockets.open()).close()
        assert asyncio.get_running_loop().time() - began >= 14


async def test_nobody_is_there_and_what_is_closed_stays_closed() -> None:
    upstream = HttpClient(f"http://127.0.0.1:{free_port()}", timeouts=PATIENCE)
    sockets = WebSocketConnector(upstream, "/talk")
    with pytest.raises(ServerUnreachable, match="cannot be reached"):
        await sockets.open()
    await sockets.close()
    with pytest.raises(BackendFailed, match="is closed"):
        await sockets.open()
    await upstream.close()
