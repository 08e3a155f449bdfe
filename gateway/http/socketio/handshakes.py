"""Limits clients of Socket.IO that have not shown a key yet."""

import asyncio
from collections.abc import Callable, Coroutine

from gateway.http.security import GetConnectionLimits, UnauthenticatedClients
from gateway.logging import SampledLogger

MAX_HANDSHAKE_BYTES = 64 * 1024
"""The number of bytes that a client may send before its key: a CONNECT packet has a key and little else."""
MAX_HANDSHAKE_PACKETS = 16
"""The number of packets that a client may send before its key."""
CONNECT_PACKET = "0"


class PendingHandshakes:
    """The transports of unknown clients; each has a deadline, and the oldest is closed for one too many."""

    def __init__(
        self, limits: GetConnectionLimits, cut: Callable[[str], Coroutine[object, None, None]], sampled: SampledLogger,
    ) -> None:
        self._limits = limits
        self._cut = cut
        self._sampled = sampled
        self._room = UnauthenticatedClients[str](limits)
        self._deadlines: dict[str, asyncio.TimerHandle] = {}
        self._packets: dict[str, int] = {}
        self._cutting: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._deadlines)

    def __contains__(self, transport_id: str) -> bool:
        return transport_id in self._deadlines

    def begin(self, transport_id: str, address: str) -> None:
        self.end(transport_id)
        oldest = self._room.add(transport_id, address)
        seconds = self._limits().handshake_seconds
        later = asyncio.get_running_loop().call_later
        self._deadlines[transport_id] = later(seconds, self._refuse, transport_id, "handshake_seconds")
        self._packets[transport_id] = 0
        if oldest is not None:
            self._refuse(oldest, "max_unauthenticated")

    def end(self, transport_id: str) -> None:
        """Forget a transport: its client is authenticated or has disconnected."""
        self._room.discard(transport_id)
        self._packets.pop(transport_id, None)
        if (deadline := self._deadlines.pop(transport_id, None)) is not None:
            deadline.cancel()

    def accepts_packet(self, transport_id: str, packet: str | bytes) -> bool:
        """Say whether to read a packet: an unknown client may only send CONNECT, and only a few times."""
        if transport_id not in self._deadlines:
            return True
        self._packets[transport_id] += 1
        if self._packets[transport_id] > MAX_HANDSHAKE_PACKETS:
            self._refuse(transport_id, "too many packets")
            return False
        return isinstance(packet, str) and packet.startswith(CONNECT_PACKET)

    def _refuse(self, transport_id: str, reason: str) -> None:
        self._sampled.info("socketio_client_cut", reason=reason)
        self.end(transport_id)
        task = asyncio.create_task(self._cut(transport_id), name=f"cut {transport_id}")
        self._cutting.add(task)
        task.add_done_callback(self._cutting.discard)
