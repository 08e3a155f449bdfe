"""A socket is heard frame by frame and written to by several; who takes nothing is cut."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import aiohttp
import pytest
from aiohttp import WSMsgType, web
from pytest_aiohttp.plugin import AiohttpClient

from gateway.errors import Overloaded
from gateway.http import WebSocketWriter, serve_websocket, track_open_sockets
from gateway.http.websocket import OPEN_SOCKETS
from gateway.ports import Chunk, Frame
from tests.support.gateway_server import until


class Echo:
    """Says what it hears, twice."""

    def __init__(self, socket: WebSocketWriter) -> None:
        self.socket = socket
        self.left = False

    async def on_frame(self, frame: bytes) -> None:
        await self.socket.send((frame, frame))

    async def wait_until_idle(self) -> None:
        """Nothing is told unasked."""

    async def on_disconnect(self) -> None:
        self.left = True


class Given:
    """A subscription that hands out what it was given, then is over."""

    def __init__(self, *batches: Sequence[Chunk]) -> None:
        self.batches = list(batches)
        self.cut_at: int | None = None
        self.is_draining = False

    async def chunks(self) -> Sequence[Chunk]:
        return self.batches.pop(0) if self.batches else ()

    def cut(self) -> None:
        self.cut_at = 0

    def close(self) -> None:
        """Nothing to put away."""


def serving(listener: Callable[[WebSocketWriter], Any] = Echo, **options: Any) -> web.Application:
    async def serve(request: web.Request) -> web.StreamResponse:
        settings = {"beat": lambda: b"beat", "every": 60.0, "patience": 5.0, **options}
        return await serve_websocket(request, listener, **settings)

    app = web.Application(client_max_size=1000)
    track_open_sockets(app)
    app.add_routes([web.get("/", serve)])
    return app


async def test_frames_go_in_and_out_as_text(aiohttp_client: AiohttpClient) -> None:
    heard: list[Echo] = []

    def listen(socket: WebSocketWriter) -> Echo:
        heard.append(Echo(socket))
        return heard[-1]

    client = await aiohttp_client(serving(listen))
    ws = await client.ws_connect("/")
    await ws.send_str("é")
    assert [await ws.receive_str(), await ws.receive_str()] == ["é", "é"]
    await ws.send_bytes(b"bytes")
    assert [await ws.receive_str(), await ws.receive_str()] == ["bytes", "bytes"]
    await ws.close()
    await until(lambda: heard[0].left)  # the server notices on its own time


async def test_a_beat_shows_that_the_server_lives(aiohttp_client: AiohttpClient) -> None:
    client = await aiohttp_client(serving(every=0.02))
    ws = await client.ws_connect("/")
    assert [await ws.receive_str(timeout=30) for _ in range(3)] == ["beat"] * 3


async def test_a_frame_that_is_too_large_hangs_up(aiohttp_client: AiohttpClient) -> None:
    client = await aiohttp_client(serving())
    ws = await client.ws_connect("/")
    await ws.send_str("x" * 1001)
    assert (await ws.receive(timeout=30)).type is WSMsgType.CLOSE
    assert ws.close_code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG


async def test_a_turn_is_followed_to_its_end(aiohttp_client: AiohttpClient) -> None:
    def chunk(seq: int, *frames: bytes, ends: bool = False) -> Chunk:
        return Chunk(seq, tuple(map(Frame, frames)), ends, ends)

    class Following(Echo):
        async def on_frame(self, frame: bytes) -> None:
            whole = Given([chunk(1, b"a"), chunk(2, b"b", b"c")], [chunk(3, b"d", ends=True), chunk(4, b"next turn")])
            assert await self.socket.follow(whole)
            cut = Given([chunk(5, b"e")])
            assert not await self.socket.follow(cut)
            cut.cut_at = 5
            await self.socket.close_unfinished(cut)

    client = await aiohttp_client(serving(Following))
    ws = await client.ws_connect("/")
    await ws.send_str("go")
    assert [await ws.receive_str() for _ in range(5)] == ["a", "b", "c", "d", "e"]
    assert (await ws.receive()).type is WSMsgType.CLOSE
    assert ws.close_code == aiohttp.WSCloseCode.TRY_AGAIN_LATER


async def test_whoever_speaks_is_not_interrupted(aiohttp_client: AiohttpClient) -> None:
    class Speaking(Echo):
        async def on_frame(self, frame: bytes) -> None:
            async with self.socket.exclusive() as send:
                later = asyncio.create_task(self.socket.send((b"second",)))
                await asyncio.sleep(0.02)
                await send((b"first",))
            await later

    client = await aiohttp_client(serving(Speaking))
    ws = await client.ws_connect("/")
    await ws.send_str("go")
    assert [await ws.receive_str(), await ws.receive_str()] == ["first", "second"]


async def test_who_takes_nothing_is_cut() -> None:
    class Stuck:
        async def send_frame(self, frame: bytes, kind: WSMsgType) -> None:
            await asyncio.sleep(60)

    class Transport:
        aborted = False

        def abort(self) -> None:
            self.aborted = True

    transport = Transport()
    socket = WebSocketWriter(Stuck(), transport, 0.01)  # type: ignore[arg-type]
    with pytest.raises(ConnectionResetError):
        await socket.send((b"x",))
    assert transport.aborted


async def test_the_server_says_goodbye(aiohttp_client: AiohttpClient) -> None:
    app = serving()
    client = await aiohttp_client(app)
    ws = await client.ws_connect("/")
    assert len(app[OPEN_SOCKETS]) == 1
    heard = asyncio.create_task(ws.receive(timeout=30))
    await app.shutdown()
    assert (await heard).type is WSMsgType.CLOSE
    assert ws.close_code == aiohttp.WSCloseCode.GOING_AWAY


async def test_a_mistake_of_ours_hangs_up_and_is_told_to_the_journal(aiohttp_client: AiohttpClient) -> None:
    class Broken(Echo):
        async def on_frame(self, frame: bytes) -> None:
            raise ZeroDivisionError

    client = await aiohttp_client(serving(Broken))
    ws = await client.ws_connect("/")
    await ws.send_str("go")
    assert (await ws.receive(timeout=30)).type is WSMsgType.CLOSE
    assert ws.close_code == aiohttp.WSCloseCode.INTERNAL_ERROR


async def test_a_server_that_is_about_to_stop_lets_each_hear_the_end_and_takes_nobody_new(
    aiohttp_client: AiohttpClient,
) -> None:
    told = asyncio.Event()

    class Telling(Echo):
        async def on_frame(self, frame: bytes) -> None:
            self.busy = frame == b"busy"

        async def wait_until_idle(self) -> None:
            if getattr(self, "busy", False):
                await told.wait()
                await self.socket.send((b"the end",))

    app = serving(Telling)
    client = await aiohttp_client(app)
    idle, busy = await client.ws_connect("/"), await client.ws_connect("/")
    await idle.send_str("idle")
    await busy.send_str("busy")
    heard = asyncio.create_task(idle.receive(timeout=30)), asyncio.create_task(busy.receive(timeout=30))
    await asyncio.sleep(0.05)
    leaving = asyncio.create_task(app[OPEN_SOCKETS].close_when_idle())
    assert (await heard[0]).type is WSMsgType.CLOSE
    assert (idle.close_code, heard[1].done()) == (aiohttp.WSCloseCode.SERVICE_RESTART, False)
    with pytest.raises(Overloaded):
        app[OPEN_SOCKETS].check_open()
    told.set()
    assert (await heard[1]).data == "the end"
    assert (await busy.receive(timeout=30)).type is WSMsgType.CLOSE
    assert busy.close_code == aiohttp.WSCloseCode.SERVICE_RESTART
    await leaving
