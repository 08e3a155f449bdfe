"""The queue of an agent's updates in one turn: bounded in bytes, and closed by the last item."""

import asyncio
from collections import deque
from contextlib import suppress

from gateway.errors import GatewayError, Overloaded

from .wire import PermissionParams, PromptResult, RpcId, SessionUpdate

MAX_BYTES = 8 * 1024 * 1024
"""With more bytes in the queue the agent has to wait."""
MAX_BYTES_WHILE_WAITING = 64 * 1024 * 1024
"""While the turn waits for people, the agent must not block its other sessions: more fits in, then the turn fails."""


class PermissionRequest:
    """A request of the agent for permission, with its JSON-RPC id."""

    __slots__ = ("id", "wanted")

    def __init__(self, id: RpcId, wanted: PermissionParams) -> None:
        self.id, self.wanted = id, wanted


QueueItem = SessionUpdate | PermissionRequest | PromptResult | GatewayError
"""The last item is the result of the turn, or the error that ended it."""


class UpdateQueue:
    """A queue for one reader and one writer."""

    def __init__(self, most: int = MAX_BYTES, most_while_waiting: int = MAX_BYTES_WHILE_WAITING) -> None:
        self._items: deque[tuple[QueueItem, int]] = deque()
        self._size = 0
        self._most, self._most_while_waiting = most, most_while_waiting
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self.waits_for_people = False
        self.closed = asyncio.Event()
        """Set once the last item is in the queue."""

    async def put(self, item: QueueItem, size: int) -> None:
        while self._size > self._most and not self.waits_for_people and not self.closed.is_set():
            self._room.clear()
            await self._room.wait()
        if self._size > self._most_while_waiting:
            self.close(Overloaded("the agent sent too much while it waited for people"))
        if not self.closed.is_set():
            self._add(item, size)

    def close(self, last: PromptResult | GatewayError) -> None:
        """Add the last item; later ones are ignored."""
        if not self.closed.is_set():
            self._add(last, 0)
            self.closed.set()
            self._room.set()

    @property
    def empty(self) -> bool:
        return not self._items

    async def ready(self, seconds: float) -> bool:
        """Whether the queue has an item, or gets one within so many seconds."""
        if not self._items:
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._changed.wait()
        return bool(self._items)

    async def get(self) -> QueueItem:
        while not self._items:
            self._changed.clear()
            await self._changed.wait()
        item, size = self._items.popleft()
        self._size -= size
        if self._size <= self._most:
            self._room.set()
        return item

    def wait_for_people(self, waits: bool) -> None:
        self.waits_for_people = waits
        self._room.set()

    def _add(self, item: QueueItem, size: int) -> None:
        self._items.append((item, size))
        self._size += size
        self._changed.set()
