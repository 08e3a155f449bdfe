"""The published Socket.IO server, without the work that it does for binary events and for rooms of many."""

from typing import Any

import socketio  # type: ignore[import-untyped]
from engineio.packet import MESSAGE  # type: ignore[import-untyped]
from engineio.packet import Packet as Envelope
from socketio.packet import EVENT, Packet  # type: ignore[import-untyped]


class TextPacket(Packet):  # type: ignore[misc]
    """A packet in whose body nobody looks for bytes: Blade has none."""

    uses_binary_events = False


class Rooms(socketio.AsyncManager):  # type: ignore[misc]
    """Queues an event for everybody in a room at once, where the library makes a task for each of them."""

    async def emit(self, event: str, data: Any, namespace: str, room: Any = None, **more: Any) -> None:
        if namespace in self.rooms:
            body = TextPacket(EVENT, namespace=namespace, data=[event] if data is None else [event, data]).encode()
            for _, receiver in list(self.get_participants(namespace, room)):
                await self.server._send_eio_packet(receiver, Envelope(MESSAGE, body))


def socket_server(kind: type[socketio.AsyncServer] = socketio.AsyncServer, **settings: Any) -> Any:
    """A Socket.IO server for applications of aiohttp, to be asked from any origin."""
    usual = {"async_mode": "aiohttp", "cors_allowed_origins": "*", "serializer": TextPacket}
    return kind(client_manager=Rooms(), **usual | settings)
