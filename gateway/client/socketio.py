"""Socket.IO connections to one upstream server: the handshake, events, acknowledgements, and pings; every wait ends."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import orjson
from msgspec import Struct

from gateway.errors import BackendFailed, ConnectionLost, GatewayError, TimedOut
from gateway.json_values import JsonObject, JsonValue, read_exact_json
from gateway.ports import ParsedFrame

from .socketio_transports import (
    PollingTransport,
    SocketIOTransport,
    WebSocketRefused,
    WebSocketTransport,
    reject_redirects,
)
from .transport import HttpClient

_PACKET = re.compile(r"(?:(/[^,]*),)?(\d{1,15})?")
"""The namespace and the number of an event or an acknowledgement."""


class Acknowledgement(Struct, frozen=True):
    """The server's answer to one of our events."""

    number: int
    body: Any


class SocketIOConnector:
    """Connects to one server; make one, use it for many turns, close it once.

    A connection is a WebSocket or, if the server takes none, long polling. What the server takes is found out once.
    """

    def __init__(self, upstream: HttpClient, auth: Mapping[str, JsonValue] | None = None) -> None:
        """`upstream` has the address of the Socket.IO server, `auth` is sent with the handshake."""
        self.upstream, self._auth = upstream, auth
        self.is_polled = False
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def connect(self) -> AsyncIterator["SocketIOConnection"]:
        """One attempt to connect; the connection ends with the block."""
        transport = await self._open_transport()
        try:
            connection = SocketIOConnection(transport, self.upstream)
            await connection.greet(self._auth)
            yield connection
        finally:
            await transport.close()

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        await self.upstream.close()

    async def _open_transport(self) -> SocketIOTransport:
        if self._session is None:
            self._session = self.upstream.aiohttp_session(reject_redirects)
        if not self.is_polled:
            with suppress(WebSocketRefused):
                return await WebSocketTransport.open(self._session, self.upstream)
        transport = await PollingTransport.open(self._session, self.upstream)
        self.is_polled = True
        return transport


class SocketIOConnection:
    """A connection on which events go both ways; its numbers count our events."""

    def __init__(self, transport: SocketIOTransport, upstream: HttpClient) -> None:
        self.transport, self._upstream = transport, upstream
        self._numbers = 0
        self._silence = upstream.timeouts.idle
        """A server that is alive is never silent for so many seconds: it says how often it sends pings."""

    async def greet(self, auth: Mapping[str, JsonValue] | None) -> None:
        """The handshake of Engine.IO and then of Socket.IO."""
        timeouts = self._upstream.timeouts
        async with self._within(timeouts.first_byte):
            while not (opened := await self._packet(timeouts.first_byte)).startswith("0"):
                pass
            packet = self._parsed(opened[1:])
            if isinstance(packet, dict):
                self._silence = (
                    _read_seconds(packet, "pingInterval") + _read_seconds(packet, "pingTimeout") or self._silence
                )
            await self._send(f"40{orjson.dumps(auth).decode() if auth else ''}")
            while not (answer := await self._packet(timeouts.first_byte)).startswith(("40", "44")):
                pass
        if answer.startswith("44"):
            packet = self._parsed(answer[2:] or "null")
            reason = self._upstream.redactor.quote(packet.get("message") if isinstance(packet, dict) else packet)
            raise BackendFailed(f"{self._upstream.name} refused the connection: {reason}")

    async def emit(self, event: str, body: JsonObject) -> int:
        """Send an event; returns the number that its acknowledgement will have, if there will be one."""
        self._numbers += 1
        await self._send(f"42{self._numbers}{orjson.dumps([event, body], option=orjson.OPT_NON_STR_KEYS).decode()}")
        return self._numbers

    async def receive(self, seconds: float) -> ParsedFrame | Acknowledgement:
        """The next event or acknowledgement; `TimedOut` if none comes within so many seconds."""
        async with self._within(seconds):
            while True:
                packet = await self._packet(min(self._upstream.timeouts.idle, self._silence))
                if (received := self._read(packet)) is not None:
                    return received

    # -- packets --------------------------------------------------------------------------------------------------

    def _read(self, packet: str) -> ParsedFrame | Acknowledgement | None:
        """An event or an acknowledgement; None for any other packet."""
        if packet.startswith(("1", "41", "44")):
            raise ConnectionLost(f"{self._upstream.name} ended the connection")
        if not packet.startswith(("42", "43")):
            return None
        found = _PACKET.match(packet, 2)
        assert found is not None
        namespace, number = found.groups()
        body = self._parsed(packet[found.end():])
        if namespace not in (None, "/"):
            return None
        if not isinstance(body, list):
            raise BackendFailed(f"{self._upstream.name} sent a packet that is not a list")
        if packet.startswith("43"):
            return Acknowledgement(int(number or 0), body[0] if body else None)
        if not body or not isinstance(body[0], str):
            raise BackendFailed(f"{self._upstream.name} sent an event without a name")
        return ParsedFrame(body[0], body[1] if len(body) > 1 else None)

    async def _packet(self, seconds: float) -> str:
        """The next packet; a ping is answered and passed over."""
        while True:
            try:
                packet = await asyncio.wait_for(self.transport.receive(), seconds)
            except TimeoutError:
                raise self._silent(seconds) from None
            if not packet.startswith("2"):
                return packet
            await self._send(f"3{packet[1:]}")

    def _silent(self, seconds: float) -> GatewayError:
        if seconds < self._upstream.timeouts.idle:
            return ConnectionLost(f"{self._upstream.name} stopped sending pings")
        return TimedOut(f"{self._upstream.name} has sent nothing for {seconds:g} seconds")

    async def _send(self, packet: str) -> None:
        try:
            await asyncio.wait_for(self.transport.send(packet), self._upstream.timeouts.idle)
        except TimeoutError:
            raise TimedOut(f"{self._upstream.name} does not read") from None

    def _parsed(self, text: str) -> object:
        try:
            return read_exact_json(text)
        except orjson.JSONDecodeError:
            raise BackendFailed(f"{self._upstream.name} sent something that is not JSON") from None

    @asynccontextmanager
    async def _within(self, seconds: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                yield
        except TimeoutError:
            raise TimedOut(f"{self._upstream.name} did not answer in time") from None


def _read_seconds(handshake: JsonObject, key: str) -> float:
    value = handshake.get(key)
    return max(0.0, value / 1000) if isinstance(value, int | float) else 0.0
