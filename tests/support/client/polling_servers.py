"""Servers that take no websockets: a whole one behind a proxy that passes no upgrades, and one that a test leads."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

SEPARATOR = "\x1e"
OPENED = '0{"sid":"one","upgrades":[],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1000000}'
REFUSED = '{"code":3,"message":"Bad request"}'


@asynccontextmanager
async def served_by(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


class Proxy:
    """Passes requests on, one by one, and nothing that would become a socket; that it answers with `status`."""

    def __init__(self, upstream: str, status: int = 400, cuts: Sequence[int] = ()) -> None:
        """`cuts` are the polls, counted from the first of all, at which it forgets who asks."""
        self._upstream, self._status, self._cuts = upstream, status, cuts
        self.upgrades = self.polls = 0
        self._forgotten: set[str] = set()

    @asynccontextmanager
    async def address(self) -> AsyncIterator[str]:
        async with aiohttp.ClientSession(auto_decompress=False) as self._session, served_by(self._pass) as address:
            yield address

    async def _pass(self, request: web.Request) -> web.Response:
        if "Upgrade" in request.headers:
            self.upgrades += 1
            return web.Response(status=self._status, text=REFUSED)
        self.polls += request.query.get("transport") == "polling"
        sid = request.query.get("sid", "")
        if self.polls in self._cuts:
            self._forgotten.add(sid)
        if sid in self._forgotten:
            return web.Response(status=400, text='{"code":1,"message":"Session ID unknown"}')
        headers = {name: value for name, value in request.headers.items() if name not in ("Host", "Content-Length")}
        async with self._session.request(
            request.method, self._upstream + request.path_qs, headers=headers, data=await request.read(),
        ) as answer:
            kept = {name: value for name, value in answer.headers.items()
                    if name not in ("Content-Length", "Transfer-Encoding", "Date", "Server")}
            return web.Response(status=answer.status, body=await answer.read(), headers=kept)


class Polled:
    """A server led by a test: `says` are the answers to its polls, one after the other; then it says nothing more."""

    def __init__(self, *says: str | bytes | int) -> None:
        self.says: asyncio.Queue[str | bytes | int] = asyncio.Queue()
        for said in says:
            self.says.put_nowait(said)
        self.heard: list[str] = []
        self.upgrades = self.opened = 0
        self.greeting: str | bytes | int = OPENED
        self.stuck = False
        """Whether it takes packets and never says so."""

    @asynccontextmanager
    async def address(self) -> AsyncIterator[str]:
        async with served_by(self._serve) as address:
            yield address

    async def _serve(self, request: web.Request) -> web.Response:
        if "Upgrade" in request.headers:
            self.upgrades += 1
            return web.Response(status=400, text=REFUSED)
        if request.method == "POST":
            self.heard += (await request.text()).split(SEPARATOR)
            if self.stuck:
                await asyncio.Event().wait()
            return web.Response(text="ok")
        if "sid" not in request.query:
            self.opened += 1
            return _answer(self.greeting)
        return _answer(await self.says.get())


def _answer(said: str | bytes | int) -> web.Response:
    if isinstance(said, int):
        return web.Response(status=said, text=REFUSED)
    return web.Response(body=said.encode() if isinstance(said, str) else said)
