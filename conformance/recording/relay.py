"""The relay: takes what a client asks to the server and back, piece by piece as it comes, and has it recorded."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import hdrs, web
from yarl import URL

from conformance.kit.proxy import proxy_for
from conformance.recording.recorder import Entry, Recorder
from conformance.recording.sockets import relay_socket

OWN = frozenset(
    name.lower()
    for name in (
        hdrs.CONNECTION, "Keep-Alive", hdrs.TE, hdrs.TRAILER, hdrs.TRANSFER_ENCODING, hdrs.UPGRADE, "Proxy-Connection",
        hdrs.HOST, hdrs.EXPECT,
    )
)  # fmt: skip
UNASKED = ("Date", "Server", "Content-Type")
AUTOMATIC = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
CONNECTING = 10.0
LONGEST_LINE = 128 * 1024
BAD_GATEWAY = 502


class Passed(web.StreamResponse):
    """An answer with the headers the server gave it, and no others."""

    async def _prepare_headers(self) -> None:
        given = [name for name in UNASKED if name in self.headers]
        await super()._prepare_headers()
        for name in set(UNASKED) - set(given):
            self.headers.pop(name, None)


class Relay:
    """Stands before one server."""

    def __init__(self, target: URL, recorder: Recorder, session: aiohttp.ClientSession) -> None:
        self._origin = str(target.origin())
        self._recorder = recorder
        self._session = session

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """One request, to its end."""
        path, _, query = request.raw_path.partition("?")
        entry = self._recorder.opened(request.method, path, query, list(request.headers.items()))
        url = URL(self._origin + request.raw_path, encoded=True)
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in OWN]
        try:
            if request.headers.get(hdrs.UPGRADE, "").lower() == "websocket":
                return await relay_socket(self._session, request, url, headers, entry)
            return await self._pass(request, url, headers, entry)
        except asyncio.CancelledError:
            entry.ended("whole" if entry.has_closed else "left")
            raise
        except (aiohttp.ClientConnectorError, aiohttp.ServerDisconnectedError, TimeoutError, OSError) as error:
            entry.ended("refused", f"{type(error).__name__}: {error}")
            words = f"dragoman record: {self._origin} gave no answer ({type(error).__name__})\n"
            return web.Response(status=BAD_GATEWAY, text=words)

    async def _pass(
        self, request: web.BaseRequest, url: URL, headers: list[tuple[str, str]], entry: Entry
    ) -> web.StreamResponse:
        body = _taken(request, entry) if request.body_exists else None
        async with self._session.request(
            request.method, url, headers=headers, data=body, allow_redirects=False, skip_auto_headers=AUTOMATIC
        ) as answer:
            return await self._answer(request, answer, entry)

    async def _answer(
        self, request: web.BaseRequest, answer: aiohttp.ClientResponse, entry: Entry
    ) -> web.StreamResponse:
        entry.answered(answer.status, answer.reason or "", list(answer.headers.items()))
        response = Passed(status=answer.status, reason=answer.reason)
        for name, value in answer.headers.items():
            if name.lower() not in OWN:
                response.headers.add(name, value)
        tap = entry.answer_body(answer.headers)
        try:
            await response.prepare(request)
            while piece := await answer.content.readany():
                tap.feed(piece)
                await response.write(piece)
            await response.write_eof()
        except aiohttp.ClientPayloadError as error:
            tap.close()
            entry.ended("cut", str(error))
            _break_off(request)
            return response
        except (ConnectionError, aiohttp.ClientConnectionError) as error:
            tap.close()
            entry.ended("left" if isinstance(error, aiohttp.ClientConnectionResetError) else "cut", str(error))
            _break_off(request)
            return response
        except asyncio.CancelledError:
            tap.close()
            raise
        tap.close()
        entry.ended("whole")
        return response


async def _taken(request: web.BaseRequest, entry: Entry) -> AsyncIterator[bytes]:
    """The request's body on its way to the server."""
    tap = entry.request_body(request.headers)
    try:
        while piece := await request.content.readany():
            tap.feed(piece)
            yield piece
    finally:
        tap.close()


def _break_off(request: web.BaseRequest) -> None:
    """Let the client see what the proxy saw: an answer without its end."""
    if request.transport is not None:
        request.transport.abort() if isinstance(request.transport, asyncio.Transport) else request.transport.close()


@asynccontextmanager
async def relaying(target: URL, recorder: Recorder, host: str, port: int) -> AsyncIterator[URL]:
    """The address at which clients find the server for as long as the context lasts."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECTING)
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(
        connector=connector,
        timeout=timeout,
        proxy=proxy_for(target),
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        max_line_size=LONGEST_LINE,
        max_field_size=LONGEST_LINE,
    ) as session:
        options: dict[str, Any] = {"max_line_size": LONGEST_LINE, "max_field_size": LONGEST_LINE}
        relay = Relay(target, recorder, session)
        server = web.Server(
            relay.handle, access_log=None, auto_decompress=False, handler_cancellation=True, **options
        )
        runner = web.ServerRunner(server, shutdown_timeout=0.2)
        await runner.setup()
        try:
            site = web.TCPSite(runner, host, port)
            await site.start()
            found = runner.addresses[0]
            yield URL.build(scheme="http", host=host, port=found[1], path=target.raw_path, encoded=True)
        finally:
            await runner.cleanup()
