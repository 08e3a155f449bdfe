"""Transports of Socket.IO packets to an upstream server: a WebSocket, or long polling if the server takes none."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

import aiohttp
import orjson

from gateway.errors import BackendFailed, ConnectionLost, GatewayError, TimedOut

from .transport import HttpClient
from .transport.error_messages import status_error

MAX_PACKET_BYTES = 32 * 1024 * 1024
"""A packet may have so many bytes."""
CLOSE_SECONDS = 2.0
"""Seconds that a server has to accept the closing packet."""
SEPARATOR = "\x1e"
MAX_QUEUED_PACKETS = 1000
"""If so many packets are not read yet, the server is not asked for more."""
CONNECTION_GONE_STATUSES = frozenset((400, 404, 410))
"""The statuses for a client that was connected, and is not any more."""
NO_WEBSOCKET_STATUSES = frozenset((200, 400, 403, 404, 405, 426, 501))
"""The statuses of servers and proxies that take no WebSockets; if one means something else, polling shows it."""
POLLING_HEADERS = {"Content-Type": "text/plain;charset=UTF-8"}


class SocketIOTransport(Protocol):
    """Packets both ways; every failure is a `GatewayError`."""

    async def receive(self) -> str: ...
    async def send(self, packet: str) -> None: ...
    async def close(self) -> None: ...


async def reject_redirects(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """A redirect is not followed: the key is meant for this server."""
    response = await handler(request)
    if 300 <= response.status < 400:
        response.close()
        raise BackendFailed(f"{request.url.origin()} answered {response.status} with a redirect, "
                            "which is not followed")
    return response


@contextmanager
def answer_errors(upstream: HttpClient) -> Iterator[None]:
    """Turn what aiohttp raises before an answer is complete into a `GatewayError`."""
    with upstream.aiohttp_errors():
        try:
            yield
        except TimeoutError:
            raise TimedOut(f"{upstream.name} did not answer in time") from None


class PollingTransport:
    """Long polling; make one with `open`. A request always waits for packets, so that none is lost between reads."""

    def __init__(self, session: aiohttp.ClientSession, upstream: HttpClient) -> None:
        self._session, self._upstream = session, upstream
        self._url = upstream.url.update_query(transport="polling")
        self._packets: asyncio.Queue[str | GatewayError] = asyncio.Queue(MAX_QUEUED_PACKETS)
        self._sending = asyncio.Lock()
        self._polling: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, session: aiohttp.ClientSession, upstream: HttpClient) -> "PollingTransport":
        made = cls(session, upstream)
        first, *more = await made._request("GET", seconds=upstream.timeouts.first_byte)
        made._url = made._url.update_query(sid=made._connection_id(first))
        made._polling = asyncio.create_task(made._poll([first, *more]), name=f"polling {upstream.name}")
        return made

    async def receive(self) -> str:
        packet = await self._packets.get()
        if isinstance(packet, GatewayError):
            self._packets.put_nowait(packet)  # the next read fails, too
            raise packet
        return packet

    async def send(self, packet: str) -> None:
        async with self._sending:
            await self._request("POST", packet, seconds=self._upstream.timeouts.idle)

    async def close(self) -> None:
        """Send a closing packet, if the server accepts it."""
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.wait([self._polling])
        with suppress(GatewayError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.send("1")

    async def _poll(self, packets: list[str]) -> None:
        try:
            while True:
                for packet in packets:
                    await self._packets.put(packet)
                packets = await self._request("GET")
        except GatewayError as error:
            await self._packets.put(error)

    async def _request(self, method: str, packet: str | None = None, seconds: float | None = None) -> list[str]:
        """The packets in the answer to one request; without `seconds`, the reader limits how long it may take."""
        connect = self._upstream.timeouts.connect
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect, sock_read=seconds)
        data, headers = (None, None) if packet is None else (packet.encode(), POLLING_HEADERS)
        with answer_errors(self._upstream):
            async with self._session.request(method, self._url, data=data, headers=headers, timeout=timeout) as answer:
                if answer.status != 200:
                    raise self._refusal(answer.status)
                return self._read(await self._read_whole(answer)) if packet is None else []

    def _refusal(self, status: int) -> GatewayError:
        if "sid" in self._url.query and status in CONNECTION_GONE_STATUSES:
            return ConnectionLost(f"{self._upstream.name} ended the connection")
        return status_error(status, f"{self._upstream.name} answered {status} to polling")

    async def _read_whole(self, answer: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for chunk in answer.content.iter_any():
            body += chunk
            if len(body) > MAX_PACKET_BYTES:
                raise BackendFailed(f"{self._upstream.name} sent more than {MAX_PACKET_BYTES} bytes at once")
        return bytes(body)

    def _read(self, body: bytes) -> list[str]:
        try:
            return body.decode().split(SEPARATOR)
        except UnicodeDecodeError:
            raise BackendFailed(f"{self._upstream.name} sent something that is not text") from None

    def _connection_id(self, opened: str) -> str:
        """The id that the server has given this connection."""
        with suppress(orjson.JSONDecodeError):
            handshake = orjson.loads(opened[1:])
            if opened.startswith("0") and isinstance(handshake, dict) and isinstance(handshake.get("sid"), str):
                return str(handshake["sid"])
        raise BackendFailed(f"{self._upstream.name} accepts no WebSocket, and its response to polling is malformed")


class WebSocketRefused(BackendFailed):
    """The server answered, and did not open a WebSocket."""


class WebSocketTransport:
    """A WebSocket; make one with `open`."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse[bool], upstream: HttpClient) -> None:
        self._socket, self._upstream = socket, upstream

    @classmethod
    async def open(cls, session: aiohttp.ClientSession, upstream: HttpClient) -> "WebSocketTransport":
        timeouts, name = upstream.timeouts, upstream.name
        with answer_errors(upstream):
            try:
                async with asyncio.timeout(timeouts.connect + timeouts.first_byte):
                    return cls(await session.ws_connect(
                        upstream.url.update_query(transport="websocket"), max_msg_size=MAX_PACKET_BYTES,
                        timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
                    ), upstream)
            except aiohttp.WSServerHandshakeError as error:
                if error.status == 101:
                    raise BackendFailed(f"{name} does not speak the WebSocket protocol ({error.message})") from None
                if error.status in NO_WEBSOCKET_STATUSES:
                    raise WebSocketRefused(f"{name} answered {error.status} to a websocket") from None
                raise status_error(error.status, f"{name} answered {error.status} to a websocket") from None

    async def receive(self) -> str:
        """The next packet that is text."""
        while True:
            message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.TEXT:
                return str(message.data)
            if message.type is aiohttp.WSMsgType.ERROR:
                raise BackendFailed(f"{self._upstream.name} violates the WebSocket protocol ({message.data})")
            if message.type is not aiohttp.WSMsgType.BINARY:
                raise ConnectionLost(f"the connection to {self._upstream.name} broke")

    async def send(self, packet: str) -> None:
        with answer_errors(self._upstream):
            await self._socket.send_str(packet)

    async def close(self) -> None:
        await self._socket.close()
