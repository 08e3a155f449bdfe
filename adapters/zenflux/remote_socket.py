"""Chat sockets at somebody's ZenFlux server: never led elsewhere, never waited for without end."""

import asyncio
import random
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import aiohttp
import orjson
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, WSMsgType

from gateway.errors import BackendFailed, Overloaded, RateLimited
from gateway.model import exact_json
from gateway.upstream import BLOT, LARGEST, LONGEST_WAIT, Cut, Unreachable, Upstream, unmistakable

SOCKET = "/ws/chat"
SWITCHED = 101
GOODBYE = 1.0
"""Seconds that a server has to say goodbye in return."""
PASSING = (Unreachable, Cut, Overloaded, RateLimited)
"""Failures that may be over in a moment."""


class Sockets:
    """Opens sockets at one address; make one, use it for many turns, close it once."""

    def __init__(self, upstream: Upstream, headers: Mapping[str, str], secrets: tuple[str, ...]) -> None:
        self._upstream, self._headers, self._secrets = upstream, dict(headers), unmistakable(secrets)
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def open(self) -> "Line":
        """A new connection; tried again for as long as nobody has refused it for good."""
        attempts = self._upstream.patience.attempts
        for attempt in range(1, attempts + 1):
            try:
                return Line(await self._connect(), self._upstream, self._secrets)
            except PASSING as error:
                wait = (error.details or {}).get("retry_after", backoff(attempt))
                if attempt == attempts or wait > LONGEST_WAIT:
                    raise
                await asyncio.sleep(wait)
        raise AssertionError("every attempt returns or raises")

    async def _connect(self) -> aiohttp.ClientWebSocketResponse[bool]:
        if self._closed:
            raise BackendFailed(f"nobody speaks to {self._upstream.name} any more")
        if self._session is None:
            patience = self._upstream.patience
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), headers=self._headers, middlewares=(self._only_switched,),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=patience.connect, sock_read=patience.first_byte),
            )
        with self._upstream.border():
            return await self._session.ws_connect(
                self._upstream.at(SOCKET), max_msg_size=LARGEST, timeout=aiohttp.ClientWSTimeout(ws_close=GOODBYE),
            )

    async def _only_switched(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        """Whatever is no socket is a refusal, and a redirection too: keys are for this server alone."""
        response = await handler(request)
        if response.status == SWITCHED:
            return response
        try:
            if response.status < 300:
                raise BackendFailed(f"{self._upstream.name} answered {response.status}, and opened no socket")
            raise await self._upstream.complaint(response)
        finally:
            response.close()

    async def close(self) -> None:
        session, self._session, self._closed = self._session, None, True
        if session is not None:
            await session.close()


class Line:
    """One connection: requests out, frames in."""

    def __init__(
        self, ws: aiohttp.ClientWebSocketResponse[bool], upstream: Upstream, secrets: tuple[str, ...],
    ) -> None:
        self._ws, self._upstream, self._secrets = ws, upstream, secrets

    async def ask(self, method: str, **params: Any) -> str:
        """Send a request; what comes is its id, which its response will bear."""
        request_id = str(uuid4())
        frame = {"type": "req", "id": request_id, "method": method, "params": params}
        with self._upstream.border():
            async with asyncio.timeout(self._upstream.patience.first_byte):
                await self._ws.send_str(orjson.dumps(frame).decode())
        return request_id

    async def next(self, seconds: float) -> Any:
        """The next frame, parsed; raises `TimeoutError` if none has come by then, and `Cut` if none will come."""
        message = await self._ws.receive(timeout=max(seconds, 0.001))
        if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
            return self._parsed(message.data)
        if message.type is WSMsgType.ERROR:
            raise BackendFailed(f"{self._upstream.name} sent what is no frame of a socket")
        raise Cut(f"{self._upstream.name} hung up before all was said (code {self._ws.close_code})")

    def _parsed(self, said: str | bytes) -> Any:
        text = said if isinstance(said, str) else said.decode(errors="replace")
        for secret in self._secrets:
            text = text.replace(secret, BLOT)
        try:
            return exact_json(text)
        except orjson.JSONDecodeError:
            raise BackendFailed(f"{self._upstream.name} sent a frame that is not JSON") from None

    async def close(self) -> None:
        await self._ws.close()


def backoff(attempt: int) -> float:
    return random.uniform(0.1, 0.2) * (1 << attempt)  # noqa: S311  # no secret
