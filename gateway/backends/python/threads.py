"""Threads for functions that may block: a bounded number, one to a turn, and none that keeps the server from ending."""

import asyncio
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal

from gateway.errors import Overloaded

from .pipe import tell

WAIT_SECONDS = 10.0
"""How long a turn waits for a thread to become free."""


class Result:
    """How a piece of work ended; as a context manager it takes whatever is raised."""

    value: Any = None
    error: BaseException | None = None

    def __enter__(self) -> "Result":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None,
    ) -> Literal[True]:
        self.error = error
        return True


class Threads:
    """So many at most; a thread that hangs counts until it ends."""

    def __init__(self, most: int, *, wait_seconds: float = WAIT_SECONDS) -> None:
        self._most, self._free, self._wait_seconds = most, asyncio.Semaphore(most), wait_seconds

    async def run(self, work: Callable[[], Any], name: str, halt: Callable[[], None]) -> Any:
        """What the work gives or raises. Cancelled, it has the work halted and waits; cancelled again, it does not."""
        await self._acquire()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Result] = loop.create_future()
        done.add_done_callback(lambda _: self._free.release())

        def carry_out() -> None:
            result = Result()
            with result:
                result.value = work()
            tell(loop, done, result)

        # A daemon: what hangs is no reason for the server to stay.
        _start(threading.Thread(target=carry_out, name=name, daemon=True), done)
        try:
            result = await asyncio.shield(done)
        except asyncio.CancelledError:
            halt()
            await asyncio.wait([done])
            raise
        if result.error is not None:
            raise result.error
        return result.value

    async def _acquire(self) -> None:
        try:
            async with asyncio.timeout(self._wait_seconds):
                await self._free.acquire()
        except TimeoutError:
            raise Overloaded(f"All {self._most} threads of the agent are at work.") from None


def _start(thread: threading.Thread, done: "asyncio.Future[Result]") -> None:
    try:
        thread.start()
    except RuntimeError as error:  # the system has no more
        done.cancel()
        raise Overloaded("No thread could be started for the agent.") from error
