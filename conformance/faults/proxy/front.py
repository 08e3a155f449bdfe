"""The proxy's front: takes every request, asks the server behind, and passes on what the interceptor leaves of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from io import BytesIO
from typing import Any

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from conformance.faults.proxy.interceptor import SOCKET, SSE, Answer, Cut, Interceptor, parsed
from conformance.faults.proxy.packets import SEPARATOR, Link
from conformance.faults.proxy.sockets import break_off, carry, frames
from conformance.faults.proxy.streams import passed

HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "host")
)
OF_A_HANDSHAKE = frozenset(
    ("sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions", "sec-websocket-accept")
)
COMPRESSION = frozenset(("accept-encoding",))
NO_BODY = (204, 304)
IO_PATH = "/socket.io/"
Route = Callable[[web.Request], Awaitable[str]]


class Proxy:
    """One server behind, one interceptor within."""

    def __init__(self, origin: str, route: Route, interceptor: Interceptor, session: aiohttp.ClientSession) -> None:
        self._origin = origin
        self._route = route
        self._interceptor = interceptor
        self._session = session
        self._links: dict[str, Link] = {}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        try:
            if request.headers.get("Upgrade", "").lower() == "websocket":
                return await self._socket(request)
            if request.path == IO_PATH:
                return await self._poll(request)
            return await self._ask(request)
        except Cut:
            break_off(request)
            return web.Response(status=500)

    # -- requests and answers ------------------------------------------------------------------------------------------

    async def _ask(self, request: web.Request) -> web.StreamResponse:
        sent = await request.read()
        if (json := parsed(sent)) is not ...:
            self._interceptor.asked(json)
        async with self._asking(request, sent) as response:
            route = await self._route(request)
            if response.content_type == "text/event-stream":
                return await self._stream(request, route, response)
            raw = await response.read()
            json = parsed(raw) if raw and response.content_type == "application/json" else ...
            answer = Answer(route, response.status, _kept(response.headers), raw, json)
            await self._interceptor.pause()
            return _reply(self._interceptor.answered(answer))

    def _asking(self, request: web.Request, sent: bytes) -> Any:
        body = BytesIO(sent) if request.body_exists else None
        headers = _kept(request.headers, COMPRESSION)
        return self._session.request(
            request.method,
            URL(self._origin + request.path_qs, encoded=True),
            data=body,
            headers=headers,
            allow_redirects=False,
            skip_auto_headers=("Content-Type", "User-Agent", "Accept", "Accept-Encoding"),
        )

    async def _stream(
        self, request: web.Request, route: str, response: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        head = self._interceptor.answered(Answer(route, response.status, _kept(response.headers), is_stream=True))
        message = web.StreamResponse(status=head.status, headers=head.headers)
        await message.prepare(request)
        with suppress(ConnectionResetError):
            async for piece in passed(response.content.iter_any(), self._interceptor.stream(SSE)):
                await self._interceptor.pause()
                await message.write(piece)
                await asyncio.sleep(0)
            await message.write_eof()
        return message

    # -- sockets -------------------------------------------------------------------------------------------------------

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        headers = _kept(request.headers, OF_A_HANDSHAKE)
        protocols = [item.strip() for item in headers.popone("Sec-WebSocket-Protocol", "").split(",") if item.strip()]
        url = URL(self._origin + request.path_qs, encoded=True)
        try:
            server = await self._session.ws_connect(url, headers=headers, protocols=protocols, max_msg_size=0)
        except aiohttp.WSServerHandshakeError as refusal:
            kept = _kept(refusal.headers or CIMultiDict(), OF_A_HANDSHAKE)
            return web.Response(status=refusal.status, headers=kept)
        client = web.WebSocketResponse(protocols=[server.protocol] if server.protocol else (), max_msg_size=0)
        await client.prepare(request)
        async with server:
            if request.path == IO_PATH:
                link = self._link(request.query.get("sid"))
                await carry(client, server, link.received, link.passed, self._interceptor.pause)
            else:
                passed_on = frames(self._interceptor.stream(SOCKET))
                await carry(client, server, self._received, passed_on, self._interceptor.pause)
        return client

    def _received(self, text: str) -> None:
        if (json := parsed(text)) is not ...:
            self._interceptor.asked(json)

    def _link(self, sid: str | None) -> Link:
        """The link of this Engine.IO session; a WebSocket that comes without one begins its own."""
        if sid is None:
            return Link(self._interceptor)
        return self._links.setdefault(sid, Link(self._interceptor))

    async def _poll(self, request: web.Request) -> web.StreamResponse:
        sent, sid = await request.read(), request.query.get("sid")
        link = self._link(sid)
        for packet in sent.decode(errors="replace").split(SEPARATOR) if request.method == "POST" else ():
            link.received(packet)
        async with self._asking(request, sent) as response:
            raw = await response.read()
            await self._interceptor.pause()
            headers = _kept(response.headers)
            if request.method != "GET" or response.status != 200:
                return web.Response(status=response.status, headers=headers, body=raw)
            text = raw.decode()
            if sid is None and isinstance(opened := parsed(text[1:].split(SEPARATOR)[0]), dict):
                self._links[str(opened.get("sid"))] = link
            return web.Response(status=200, headers=headers, body=link.payload(text).encode())


def _kept(headers: Any, beside: frozenset[str] = frozenset()) -> CIMultiDict[str]:
    """The headers that are not about this very connection."""
    left = HOP_BY_HOP | beside | {"content-length"}
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in left)


def _reply(answer: Answer) -> web.Response:
    body = None if answer.status in NO_BODY else answer.raw
    return web.Response(status=answer.status, headers=answer.headers, body=body)


@asynccontextmanager
async def proxied(url: str, route: Route, interceptor: Interceptor) -> AsyncIterator[str]:
    """The address of a proxy before the server at this address, for as long as the context lasts."""
    behind = URL(url)
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as session:
        proxy = Proxy(str(behind.origin()), route, interceptor, session)
        app = web.Application(client_max_size=0)
        app.router.add_route("*", "/{path:.*}", proxy.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            host, port = runner.addresses[0][:2]
            yield f"http://{host}:{port}{behind.path.rstrip('/')}"
        finally:
            await runner.cleanup()
