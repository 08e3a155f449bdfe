"""WebSockets through the relay: every message is passed on as it comes, from either side."""

import asyncio
from typing import Any

import aiohttp
from aiohttp import WSMsgType, hdrs, web
from yarl import URL

from conformance.kit.proxy import proxy_for
from conformance.recording.recorder import LARGEST, Entry

CLOSING = 2.0
SWITCHING = 101
HANDSHAKE = ("sec-websocket-", "content-length", "date", "server", "connection", "upgrade", "transfer-encoding")
Side = aiohttp.ClientWebSocketResponse | web.WebSocketResponse


class Declined(Exception):
    """The server answered the handshake with something else than 101."""

    def __init__(self, status: int, reason: str, headers: list[tuple[str, str]], body: bytes) -> None:
        super().__init__(status)
        self.status, self.reason, self.headers, self.body = status, reason, headers, body


class Handshake(aiohttp.ClientResponse):
    """The answer to a handshake; the body of a refusal is kept."""

    async def start(self, connection: Any) -> "Handshake":
        await super().start(connection)
        if self.status != SWITCHING:
            body = (await self.read())[:LARGEST]
            raise Declined(self.status, self.reason or "", list(self.headers.items()), body)
        return self


async def relay_socket(
    session: aiohttp.ClientSession,
    request: web.BaseRequest,
    url: URL,
    headers: list[tuple[str, str]],
    entry: Entry,
) -> web.StreamResponse:
    """One connection, from its handshake to its close."""
    kept = [(name, value) for name, value in headers if not name.lower().startswith("sec-websocket-")]
    names = [part.strip() for part in request.headers.get(hdrs.SEC_WEBSOCKET_PROTOCOL, "").split(",") if part.strip()]
    async with aiohttp.ClientSession(
        connector=session.connector,
        connector_owner=False,
        proxy=proxy_for(url),
        response_class=Handshake,
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as opening:
        try:
            server = await opening.ws_connect(
                url,
                headers=kept,
                protocols=names,
                autoping=False,
                autoclose=False,
                max_msg_size=0,
                timeout=aiohttp.ClientWSTimeout(ws_close=CLOSING),
            )
        except Declined as refusal:
            return await _declined(request, refusal, entry)
        async with server:
            return await _connected(request, server, entry)


async def _declined(request: web.BaseRequest, refusal: Declined, entry: Entry) -> web.StreamResponse:
    entry.answered(refusal.status, refusal.reason, refusal.headers)
    tap = entry.answer_body(dict(refusal.headers))
    tap.feed(refusal.body)
    tap.close()
    entry.ended("whole")
    response = web.Response(status=refusal.status, reason=refusal.reason, body=refusal.body)
    for name, value in refusal.headers:
        if name.lower() not in HANDSHAKE:
            response.headers[name] = value
    return response


async def _connected(
    request: web.BaseRequest, server: aiohttp.ClientWebSocketResponse, entry: Entry
) -> web.StreamResponse:
    answer = server._response
    entry.answered(answer.status, answer.reason or "", list(answer.headers.items()))
    client = web.WebSocketResponse(
        timeout=CLOSING,
        autoping=False,
        autoclose=False,
        max_msg_size=0,
        compress=False,
        protocols=(server.protocol,) if server.protocol else (),
    )
    for name, value in answer.headers.items():
        if not name.lower().startswith(HANDSHAKE):
            client.headers.add(name, value)
    await client.prepare(request)
    pumps = [
        asyncio.create_task(_pump(client, server, entry, is_sent=True)),
        asyncio.create_task(_pump(server, client, entry, is_sent=False)),
    ]
    try:
        done, _ = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        ending = "whole" if entry.has_closed else next(iter(done)).result()
        if ending == "cut" and request.transport is not None:
            request.transport.close()
        if entry.has_closed:
            await asyncio.wait(pumps, timeout=2 * CLOSING)
        entry.ended(ending)
    finally:
        for task in pumps:
            task.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
    return client


async def _pump(source: Side, sink: Side, entry: Entry, *, is_sent: bool) -> str:
    """Pass on the messages of one side until it closes; return how it ended."""
    lost = "left" if is_sent else "cut"
    try:
        while True:
            message = await source.receive()
            match message.type:
                case WSMsgType.TEXT:
                    entry.frame(message.data, is_sent=is_sent)
                    await sink.send_str(message.data)
                case WSMsgType.BINARY:
                    entry.frame(message.data, is_sent=is_sent)
                    await sink.send_bytes(message.data)
                case WSMsgType.PING:
                    await sink.ping(message.data)
                case WSMsgType.PONG:
                    await sink.pong(message.data)
                case WSMsgType.CLOSE:
                    return await _closed(source, sink, entry, message, is_sent)
                case _:
                    return lost
    except (ConnectionError, aiohttp.ClientError):
        return "cut" if is_sent else "left"


async def _closed(source: Side, sink: Side, entry: Entry, message: aiohttp.WSMessage, is_sent: bool) -> str:
    code, reason = int(message.data or 1000), str(message.extra or "")
    entry.closed(code, reason, is_sent=is_sent)
    sendable = code if code not in (1005, 1006) else 1000
    await sink.close(code=sendable, message=reason.encode())
    await source.close(code=sendable)
    return "whole"
