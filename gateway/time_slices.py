"""Long work in short slices: between two slices the event loop serves everybody else.

Work that grows with data is not done at once. Whoever does it asks for a turn before each slice of it; in one step of
the loop one turn is given, however many work at the same time, and to whoever has waited longest.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

T = TypeVar("T")

SLICE_ITEMS = 128
"""How many things of some microseconds each are done in one slice."""
SLICE_BYTES = 512 * 1024
"""How many bytes are encoded, decoded or written in one slice."""


class _SliceQueue:
    """Those who wait for a turn on one loop, and those of whom only one at a time may do long work."""

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
        """Let one go on in the next step of the loop, and look again in that step."""
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
    """Wait for the time of one slice; call it before each slice of long work."""
    await _slice_queue().turn()


async def sliced(items: Sequence[T], size: int = SLICE_ITEMS) -> AsyncIterator[Sequence[T]]:
    """The items in slices, each in a turn of its own; what fits into one slice waits for nobody."""
    for start in range(0, len(items), size):
        if len(items) > size:
            await next_slice()
        yield items[start:start + size]


async def run_in_slices(steps: Generator[None, None, T]) -> T:
    """What comes of work that yields after each step, with a turn for each step but the first."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
        await next_slice()


@asynccontextmanager
async def one_at_a_time(name: str) -> AsyncIterator[None]:
    """Do long work of this name while nobody else does: what it holds in memory is held once."""
    queue = _slice_queue()
    lock = queue.locks.get(name)
    if lock is None:
        lock = queue.locks[name] = asyncio.Lock()
    async with lock:
        yield
