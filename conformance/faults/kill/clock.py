"""A loop whose clock stands still while there is work and jumps to the next timer when there is none.

Servers and examiners run in one loop over real sockets, so what one of them has sent is there at the next look: a wait
that is in vain costs no time, and a busy machine makes nobody late.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
GRACE = 0.001
"""Seconds for which the sockets are watched before the clock jumps."""


class _WatchfulSelector(selectors.DefaultSelector):
    """Tells how far the clock is to jump where nothing has come."""

    now = 0.0
    threads = 0
    """How many calls run in threads: the clock stands still until they are back."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found or timeout == 0:
            return found
        if timeout is None or self.threads:
            return super().select(timeout)
        found = super().select(GRACE)
        if not found:
            self.now += timeout
        return found


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop in which waiting takes no time."""

    def __init__(self) -> None:
        self._watchful = _WatchfulSelector()
        super().__init__(self._watchful)

    def time(self) -> float:
        return self._watchful.now

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        self._watchful.threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._came_back)
        return future

    def _came_back(self, future: asyncio.Future[Any]) -> None:
        self._watchful.threads -= 1


def run_jumping(work: Coroutine[Any, Any, T]) -> T:
    """Run the work in such a loop."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(work)
