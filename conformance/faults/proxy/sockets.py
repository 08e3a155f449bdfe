"""WebSocket frames on their way through the proxy, both ways at once, until one side ends."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import aiohttp
import orjson
from aiohttp import web

from conformance.faults.proxy.interceptor import SOCKET, Cut, PassedMessage, StreamInterceptor, event_name, parsed

Received = Callable[[str], None]
Passed = Callable[[str], Iterable[str]]
Pause = Callable[[], Awaitable[None]]
DATA = (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY)


async def carry(
    client: web.WebSocketResponse,
    server: aiohttp.ClientWebSocketResponse,
    received: Received,
    passed: Passed,
    pause: Pause,
) -> None:
    """Pass frames on until one side has closed; then close the other with the same code."""
    outward = asyncio.create_task(_inward(client, server, received))
    homeward = asyncio.create_task(_outward(server, client, passed, pause))
    try:
        await asyncio.wait({outward, homeward}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (outward, homeward):
            task.cancel()
        await asyncio.gather(outward, homeward, return_exceptions=True)
    if homeward.done() and not homeward.cancelled() and isinstance(homeward.exception(), Cut):
        break_off(client)
    await server.close()
    if not client.closed:
        await client.close(code=_code(server.close_code))


async def _inward(client: web.WebSocketResponse, server: aiohttp.ClientWebSocketResponse, received: Received) -> None:
    async for message in client:
        if message.type is aiohttp.WSMsgType.TEXT:
            received(message.data)
            await server.send_str(message.data)
        elif message.type is aiohttp.WSMsgType.BINARY:
            await server.send_bytes(message.data)


async def _outward(
    server: aiohttp.ClientWebSocketResponse, client: web.WebSocketResponse, passed: Passed, pause: Pause
) -> None:
    async for message in server:
        if message.type is aiohttp.WSMsgType.TEXT:
            for text in passed(message.data):
                await pause()
                await client.send_str(text)
        elif message.type is aiohttp.WSMsgType.BINARY:
            await client.send_bytes(message.data)


def break_off(client: web.WebSocketResponse | web.Request) -> None:
    """Drop the connection without a word."""
    request = client._req if isinstance(client, web.WebSocketResponse) else client
    if request is not None and request.transport is not None:
        request.transport.abort()


def frames(stream: StreamInterceptor) -> Passed:
    """JSON frames as the interceptor of a stream passes them on; what is not JSON passes as it is."""

    def passed(text: str) -> Iterable[str]:
        json = parsed(text)
        if json is ...:
            return (text,)
        message = PassedMessage(SOCKET, event_name("", json), json, text.encode())
        return [_text(item) for item in stream.message(message)]

    return passed


def _text(message: PassedMessage) -> str:
    return (message.raw if message.raw is not None else orjson.dumps(message.json)).decode()


def _code(code: int | None) -> int:
    """A code that may be sent; the ones below stand for a connection that was lost."""
    return code if code is not None and code not in (1004, 1005, 1006, 1015) else 1000
