"""Keeps an agent running: started with the first prompt, anew after it died, and not too often."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

import structlog

from gateway.errors import GatewayError, Overloaded
from gateway.ports import Clock

log = structlog.get_logger("dragoman.acp")

MINUTE = 60.0


class Kept(Protocol):
    """Something that runs, and may break."""

    @property
    def broken(self) -> GatewayError | None: ...
    async def close(self) -> None: ...


Running = TypeVar("Running", bound=Kept)


class Keeper(Generic[Running]):
    """One at a time; whoever comes while it is being started waits for the same one."""

    def __init__(self, start: Callable[[], Awaitable[Running]], per_minute: int, clock: Clock = time.monotonic) -> None:
        self._start, self._per_minute, self._clock = start, per_minute, clock
        self._starts: deque[float] = deque(maxlen=per_minute)
        self._running: Running | None = None
        self._why = ""
        self._lock = asyncio.Lock()

    @property
    def running(self) -> Running | None:
        """The one that runs; none is started."""
        return self._running if self._running is not None and self._running.broken is None else None

    async def ready(self) -> Running:
        """The one that runs, or a new one in the place of one that broke."""
        async with self._lock:
            if self.running is not None:
                return self.running
            await self._end()
            self._count()
            try:
                self._running = await self._start()
            except GatewayError as error:
                self._why = error.message
                raise
            log.info("the agent was started", process=getattr(self._running, "pid", None))
            return self._running

    async def close(self) -> None:
        async with self._lock:
            await self._end()

    async def _end(self) -> None:
        ended, self._running = self._running, None
        if ended is not None:
            self._why = ended.broken.message if ended.broken is not None else ""
            await ended.close()

    def _count(self) -> None:
        now = self._clock()
        if len(self._starts) == self._per_minute and (left := self._starts[0] + MINUTE - now) > 0:
            raise Overloaded(
                f"the agent was started {self._per_minute} times within a minute and is left alone for a while"
                f"{f'; the last time: {self._why}' if self._why else ''}",
                details={"retry_after": max(1, round(left))},
            )
        self._starts.append(now)
