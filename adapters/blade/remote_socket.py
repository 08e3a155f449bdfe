"""One Socket.IO connection to somebody's server: a websocket, its greetings, and the packets on it; every wait ends."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson
from msgspec import Struct
from yarl import URL

from gateway.errors import BackendFailed, GatewayError, Overloaded, RateLimited, TimedOut
from gateway.upstream import Cut, Frame, Patience, Unreachable, hidden

MOST = 32 * 1024 * 1024
"""A packet may have so many bytes."""
GOODBYE = 2.0
"""How long a server may take to say goodbye."""
_BUSY = frozenset((500, 502, 503, 504))
_PACKET = re.compile(r"(?:(/[^,]*),)?(\d{1,15})?")


class Ack(Struct, frozen=True):
    """A server's answer to one of the things we said."""

    number: int
    body: Any


@dataclass(frozen=True)
class Place:
    """Where the socket is, as whom we come, and how patient we are."""

    url: URL
    key: str
    patience: Patience
    secrets: tuple[str, ...] = ()
    """What else must not come back from there."""

    @property
    def name(self) -> str:
        return f"{self.url.scheme}://{self.url.authority.rpartition('@')[2]}"

    def told(self, words: Any) -> str:
        """A server's words, without our secrets and not too many of them."""
        return self.without_secrets(" ".join(str(words).split()))[:500]

    def without_secrets(self, words: str) -> str:
        return hidden(words, (self.key, *self.secrets))


async def stay(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """A server that points elsewhere is not followed: the key is meant for this one."""
    response = await handler(request)
    if 300 <= response.status < 400:
        response.close()
        raise BackendFailed(f"{request.url.origin()} answered {response.status} and points elsewhere; "
                            "that is not followed")
    return response


class Line:
    """A connection on which we were let in."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, place: Place) -> None:
        self._socket, self._place = socket, place
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
                self._silence = _seconds(told, "pingInterval") + _seconds(told, "pingTimeout") or self._silence
            auth = orjson.dumps({"token": self._place.key}).decode() if self._place.key else ""
            await self._send(f"40{auth}")
            while not (answer := await self._packet(patience.first_byte)).startswith(("40", "44")):
                pass
        if answer.startswith("44"):
            told = self._parsed(answer[2:] or "null")
            words = told.get("message") if isinstance(told, dict) else told
            raise BackendFailed(f"{self._place.name} does not let us in: {self._place.told(words)}")

    async def emit(self, event: str, body: dict[str, Any]) -> int:
        """Say something; the number is that of the acknowledgement, if there will be one."""
        self._numbers += 1
        await self._send(f"42{self._numbers}{orjson.dumps([event, body], option=orjson.OPT_NON_STR_KEYS).decode()}")
        return self._numbers

    async def receive(self, seconds: float) -> Frame | Ack:
        """The next event or acknowledgement; `TimedOut` if the server leaves us waiting for so long."""
        async with self._within(seconds):
            while True:
                packet = await self._packet(min(self._place.patience.idle, self._silence))
                if (heard := self._read(packet)) is not None:
                    return heard

    # -- packets --------------------------------------------------------------------------------------------------

    def _read(self, packet: str) -> Frame | Ack | None:
        """An event or an acknowledgement; None for what says nothing to us."""
        if packet.startswith(("1", "41", "44")):
            raise Cut(f"{self._place.name} ended the connection")
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
            return Ack(int(number or 0), body[0] if body else None)
        if not body or not isinstance(body[0], str):
            raise BackendFailed(f"{self._place.name} sent an event without a name")
        return Frame(body[0], body[1] if len(body) > 1 else None)

    async def _packet(self, seconds: float) -> str:
        """The next packet; what keeps the connection alive is answered and passed over."""
        while True:
            try:
                message = await asyncio.wait_for(self._socket.receive(), seconds)
            except TimeoutError:
                raise self._silent(seconds) from None
            if message.type is aiohttp.WSMsgType.TEXT:
                said = str(message.data)
                if not said.startswith("2"):
                    return said
                await self._send(f"3{said[1:]}")
            elif message.type is aiohttp.WSMsgType.ERROR:
                raise BackendFailed(f"{self._place.name} does not keep to the rules of websockets ({message.data})")
            elif message.type is not aiohttp.WSMsgType.BINARY:
                raise Cut(f"the connection to {self._place.name} broke")

    def _silent(self, seconds: float) -> GatewayError:
        if seconds < self._place.patience.idle:
            return Cut(f"{self._place.name} has fallen silent")
        return TimedOut(f"{self._place.name} has said nothing for {seconds:g} seconds")

    async def _send(self, packet: str) -> None:
        try:
            await asyncio.wait_for(self._socket.send_str(packet), self._place.patience.idle)
        except TimeoutError:
            raise TimedOut(f"{self._place.name} takes nothing") from None
        except (aiohttp.ClientError, ConnectionError):
            raise Cut(f"the connection to {self._place.name} broke") from None

    def _parsed(self, words: str) -> Any:
        try:
            return orjson.loads(words)
        except orjson.JSONDecodeError:
            raise BackendFailed(f"{self._place.name} sent something that is not JSON") from None

    @asynccontextmanager
    async def _within(self, seconds: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                yield
        except TimeoutError:
            raise TimedOut(f"{self._place.name} took too long") from None


@asynccontextmanager
async def connected(session: aiohttp.ClientSession, place: Place) -> AsyncIterator[Line]:
    """One attempt to be let in; the connection is over with the block."""
    socket = await _connect(session, place)
    try:
        line = Line(socket, place)
        await line.greet()
        yield line
    finally:
        await socket.close()


async def _connect(session: aiohttp.ClientSession, place: Place) -> aiohttp.ClientWebSocketResponse:
    patience, name = place.patience, place.name
    try:
        async with asyncio.timeout(patience.connect + patience.first_byte):
            return await session.ws_connect(
                place.url, max_msg_size=MOST, timeout=aiohttp.ClientWSTimeout(ws_close=GOODBYE),
            )
    except aiohttp.WSServerHandshakeError as error:
        raise _refusal(name, error) from None
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError) as error:
        raise BackendFailed(f"{name}: its certificate does not verify ({type(error).__name__})") from None
    except (TimeoutError, aiohttp.ServerTimeoutError):
        raise TimedOut(f"{name} took too long to answer") from None
    except aiohttp.ClientConnectorError as error:
        raise Unreachable(f"{name} cannot be reached ({error.os_error.strerror or 'no connection'})") from None
    except (aiohttp.ClientError, ConnectionError) as error:
        raise Cut(f"the connection to {name} broke ({type(error).__name__})") from None


def _refusal(name: str, error: aiohttp.WSServerHandshakeError) -> GatewayError:
    kind = RateLimited if error.status == 429 else Overloaded if error.status in _BUSY else BackendFailed
    if error.status == 101:
        return BackendFailed(f"{name} does not speak websocket as it should ({error.message})")
    return kind(f"{name} answered {error.status} to a websocket", details={"upstream_status": error.status})


def _seconds(told: dict[str, Any], key: str) -> float:
    value = told.get(key)
    return max(0.0, value / 1000) if isinstance(value, int | float) else 0.0
