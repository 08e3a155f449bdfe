"""The proxy: invisible where nothing meddles, and wrong in the way it is message where something does."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from conformance.faults.local_server import served
from conformance.faults.proxy.front import proxied
from conformance.faults.proxy.interceptor import SOCKET, Answer, Cut, Interceptor, PassedMessage, StreamInterceptor
from conformance.faults.proxy.sockets import frames


class Echo:
    """A server that says back what it is asked."""

    mount = "/base"

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/base/echo/{tail:.*}", self.echo)
        app.router.add_get("/base/stream", self.stream)
        app.router.add_get("/base/socket", self.socket)
        return app

    async def echo(self, request: web.Request) -> web.Response:
        about = {"method": request.method, "path": request.path_qs, "sent": (await request.read()).decode()}
        return web.json_response(about | {"note": request.headers.get("X-Note")}, status=207, headers={"X-Back": "yes"})

    async def stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for place in range(3):
            await response.write(b"event: e%d\ndata: {}\n\n" % place)
        return response

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        if "refuse" in request.query:
            raise web.HTTPForbidden
        socket = web.WebSocketResponse(protocols=("spoken",))
        await socket.prepare(request)
        async for message in socket:
            if message.data == "leave":
                await socket.close(code=4001)
                break
            say = socket.send_bytes if isinstance(message.data, bytes) else socket.send_str
            await say(message.data)
        return socket


async def route(request: web.Request) -> str:
    return f"{request.method} {request.path.split('/')[2]}"


@asynccontextmanager
async def before(interceptor: Interceptor) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    async with served(Echo()) as url, proxied(url, route, interceptor) as address, aiohttp.ClientSession() as session:
        yield session, address


async def test_requests_and_answers_pass_whole() -> None:
    async with before(Interceptor()) as (session, url):
        assert url.endswith("/base")
        asked = session.put(f"{url}/echo/a%2Fb?q=%20x", data=b"hello", headers={"X-Note": "noted"})
        async with asked as response:
            body = await response.json()
            assert (response.status, response.headers["X-Back"]) == (207, "yes")
    assert body == {"method": "PUT", "path": "/base/echo/a%2Fb?q=%20x", "sent": "hello", "note": "noted"}


async def test_sockets_pass_both_ways_with_protocol_and_close_code() -> None:
    async with before(Interceptor()) as (session, url):
        async with session.ws_connect(f"{url}/socket", protocols=("spoken", "other")) as socket:
            await socket.send_str('{"type": "x"}')
            await socket.send_bytes(b"\x00\xff")
            assert socket.protocol == "spoken"
            assert [(await socket.receive(5)).data for _ in range(2)] == ['{"type": "x"}', b"\x00\xff"]
            await socket.send_str("leave")
            assert (await socket.receive(5)).type is aiohttp.WSMsgType.CLOSE
            assert socket.close_code == 4001
        with pytest.raises(aiohttp.WSServerHandshakeError) as refusal:
            await session.ws_connect(f"{url}/socket?refuse=1")
    assert refusal.value.status == 403


class Wrong(Interceptor):
    """Answers otherwise, and lets no event e1 pass."""

    def __init__(self) -> None:
        self.asked_for: list[Any] = []

    def asked(self, json: Any) -> None:
        self.asked_for.append(json)

    def answered(self, answer: Answer) -> Answer:
        return answer if answer.is_stream else replace(answer.saying({"place": answer.place}), status=500)

    def stream(self, channel: str) -> StreamInterceptor:
        return CutAtOne() if channel != SOCKET else Doubling()


class CutAtOne(StreamInterceptor):
    def message(self, message: PassedMessage) -> Sequence[PassedMessage]:
        if message.name == "e1":
            raise Cut
        return (message,)


class Doubling(StreamInterceptor):
    def message(self, message: PassedMessage) -> Sequence[PassedMessage]:
        return (message, message.saying({"again": message.json}))


async def test_a_meddler_changes_answers_and_sees_requests() -> None:
    interceptor = Wrong()
    async with before(interceptor) as (session, url), session.post(f"{url}/echo/", json={"a": 1}) as response:
        assert response.status == 500
        assert await response.json() == {"place": "POST echo 207"}
    assert interceptor.asked_for == [{"a": 1}]


async def test_a_cut_breaks_the_connection_before_the_event() -> None:
    async with before(Wrong()) as (session, url), session.get(f"{url}/stream") as response:
        assert await response.content.readuntil(b"\n\n") == b"event: e0\ndata: {}\n\n"
        with pytest.raises(aiohttp.ClientError):
            await response.content.read()


async def test_a_meddler_changes_frames() -> None:
    interceptor = Wrong()
    async with before(interceptor) as (session, url), session.ws_connect(f"{url}/socket") as socket:
        await socket.send_str('{"type":"x"}')
        assert [(await socket.receive(5)).data for _ in range(2)] == ['{"type":"x"}', '{"again":{"type":"x"}}']
    assert interceptor.asked_for == [{"type": "x"}]
    assert list(frames(Doubling())("not json")) == ["not json"]
