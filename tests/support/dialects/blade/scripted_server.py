"""A server that claims to speak Blade and does what a test tells it to."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import orjson
from aiohttp import WSMsgType, web

SESSION = "sess_1"
OPEN = '0{"sid":"a","upgrades":[],"pingInterval":25000,"pingTimeout":20000}'


class ConnectedClient:
    """A client that was let in."""

    def __init__(self, socket: web.WebSocketResponse, auth: Any) -> None:
        self.socket, self.auth = socket, auth

    async def hear(self) -> tuple[str, Any, str]:
        """The next event: its name, its body, the number of its acknowledgement."""
        async for message in self.socket:
            said = str(message.data)
            if said.startswith("42"):
                number = said[2:said.index("[")]
                name, body = orjson.loads(said[2 + len(number):])
                return name, body, number
        raise ConnectionError("the client has left")

    async def asked(self, *names: str) -> str:
        """The events of these names, in this order; the number of the last."""
        number = ""
        for name in names:
            heard, _, number = await self.hear()
            assert heard == name
        return number

    async def say(self, event: str, **body: Any) -> None:
        await self.raw("42" + orjson.dumps([event, {"session_id": SESSION, **body}]).decode())

    async def ack(self, number: str, **body: Any) -> None:
        await self.raw(f"43{number}{orjson.dumps([body]).decode()}")

    async def raw(self, packet: str) -> None:
        await self.socket.send_str(packet)

    async def linger(self) -> None:
        """Say nothing more until the client leaves."""
        async for _ in self.socket:
            pass


Script = Callable[[ConnectedClient], Awaitable[None]]


class ScriptedServer:
    """Where the server is, whom it saw, and what its books say."""

    def __init__(self, scripts: tuple[Script, ...]) -> None:
        self.scripts = list(scripts)
        self.address = ""
        self.guests: list[ConnectedClient] = []
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.turns: Any = []
        self.status = "completed"
        self.answer: Callable[[web.Request], web.StreamResponse] | None = None
        """What is answered to everything, where something is."""

    async def socket(self, request: web.Request) -> web.StreamResponse:
        self._note(request)
        if self.answer is not None:
            return self.answer(request)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(OPEN)
        said = str((await socket.receive()).data)
        guest = ConnectedClient(socket, orjson.loads(said[2:] or "null"))
        self.guests.append(guest)
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        with suppress(ConnectionError):
            if not getattr(script, "is_rude", False):
                await socket.send_str('40{"sid":"b"}')
            await script(guest)
        await socket.close()
        return socket

    async def rest(self, request: web.Request) -> web.StreamResponse:
        self._note(request)
        if self.answer is not None:
            return self.answer(request)
        if request.method == "POST":
            return web.json_response({"session_id": SESSION})
        if request.path.endswith("/messages"):
            return web.json_response(self.turns)
        return web.json_response({"id": SESSION, "status": self.status})

    def _note(self, request: web.Request) -> None:
        self.asked.append((request.method, request.path, dict(request.headers)))


def refusing(script: Script) -> Script:
    """A script that begins before the client is let in."""
    script.is_rude = True  # type: ignore[attr-defined]
    return script


@asynccontextmanager
async def scripted_server(*scripts: Script) -> AsyncIterator[ScriptedServer]:
    served = ScriptedServer(scripts)
    app = web.Application()
    app.router.add_get("/socket.io/", served.socket)
    app.router.add_route("*", "/{path:.*}", served.rest)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    served.address = f"http://{host}:{port}"
    try:
        yield served
    finally:
        await runner.cleanup()


@asynccontextmanager
async def silent_server() -> AsyncIterator[str]:
    """A server that takes connections and says nothing."""
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with suppress(OSError):
            while await reader.read(65536):
                pass

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in writers:
            writer.close()


async def send_bytes(guest: ConnectedClient, broken: bytes) -> None:
    """Bytes as a text, which they may not be."""
    await guest.socket.send_frame(broken, WSMsgType.TEXT)
