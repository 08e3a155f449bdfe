"""The WebSocket client of the examiners: frames out, frames in, each wait bounded, each frame in the transcript."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import EllipsisType
from typing import Any

import aiohttp
import orjson

from conformance.kit import expect
from conformance.kit.departures import Departures
from conformance.kit.expect import Failed, Unanswered
from conformance.kit.http import HttpClient
from conformance.kit.wait_limits import Wait, route

ENDED = (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED)


class Socket:
    """One open connection."""

    def __init__(self, client: HttpClient, path: str, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._client = client
        self._path = path
        self._socket = socket

    @property
    def departures(self) -> Departures:
        return self._client.departures

    @property
    def close_code(self) -> int | None:
        return self._socket.close_code

    async def send(self, value: Any) -> None:
        """Send one JSON frame."""
        await self.send_text(orjson.dumps(value).decode())

    async def send_text(self, text: str) -> None:
        """Send any text as a frame, JSON or not."""
        self._client.transcript.sent(text)
        await self._bounded(self._socket.send_str(text))

    async def send_bytes(self, payload: bytes) -> None:
        """Send a binary frame."""
        self._client.transcript.sent(f"(binary) {payload.hex(' ')}")
        await self._bounded(self._socket.send_bytes(payload))

    async def next(self, within: float | None = None, since: float | None = None) -> Any:
        """The JSON value of the next frame; None when the server has closed."""
        text = await self.next_text(within, since)
        return None if text is None else expect.parsed(text, f"a frame of {self._path}")

    async def next_text(self, within: float | None = None, since: float | None = None) -> str | None:
        """The next text frame; None when the server has closed. Who counts from an earlier time says since when."""
        said = await self.next_frame(within, since)
        if isinstance(said, bytes):
            raise Failed(f"a text frame on {self._path}", f"BINARY: {said!r}")
        return said

    async def next_frame(self, within: float | None = None, since: float | None = None) -> str | bytes | None:
        """The next frame, text or binary; None when the server has closed."""
        frame = await self._bounded(self._socket.receive(), within, since)
        self._client.waits.came(self._kind)
        if frame.type in ENDED:
            self._client.transcript.received(f"(closed {self._socket.close_code})")
            return None
        if frame.type is aiohttp.WSMsgType.TEXT:
            self._client.transcript.received(frame.data)
            return str(frame.data)
        self._client.transcript.received(f"({frame.type.name}) {frame.data!r}")
        if frame.type is aiohttp.WSMsgType.BINARY:
            return bytes(frame.data)
        raise Failed(f"a text frame on {self._path}", f"{frame.type.name}: {frame.data!r}")

    @property
    def _kind(self) -> str:
        return f"a frame on {route(self._path)}"

    async def _bounded(self, work: Any, within: float | None = None, since: float | None = None) -> Any:
        wait = Wait(self._client.timeout)
        try:
            async with self._client.waits.bounded(self._kind, self._client.timeout, within, since) as wait:
                return await work
        except TimeoutError:
            raise Failed(f"{self._path} to go on within {wait}", "nothing came") from None
        except (aiohttp.ClientError, OSError) as error:
            raise Failed(f"{self._path} to stay open", f"{type(error).__name__}: {error}") from None


@asynccontextmanager
async def connect(client: HttpClient, path: str, key: str | EllipsisType | None = ...) -> AsyncIterator[Socket]:
    """Open a WebSocket at the path, with the key the client has unless another is given."""
    key = client.key if key is ... else key
    path = client.placed(path)
    headers = dict(client.headers)
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    client.transcript.sent_request(f"WebSocket {path}", headers)
    kind, wait = f"an open WebSocket {route(path)}", Wait(client.timeout)
    try:
        async with client.waits.bounded(kind, client.timeout) as wait:
            socket = await client.session.ws_connect(client.base + path, headers=headers, max_msg_size=0)
    except TimeoutError:
        raise Unanswered(f"{path} to open within {wait}", "nothing came") from None
    except aiohttp.WSServerHandshakeError as error:
        client.transcript.received(f"{error.status} {error.message}")
        raise Unanswered(f"{path} to open as a WebSocket", f"{error.status} {error.message}") from None
    except (aiohttp.ClientError, OSError) as error:
        raise Unanswered(f"{path} to open as a WebSocket", f"{type(error).__name__}: {error}") from None
    client.waits.came(kind)
    client.transcript.received("101 Switching Protocols")
    try:
        yield Socket(client, path, socket)
    finally:
        await _leave(socket, client.timeout)


async def _leave(socket: aiohttp.ClientWebSocketResponse, within: float) -> None:
    try:
        async with asyncio.timeout(within):
            await socket.close()
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass  # whoever does not let go is left behind
