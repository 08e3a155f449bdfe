"""Divides long work into slices, between which the event loop serves other requests.

Work that grows with data asks for a slice before each part. One slice is given per step of the loop, however many tasks
work at the same time, and the task that has waited longest gets it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

T = TypeVar("T")

SLICE_ITEMS = 128
"""The number of items of some microseconds each that are done in one slice."""
SLICE_BYTES = 512 * 1024
"""The number of bytes that are encoded, decoded or written in one slice."""


class _SliceQueue:
    """The tasks that wait for a slice on one loop, and the locks of long work."""

    def __init__(self) -> None:
        self.locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._gives = False

    async def turn(self) -> None:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiting.append(waiter)
        if not self._gives:
            self._gives = True
            loop.call_soon(self._give, loop)
        await waiter

    def _give(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let one task continue in the next step of the loop, then look again."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                loop.call_soon(self._give, loop)
                return
        self._gives = False


_QUEUES: WeakKeyDictionary[asyncio.AbstractEventLoop, _SliceQueue] = WeakKeyDictionary()


def _slice_queue() -> _SliceQueue:
    loop = asyncio.get_running_loop()
    found = _QUEUES.get(loop)
    if found is None:
        found = _QUEUES[loop] = _SliceQueue()
    return found


async def next_slice() -> None:
    """Wait for one slice; call it before each slice of long work."""
    await _slice_queue().turn()


async def sliced(items: Sequence[T], size: int = SLICE_ITEMS) -> AsyncIterator[Sequence[T]]:
    """Yield the items in slices; a list that fits into one slice does not wait."""
    for start in range(0, len(items), size):
        if len(items) > size:
            await next_slice()
        yield items[start:start + size]


async def run_in_slices(steps: Generator[None, None, T]) -> T:
    """Run work that yields after each step, with one slice per step after the first, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
        await next_slice()


@asynccontextmanager
async def one_at_a_time(name: str) -> AsyncIterator[None]:
    """Hold the lock of this name: only one task at a time does this long work, so that its memory is used once."""
    queue = _slice_queue()
    lock = queue.locks.get(name)
    if lock is None:
        lock = queue.locks[name] = asyncio.Lock()
    async with lock:
        yield
