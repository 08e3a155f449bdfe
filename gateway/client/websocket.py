"""WebSocket connections to one upstream server: redirects are refused, and every wait has a timeout."""

import asyncio
from collections.abc import Mapping

import aiohttp
import orjson
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, WSMsgType

from gateway.errors import BackendFailed, ConnectionLost
from gateway.json_values import JsonValue, read_exact_json

from .retry import retry
from .transport import MAX_BODY_BYTES, HttpClient

SWITCHED = 101
"""The status of a response that opens a WebSocket."""
CLOSE_SECONDS = 1.0
"""Seconds that a server has to answer our close frame."""


class WebSocketConnector:
    """Opens WebSockets at one path; make one, use it for many turns, close it once."""

    def __init__(self, upstream: HttpClient, path: str) -> None:
        self._upstream, self._path = upstream, path
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def open(self) -> "WebSocketConnection":
        """A new connection; after a failure that may pass it is tried again."""
        return await retry(self.connect, self._upstream.timeouts.attempts)

    async def connect(self) -> "WebSocketConnection":
        """A new connection, in one attempt."""
        if self._closed:
            raise BackendFailed(f"the connection pool of {self._upstream.name} is closed")
        if self._session is None:
            self._session = self._upstream.aiohttp_session(self._only_switched, self._upstream.headers)
        with self._upstream.aiohttp_errors():
            return WebSocketConnection(await self._session.ws_connect(
                self._upstream.url_for(self._path),
                max_msg_size=MAX_BODY_BYTES,
                timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
            ), self._upstream)

    async def _only_switched(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        """Any response that is not an upgrade is a refusal, redirects too: keys are sent to this server only."""
        response = await handler(request)
        if response.status == SWITCHED:
            return response
        try:
            if response.status < 300:
                raise BackendFailed(f"{self._upstream.name} answered {response.status}, and opened no socket")
            raise await self._upstream.error_of(response)
        finally:
            response.close()

    async def close(self) -> None:
        session, self._session, self._closed = self._session, None, True
        if session is not None:
            await session.close()


class WebSocketConnection:
    """One connection: JSON objects out, frames in."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse[bool], upstream: HttpClient) -> None:
        self._ws, self._upstream = ws, upstream

    async def send(self, frame: Mapping[str, JsonValue]) -> None:
        with self._upstream.aiohttp_errors():
            async with asyncio.timeout(self._upstream.timeouts.first_byte):
                await self._ws.send_str(orjson.dumps(frame).decode())

    async def receive(self, seconds: float) -> object:
        """The next frame, parsed. Raises `TimeoutError` if none comes in time, `ConnectionLost` if none will come."""
        message = await self._ws.receive(timeout=max(seconds, 0.001))
        if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
            return self._parsed(message.data)
        if message.type is WSMsgType.ERROR:
            raise BackendFailed(f"{self._upstream.name} sent something that is not a WebSocket frame")
        raise ConnectionLost(
            f"{self._upstream.name} closed the connection before the end of the turn (code {self._ws.close_code})")

    def _parsed(self, frame: str | bytes) -> object:
        text = frame if isinstance(frame, str) else frame.decode(errors="replace")
        try:
            return read_exact_json(self._upstream.redactor.body(text))
        except orjson.JSONDecodeError:
            raise BackendFailed(f"{self._upstream.name} sent a frame that is not JSON") from None

    async def close(self) -> None:
        await self._ws.close()
