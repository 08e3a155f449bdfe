"""Lines that are cut after so many bytes, and servers that are not as they should be."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiohttp import web

from adapters.zenflux.client.remote import Remote
from gateway.ports.remote import RemoteAddress, Timeouts

API = "/api/v1"
SHORT = Timeouts(connect=10.0, first_byte=0.4, idle=0.4, total=20.0, attempts=2)
LONG = Timeouts(connect=20.0, first_byte=20.0, idle=20.0, total=50.0, attempts=3)


@asynccontextmanager
async def remote(address: str, patience: Timeouts = LONG, **more: Any) -> AsyncIterator[Remote]:
    made = Remote(RemoteAddress(url=f"{address}{API}", patience=patience, **more))
    try:
        yield made
    finally:
        await made.close()


class CuttingProxy:
    """Passes bytes on to a port; of each socket in turn it passes only so many of what the server says, if told so."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.address = ""
        self.cuts: list[int] = []
        self.made = 0
        self.longest = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            limit = self.cuts.pop(0) if b"/ws/chat" in head and self.cuts else None
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self.port)
            to_server.write(head)
            ways = [asyncio.create_task(self._up(reader, to_server)),
                    asyncio.create_task(self._down(from_server, writer, limit))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            to_server.transport.abort()
        writer.transport.abort()

    async def _up(self, reader: asyncio.StreamReader, to_server: asyncio.StreamWriter) -> None:
        while said := await reader.read(65536):
            to_server.write(said)

    async def _down(self, from_server: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int | None) -> None:
        passed = 0
        while said := await from_server.read(65536):
            if limit is not None and passed + len(said) > limit:
                writer.write(said[:limit - passed])
                await writer.drain()
                writer.close()  # what was written still arrives
                self.made += 1
                return
            passed += len(said)
            self.longest = max(self.longest, passed)
            writer.write(said)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def cutting_proxy(port: int, cuts: Sequence[int] = ()) -> AsyncIterator[CuttingProxy]:
    cutter = CuttingProxy(port)
    cutter.cuts = list(cuts)
    server = await asyncio.start_server(cutter.serve, "127.0.0.1", 0)
    cutter.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield cutter


# -- strange servers --------------------------------------------------------------------------------------------------

class ScriptedServer:
    """A server with one script for its socket; what it was asked is kept."""

    def __init__(self, script: Callable[["ScriptedConnection"], Awaitable[None]]) -> None:
        self.script = script
        self.requests: list[tuple[str, str, Any]] = []
        self.headers: list[str | None] = []
        self.replies: dict[tuple[str, str], tuple[int, Any]] = {}
        self.address = ""
        self.connections = 0

    async def socket(self, request: web.Request) -> web.StreamResponse:
        self.connections += 1
        self.headers.append(request.headers.get("Authorization"))
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        await self.script(ScriptedConnection(self, ws))
        return ws

    async def rest(self, request: web.Request) -> web.Response:
        self.headers.append(request.headers.get("Authorization"))
        body = await request.json() if request.can_read_body else None
        path = request.path.removeprefix(API)
        self.requests.append((request.method, path, body))
        status, data = self.replies.get((request.method, path), (404, None))
        return web.json_response({"code": status, "message": "so it is", "data": data}, status=status)


class ScriptedConnection:
    """One connection of a stranger, as its script sees it."""

    def __init__(self, server: ScriptedServer, ws: web.WebSocketResponse) -> None:
        self.server, self.ws = server, ws
        self.request: dict[str, Any] = {}
        self.seq = 0

    async def hear(self) -> dict[str, Any]:
        """The next request."""
        self.request = await self.ws.receive_json(timeout=60)
        return self.request

    async def accept(self, **payload: Any) -> None:
        await self.hear()
        await self.ws.send_json({"type": "res", "id": self.request["id"], "ok": True,
                                 "payload": {"status": "streaming", **payload}})

    async def refuse(self, code: str, message: str) -> None:
        await self.hear()
        await self.ws.send_json({"type": "res", "id": self.request["id"], "ok": False,
                                 "error": {"code": code, "message": message}})

    async def say(self, kind: str, data: Any = None, *, run: str = "run", seq: int | None = None, **more: Any) -> None:
        self.seq += seq is None
        payload = {"type": kind, "session_id": run, "data": {} if data is None else data, **more}
        await self.ws.send_json({"type": "event", "event": kind, "payload": payload,
                                 "seq": self.seq if seq is None else seq})

    async def text(self, words: str, index: int = 0) -> None:
        await self.say("content_start", {"index": index, "content_block": {"type": "text", "text": ""}})
        await self.say("content_delta", {"index": index, "delta": words})
        await self.say("content_stop", {"index": index})

    async def until_gone(self) -> None:
        """Say nothing more, and stay."""
        async for _ in self.ws:
            pass


@asynccontextmanager
async def scripted_server(script: Callable[[ScriptedConnection], Awaitable[None]]) -> AsyncIterator[ScriptedServer]:
    made = ScriptedServer(script)
    app = web.Application()
    app.router.add_get(f"{API}/ws/chat", made.socket)
    app.router.add_route("*", "/{path:.*}", made.rest)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        made.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield made
    finally:
        await runner.cleanup()
