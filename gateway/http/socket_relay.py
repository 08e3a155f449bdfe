"""Passes requests of a Socket.IO connection on to the process that has it, where several processes serve one port.

A client that polls makes several TCP connections, and the kernel may give each to another process. The id of a
connection names its process, which also listens on a Unix socket that only this user can open.
"""

import asyncio
import os
from pathlib import Path

import aiohttp
from aiohttp import hdrs, web
from multidict import CIMultiDict

from gateway.http.security import CONNECTION_LIMITS, mark_authenticated
from gateway.http.security.trusted_proxies import FORWARDED_FOR, FORWARDED_HOST, FORWARDED_PROTO

SEPARATOR = "."
REPLY_SECONDS = 120.0
"""A poll is answered when its client is pinged, at the latest; only a process that hangs takes so long."""
HOP_HEADERS = frozenset({
    "connection", "keep-alive", "upgrade", "transfer-encoding", "content-length", "te", "trailer", "proxy-connection",
    "sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions", "sec-websocket-accept",
    FORWARDED_FOR.lower(), FORWARDED_HOST.lower(), FORWARDED_PROTO.lower(),
})
"""Headers that are about one connection, and those that this process writes itself."""


class SocketRelay:
    """Knows by the id of a connection which process has it, and talks to that process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clients: dict[Path, aiohttp.ClientSession] = {}

    @property
    def own_socket(self) -> Path:
        """Where this process takes requests from the others."""
        return self._socket(str(os.getpid()))

    def mark(self, connection_id: str) -> str:
        """The id of a new connection, with the name of this process in it."""
        return f"{os.getpid()}{SEPARATOR}{connection_id}"

    async def pass_on(self, request: web.Request, connection_id: str) -> web.StreamResponse | None:
        """The response of the process that has the connection; None if no other running process has it."""
        process, _, rest = connection_id.partition(SEPARATOR)
        if not rest or not process.isascii() or not process.isdecimal() or process == str(os.getpid()):
            return None
        socket = self._socket(process)
        try:
            client = self._client(socket)
            if "Upgrade" in request.headers:
                return await self._pass_websocket(client, request)
            return await self._pass_request(client, request)
        except aiohttp.WSServerHandshakeError as refused:
            return web.Response(status=refused.status)
        except (aiohttp.ClientConnectionError, TimeoutError):
            return None

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()

    def _socket(self, process: str) -> Path:
        return self._folder / f"{process}.http"

    def _client(self, socket: Path) -> aiohttp.ClientSession:
        if socket not in self._clients:
            self._clients[socket] = aiohttp.ClientSession(
                connector=aiohttp.UnixConnector(str(socket), limit=0), auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_read=REPLY_SECONDS), cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._clients[socket]

    async def _pass_request(self, client: aiohttp.ClientSession, request: web.Request) -> web.Response:
        async with client.request(
            request.method, _address(request), headers=_headers(request), data=await request.read() or None,
            allow_redirects=False,
        ) as response:
            headers = CIMultiDict((name, value) for name, value in response.headers.items()
                                  if name.lower() not in HOP_HEADERS)
            return web.Response(status=response.status, headers=headers, body=await response.read())

    async def _pass_websocket(self, client: aiohttp.ClientSession, request: web.Request) -> web.StreamResponse:
        most = request.client_max_size
        async with client.ws_connect(_address(request), headers=_headers(request), max_msg_size=most) as inner:
            outer = web.WebSocketResponse(max_msg_size=most, compress=False)
            await outer.prepare(request)
            known = asyncio.get_running_loop().call_later(  # by then a client without a key has been closed
                request.app[CONNECTION_LIMITS]().handshake_seconds, mark_authenticated, request)
            ways = [asyncio.create_task(_copy(outer, inner)), asyncio.create_task(_copy(inner, outer))]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                known.cancel()
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
                await outer.close(code=inner.close_code or aiohttp.WSCloseCode.OK)
            return outer


SOCKET_RELAY = web.AppKey("socket_relay", SocketRelay)

WebSocket = web.WebSocketResponse | aiohttp.ClientWebSocketResponse


async def _copy(source: WebSocket, target: WebSocket) -> None:
    """Copy messages from one side to the other, until the first side closes."""
    async for message in source:
        if message.type is aiohttp.WSMsgType.TEXT:
            await target.send_str(message.data)
        elif message.type is aiohttp.WSMsgType.BINARY:
            await target.send_bytes(message.data)


def _address(request: web.Request) -> str:
    return f"http://worker{request.raw_path}"


def _headers(request: web.Request) -> CIMultiDict[str]:
    """The headers of the client, and how it reached this process."""
    headers = CIMultiDict((name, value) for name, value in request.headers.items() if name.lower() not in HOP_HEADERS)
    headers[hdrs.HOST] = request.host
    headers[FORWARDED_FOR], headers[FORWARDED_PROTO] = request.remote or "", request.scheme
    headers[FORWARDED_HOST] = request.host
    return headers
