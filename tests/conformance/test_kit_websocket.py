"""The WebSocket client: frames both ways, closings, and waits that end."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from conformance.kit.expect import Failed, Unanswered
from conformance.kit.http import HttpClient
from conformance.kit.secrets import Redactor
from conformance.kit.transcript import Transcript
from conformance.kit.websocket import connect

KEY = "a-bearer-key"


async def talk(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    await socket.send_json({"key": request.headers.get("Authorization")})
    async for frame in socket:
        match frame.data:
            case "bye":
                await socket.close(code=4000)
            case "binary":
                await socket.send_bytes(b"\x01")
            case "quiet":
                pass
            case bytes():
                await socket.send_json({"bytes": len(frame.data)})
            case _:
                await socket.send_str(frame.data)
    return socket


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    app = web.Application()
    app.router.add_get("/ws", talk)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        yield HttpClient(session, str(server.make_url("")).rstrip("/"), Transcript(Redactor(key=KEY)), KEY, timeout=0.3)


async def test_frames_go_both_ways(client: HttpClient) -> None:
    async with connect(client, "/ws") as socket:
        assert await socket.next() == {"key": f"Bearer {KEY}"}
        await socket.send({"a": [1]})
        assert await socket.next() == {"a": [1]}
        await socket.send_text("not json")
        assert await socket.next_text() == "not json"
        await socket.send_bytes(b"\x00\x01")
        assert await socket.next() == {"bytes": 2}
        await socket.send_text("bye")
        assert await socket.next() is None
        assert socket.close_code == 4000
    told = str(client.transcript)
    assert '> {"a":[1]}' in told
    assert "< not json" in told
    assert KEY not in told


async def test_what_is_not_json_is_a_failure_when_json_is_asked_for(client: HttpClient) -> None:
    async with connect(client, "/ws", key=None) as socket:
        assert await socket.next() == {"key": None}
        await socket.send_text("{")
        with pytest.raises(Failed, match="to be JSON"):
            await socket.next()


async def test_a_binary_frame_is_a_failure(client: HttpClient) -> None:
    async with connect(client, "/ws") as socket:
        await socket.next()
        await socket.send_text("binary")
        with pytest.raises(Failed, match="a text frame"):
            await socket.next()


async def test_silence_is_a_failure(client: HttpClient) -> None:
    async with connect(client, "/ws") as socket:
        await socket.next()
        await socket.send_text("quiet")
        with pytest.raises(Failed, match=r"within 0\.3 s"):
            await socket.next()


async def test_a_wait_can_be_longer_or_shorter(client: HttpClient) -> None:
    async with connect(client, "/ws") as socket:
        await socket.next()
        with pytest.raises(Failed, match=r"within 0\.01 s"):
            await socket.next(within=0.01)


async def test_a_path_without_a_socket_is_unanswered(client: HttpClient) -> None:
    with pytest.raises(Unanswered, match="/none to open"):
        async with connect(client, "/none"):
            raise AssertionError("it cannot open")
