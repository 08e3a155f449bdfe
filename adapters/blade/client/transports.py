"""A server's socket: where it is, as whom we come, how patient we are, and what its refusals mean.

Packets by asking again and again, for servers and proxies that take no websockets.
Packets over a websocket, which most servers take.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson
from yarl import URL

from gateway.client import Redactor, status_details
from gateway.errors import (
    BackendFailed,
    ConnectionLost,
    GatewayError,
    Overloaded,
    RateLimited,
    ServerUnreachable,
    TimedOut,
)
from gateway.ports import Timeouts

MAX_PACKET_BYTES = 32 * 1024 * 1024
"""A packet may have so many bytes."""
CLOSE_SECONDS = 2.0
"""How long a server may take to say goodbye."""
_BUSY = frozenset((500, 502, 503, 504))


@dataclass(slots=True)
class TransportChoice:
    """What was found out about the way to a server."""

    is_polled: bool = False
    """It takes no websockets, and was reached by asking again and again."""


@dataclass(frozen=True)
class Endpoint:
    """Where the socket is, as whom we come, and how patient we are."""

    url: URL
    key: str
    patience: Timeouts
    secrets: tuple[str, ...] = ()
    """What else must not come back from there."""
    way: TransportChoice = field(default_factory=TransportChoice)

    @property
    def name(self) -> str:
        return f"{self.url.scheme}://{self.url.authority.rpartition('@')[2]}"

    def quoted(self, words: Any) -> str:
        """A server's words, without our secrets and not too many of them."""
        return self.redactor.message(" ".join(str(words).split()))[:500]

    @property
    def redactor(self) -> Redactor:
        return Redactor((self.key, *self.secrets))


def socket_session(patience: Timeouts) -> aiohttp.ClientSession:
    """For all the sockets of one server."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=patience.connect, sock_read=patience.first_byte)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), middlewares=(reject_redirects,), timeout=timeout
    )


async def reject_redirects(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """A server that points elsewhere is not followed: the key is meant for this one."""
    response = await handler(request)
    if 300 <= response.status < 400:
        response.close()
        raise BackendFailed(f"{request.url.origin()} answered {response.status} with a redirect, "
                            "which is not followed")
    return response


@contextmanager
def connection_errors(name: str) -> Iterator[None]:
    """What aiohttp raises stops here."""
    try:
        yield
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError) as error:
        raise BackendFailed(f"{name}: its certificate does not verify ({type(error).__name__})") from None
    except (TimeoutError, aiohttp.ServerTimeoutError):
        raise TimedOut(f"{name} did not answer in time") from None
    except aiohttp.ClientConnectorError as error:
        raise ServerUnreachable(f"{name} cannot be reached ({error.os_error.strerror or 'no connection'})") from None
    except (aiohttp.ClientError, ConnectionError) as error:
        raise ConnectionLost(f"the connection to {name} broke ({type(error).__name__})") from None


def status_error(name: str, status: int, what: str) -> GatewayError:
    """What a status means that is an answer to `what`."""
    kind = RateLimited if status == 429 else Overloaded if status in _BUSY else BackendFailed
    return kind(f"{name} answered {status} to {what}", details=status_details(status))


SEPARATOR = "\x1e"
MAX_QUEUED_PACKETS = 1000
"""So many packets that nobody has taken; then the server is not asked for more."""
CONNECTION_GONE_STATUSES = frozenset((400, 404, 410))
"""What a server answers to who was connected, and is not any more."""
POLLING_HEADERS = {"Content-Type": "text/plain;charset=UTF-8"}


class PollingTransport:
    """A carrier of packets; make one with `open`. It is always asking, so that who stops waiting misses nothing."""

    def __init__(self, session: aiohttp.ClientSession, place: Endpoint) -> None:
        self._session, self._name = session, place.name
        self._url = place.url.update_query(transport="polling")
        self._patience = place.patience
        self._packets: asyncio.Queue[str | GatewayError] = asyncio.Queue(MAX_QUEUED_PACKETS)
        self._sending = asyncio.Lock()
        self._asking: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, session: aiohttp.ClientSession, place: Endpoint) -> "PollingTransport":
        made = cls(session, place)
        first, *more = await made._ask("GET", seconds=place.patience.first_byte)
        made._url = made._url.update_query(sid=made._named(first))
        made._asking = asyncio.create_task(made._ask_on([first, *more]), name=f"polling {place.name}")
        return made

    async def receive(self) -> str:
        packet = await self._packets.get()
        if isinstance(packet, GatewayError):
            self._packets.put_nowait(packet)  # it is broken for whoever asks next, too
            raise packet
        return packet

    async def send(self, packet: str) -> None:
        async with self._sending:
            await self._ask("POST", packet, seconds=self._patience.idle)

    async def close(self) -> None:
        """Say goodbye, if that is heard."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])
        with suppress(GatewayError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.send("1")

    async def _ask_on(self, packets: list[str]) -> None:
        try:
            while True:
                for packet in packets:
                    await self._packets.put(packet)
                packets = await self._ask("GET")
        except GatewayError as error:
            await self._packets.put(error)

    async def _ask(self, method: str, packet: str | None = None, seconds: float | None = None) -> list[str]:
        """One request; the packets in its answer. How long the server may be silent is for the reader to say."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._patience.connect, sock_read=seconds)
        data, headers = (None, None) if packet is None else (packet.encode(), POLLING_HEADERS)
        with connection_errors(self._name):
            async with self._session.request(method, self._url, data=data, headers=headers, timeout=timeout) as answer:
                if answer.status != 200:
                    raise self._refusal(answer.status)
                return self._read(await self._whole(answer)) if packet is None else []

    def _refusal(self, status: int) -> GatewayError:
        if "sid" in self._url.query and status in CONNECTION_GONE_STATUSES:
            return ConnectionLost(f"{self._name} ended the connection")
        return status_error(self._name, status, "polling")

    async def _whole(self, answer: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for chunk in answer.content.iter_any():
            body += chunk
            if len(body) > MAX_PACKET_BYTES:
                raise BackendFailed(f"{self._name} sent more than {MAX_PACKET_BYTES} bytes at once")
        return bytes(body)

    def _read(self, body: bytes) -> list[str]:
        try:
            return body.decode().split(SEPARATOR)
        except UnicodeDecodeError:
            raise BackendFailed(f"{self._name} sent something that is no text") from None

    def _named(self, opened: str) -> str:
        """The name under which the server knows us."""
        with suppress(orjson.JSONDecodeError):
            told = orjson.loads(opened[1:])
            if opened.startswith("0") and isinstance(told, dict) and isinstance(told.get("sid"), str):
                return str(told["sid"])
        raise BackendFailed(f"{self._name} takes no websockets, and does not answer polling as it should")


NO_WEBSOCKET_STATUSES = frozenset((200, 400, 403, 404, 405, 426, 501))
"""What servers and proxies answer that take no websockets; what else they may mean, they say again if polled."""


class WebsocketRefused(BackendFailed):
    """The server answered, and not with a websocket."""


class WebsocketTransport:
    """A carrier of packets; make one with `open`."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, place: Endpoint) -> None:
        self._socket, self._name = socket, place.name

    @classmethod
    async def open(cls, session: aiohttp.ClientSession, place: Endpoint) -> "WebsocketTransport":
        patience, name = place.patience, place.name
        with connection_errors(name):
            try:
                async with asyncio.timeout(patience.connect + patience.first_byte):
                    return cls(await session.ws_connect(
                        place.url.update_query(transport="websocket"), max_msg_size=MAX_PACKET_BYTES,
                        timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
                    ), place)
            except aiohttp.WSServerHandshakeError as error:
                if error.status == 101:
                    raise BackendFailed(f"{name} does not speak websocket as it should ({error.message})") from None
                if error.status in NO_WEBSOCKET_STATUSES:
                    raise WebsocketRefused(f"{name} answered {error.status} to a websocket") from None
                raise status_error(name, error.status, "a websocket") from None

    async def receive(self) -> str:
        """The next packet that is text."""
        while True:
            message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.TEXT:
                return str(message.data)
            if message.type is aiohttp.WSMsgType.ERROR:
                raise BackendFailed(f"{self._name} does not keep to the rules of websockets ({message.data})")
            if message.type is not aiohttp.WSMsgType.BINARY:
                raise ConnectionLost(f"the connection to {self._name} broke")

    async def send(self, packet: str) -> None:
        with connection_errors(self._name):
            await self._socket.send_str(packet)

    async def close(self) -> None:
        await self._socket.close()
