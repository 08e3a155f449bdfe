"""Chat sockets at somebody's ZenFlux server: never led elsewhere, never waited for without end."""

import asyncio
import random
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import aiohttp
import orjson
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, WSMsgType

from gateway.client import MAX_BODY_BYTES, HttpClient, retry
from gateway.errors import BackendFailed, ConnectionLost
from gateway.json_values import read_exact_json

SOCKET_PATH = "/ws/chat"
SWITCHED = 101
CLOSE_SECONDS = 1.0
"""Seconds that a server has to say goodbye in return."""


class WebSocketConnector:
    """Opens sockets at one address; make one, use it for many turns, close it once."""

    def __init__(self, upstream: HttpClient, headers: Mapping[str, str]) -> None:
        self._upstream, self._headers = upstream, dict(headers)
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def open(self) -> "WebSocketConnection":
        """A new connection; tried again for as long as nobody has refused it for good."""
        return WebSocketConnection(await retry(self._connect, self._upstream.timeouts.attempts), self._upstream)

    async def _connect(self) -> aiohttp.ClientWebSocketResponse[bool]:
        if self._closed:
            raise BackendFailed(f"the connection pool of {self._upstream.name} is closed")
        if self._session is None:
            patience = self._upstream.timeouts
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), headers=self._headers, middlewares=(self._only_switched,),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=patience.connect, sock_read=patience.first_byte),
            )
        with self._upstream.aiohttp_errors():
            return await self._session.ws_connect(
                self._upstream.url_for(SOCKET_PATH),
                max_msg_size=MAX_BODY_BYTES,
                timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
            )

    async def _only_switched(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        """Whatever is no socket is a refusal, and a redirection too: keys are for this server alone."""
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
    """One connection: requests out, frames in."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse[bool], upstream: HttpClient) -> None:
        self._ws, self._upstream = ws, upstream

    async def ask(self, method: str, **params: Any) -> str:
        """Send a request; what comes is its id, which its response will bear."""
        request_id = str(uuid4())
        frame = {"type": "req", "id": request_id, "method": method, "params": params}
        with self._upstream.aiohttp_errors():
            async with asyncio.timeout(self._upstream.timeouts.first_byte):
                await self._ws.send_str(orjson.dumps(frame).decode())
        return request_id

    async def next(self, seconds: float) -> Any:
        """The next frame, parsed. Raises `TimeoutError` if none comes in time, `ConnectionLost` if none will come."""
        message = await self._ws.receive(timeout=max(seconds, 0.001))
        if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
            return self._parsed(message.data)
        if message.type is WSMsgType.ERROR:
            raise BackendFailed(f"{self._upstream.name} sent something that is not a WebSocket frame")
        raise ConnectionLost(
            f"{self._upstream.name} closed the connection before the end of the turn (code {self._ws.close_code})")

    def _parsed(self, said: str | bytes) -> Any:
        text = said if isinstance(said, str) else said.decode(errors="replace")
        try:
            return read_exact_json(self._upstream.redactor.body(text))
        except orjson.JSONDecodeError:
            raise BackendFailed(f"{self._upstream.name} sent a frame that is not JSON") from None

    async def close(self) -> None:
        await self._ws.close()


def backoff(attempt: int) -> float:
    return random.uniform(0.1, 0.2) * (1 << attempt)  # noqa: S311  # no secret
