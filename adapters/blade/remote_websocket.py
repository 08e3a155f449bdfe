"""Packets over a websocket, which most servers take."""

import asyncio

import aiohttp

from gateway.errors import BackendFailed
from gateway.upstream import Cut

from .remote_place import GOODBYE, MOST, Place, border, refusal

UNTAKEN = frozenset((200, 400, 403, 404, 405, 426, 501))
"""What servers and proxies answer that take no websockets; what else they may mean, they say again if polled."""


class NoWebsocket(BackendFailed):
    """The server answered, and not with a websocket."""


class Websocket:
    """A carrier of packets; make one with `open`."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, place: Place) -> None:
        self._socket, self._name = socket, place.name

    @classmethod
    async def open(cls, session: aiohttp.ClientSession, place: Place) -> "Websocket":
        patience, name = place.patience, place.name
        with border(name):
            try:
                async with asyncio.timeout(patience.connect + patience.first_byte):
                    return cls(await session.ws_connect(
                        place.url.update_query(transport="websocket"), max_msg_size=MOST,
                        timeout=aiohttp.ClientWSTimeout(ws_close=GOODBYE),
                    ), place)
            except aiohttp.WSServerHandshakeError as error:
                if error.status == 101:
                    raise BackendFailed(f"{name} does not speak websocket as it should ({error.message})") from None
                if error.status in UNTAKEN:
                    raise NoWebsocket(f"{name} answered {error.status} to a websocket") from None
                raise refusal(name, error.status, "a websocket") from None

    async def receive(self) -> str:
        """The next packet that is text."""
        while True:
            message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.TEXT:
                return str(message.data)
            if message.type is aiohttp.WSMsgType.ERROR:
                raise BackendFailed(f"{self._name} does not keep to the rules of websockets ({message.data})")
            if message.type is not aiohttp.WSMsgType.BINARY:
                raise Cut(f"the connection to {self._name} broke")

    async def send(self, packet: str) -> None:
        with border(self._name):
            await self._socket.send_str(packet)

    async def close(self) -> None:
        await self._socket.close()
