"""Packets by asking again and again, for servers and proxies that take no websockets."""

import asyncio
from contextlib import suppress

import aiohttp
import orjson

from gateway.errors import BackendFailed, GatewayError
from gateway.upstream import Cut

from .remote_place import GOODBYE, MOST, Place, border, refusal

SEPARATOR = "\x1e"
AT_HAND = 1000
"""So many packets that nobody has taken; then the server is not asked for more."""
FORGOTTEN = frozenset((400, 404, 410))
"""What a server answers to who was connected, and is not any more."""
HEADERS = {"Content-Type": "text/plain;charset=UTF-8"}


class Polling:
    """A carrier of packets; make one with `open`. It is always asking, so that who stops waiting misses nothing."""

    def __init__(self, session: aiohttp.ClientSession, place: Place) -> None:
        self._session, self._name = session, place.name
        self._url = place.url.update_query(transport="polling")
        self._patience = place.patience
        self._packets: asyncio.Queue[str | GatewayError] = asyncio.Queue(AT_HAND)
        self._sending = asyncio.Lock()
        self._asking: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, session: aiohttp.ClientSession, place: Place) -> "Polling":
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
            async with asyncio.timeout(GOODBYE):
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
        data, headers = (None, None) if packet is None else (packet.encode(), HEADERS)
        with border(self._name):
            async with self._session.request(method, self._url, data=data, headers=headers, timeout=timeout) as answer:
                if answer.status != 200:
                    raise self._refusal(answer.status)
                return self._read(await self._whole(answer)) if packet is None else []

    def _refusal(self, status: int) -> GatewayError:
        if "sid" in self._url.query and status in FORGOTTEN:
            return Cut(f"{self._name} ended the connection")
        return refusal(self._name, status, "polling")

    async def _whole(self, answer: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for chunk in answer.content.iter_any():
            body += chunk
            if len(body) > MOST:
                raise BackendFailed(f"{self._name} sent more than {MOST} bytes at once")
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
