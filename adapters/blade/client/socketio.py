"""One Socket.IO connection to somebody's server: its greetings, and the packets on it; every wait ends."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

import aiohttp
import orjson
from msgspec import Struct

from gateway.errors import BackendFailed, ConnectionLost, GatewayError, TimedOut
from gateway.json_values import read_exact_json
from gateway.ports import ParsedFrame

from .transports import Endpoint, PollingTransport, WebsocketRefused, WebsocketTransport

_PACKET = re.compile(r"(?:(/[^,]*),)?(\d{1,15})?")


class Acknowledgement(Struct, frozen=True):
    """A server's answer to one of the things we said."""

    number: int
    body: Any


class Transport(Protocol):
    """Packets both ways, however they travel; what goes wrong is a `GatewayError`."""

    async def receive(self) -> str: ...
    async def send(self, packet: str) -> None: ...
    async def close(self) -> None: ...


class SocketioConnection:
    """A connection on which we were let in."""

    def __init__(self, carrier: Transport, place: Endpoint) -> None:
        self._carrier, self._place = carrier, place
        self._numbers = 0
        self._silence = place.patience.idle
        """A server that is alive is never silent for so long: it says when it will ask whether we are."""

    async def greet(self) -> None:
        """Who is there, and who comes."""
        patience = self._place.patience
        async with self._within(patience.first_byte):
            while not (opened := await self._packet(patience.first_byte)).startswith("0"):
                pass
            told = self._parsed(opened[1:])
            if isinstance(told, dict):
                self._silence = (
                    _read_seconds(told, "pingInterval") + _read_seconds(told, "pingTimeout") or self._silence
                )
            auth = orjson.dumps({"token": self._place.key}).decode() if self._place.key else ""
            await self._send(f"40{auth}")
            while not (answer := await self._packet(patience.first_byte)).startswith(("40", "44")):
                pass
        if answer.startswith("44"):
            told = self._parsed(answer[2:] or "null")
            words = told.get("message") if isinstance(told, dict) else told
            raise BackendFailed(f"{self._place.name} refused the connection: {self._place.quoted(words)}")

    async def emit(self, event: str, body: dict[str, Any]) -> int:
        """Say something; the number is that of the acknowledgement, if there will be one."""
        self._numbers += 1
        await self._send(f"42{self._numbers}{orjson.dumps([event, body], option=orjson.OPT_NON_STR_KEYS).decode()}")
        return self._numbers

    async def receive(self, seconds: float) -> ParsedFrame | Acknowledgement:
        """The next event or acknowledgement; `TimedOut` if the server leaves us waiting for so long."""
        async with self._within(seconds):
            while True:
                packet = await self._packet(min(self._place.patience.idle, self._silence))
                if (heard := self._read(packet)) is not None:
                    return heard

    # -- packets --------------------------------------------------------------------------------------------------

    def _read(self, packet: str) -> ParsedFrame | Acknowledgement | None:
        """An event or an acknowledgement; None for what says nothing to us."""
        if packet.startswith(("1", "41", "44")):
            raise ConnectionLost(f"{self._place.name} ended the connection")
        if not packet.startswith(("42", "43")):
            return None
        found = _PACKET.match(packet, 2)
        assert found is not None
        room, number = found.groups()
        body = self._parsed(packet[found.end():])
        if room not in (None, "/"):
            return None
        if not isinstance(body, list):
            raise BackendFailed(f"{self._place.name} sent a packet that is no list")
        if packet.startswith("43"):
            return Acknowledgement(int(number or 0), body[0] if body else None)
        if not body or not isinstance(body[0], str):
            raise BackendFailed(f"{self._place.name} sent an event without a name")
        return ParsedFrame(body[0], body[1] if len(body) > 1 else None)

    async def _packet(self, seconds: float) -> str:
        """The next packet; what keeps the connection alive is answered and passed over."""
        while True:
            try:
                said = await asyncio.wait_for(self._carrier.receive(), seconds)
            except TimeoutError:
                raise self._silent(seconds) from None
            if not said.startswith("2"):
                return said
            await self._send(f"3{said[1:]}")

    def _silent(self, seconds: float) -> GatewayError:
        if seconds < self._place.patience.idle:
            return ConnectionLost(f"{self._place.name} stopped sending pings")
        return TimedOut(f"{self._place.name} has said nothing for {seconds:g} seconds")

    async def _send(self, packet: str) -> None:
        try:
            await asyncio.wait_for(self._carrier.send(packet), self._place.patience.idle)
        except TimeoutError:
            raise TimedOut(f"{self._place.name} does not read") from None

    def _parsed(self, words: str) -> Any:
        try:
            return read_exact_json(words)
        except orjson.JSONDecodeError:
            raise BackendFailed(f"{self._place.name} sent something that is not JSON") from None

    @asynccontextmanager
    async def _within(self, seconds: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                yield
        except TimeoutError:
            raise TimedOut(f"{self._place.name} did not answer in time") from None


@asynccontextmanager
async def connect(session: aiohttp.ClientSession, place: Endpoint) -> AsyncIterator[SocketioConnection]:
    """One attempt to be let in; the connection is over with the block."""
    carrier = await _open_transport(session, place)
    try:
        line = SocketioConnection(carrier, place)
        await line.greet()
        yield line
    finally:
        await carrier.close()


async def _open_transport(session: aiohttp.ClientSession, place: Endpoint) -> Transport:
    """A websocket where the server takes one; what it takes is found out once."""
    if not place.way.is_polled:
        with suppress(WebsocketRefused):
            return await WebsocketTransport.open(session, place)
    carrier = await PollingTransport.open(session, place)
    place.way.is_polled = True
    return carrier


def _read_seconds(told: dict[str, Any], key: str) -> float:
    value = told.get(key)
    return max(0.0, value / 1000) if isinstance(value, int | float) else 0.0
