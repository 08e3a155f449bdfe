"""Agents that others have taken the place of: each is closed when the last turn that it runs is over."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

from gateway.ports import Backend

LOOK_SECONDS = 1.0
"""How often a retired agent is asked whether it has done."""


class Retiring:
    def __init__(self, is_busy: Callable[[Backend], bool]) -> None:
        self._is_busy = is_busy
        self._waiting: dict[asyncio.Task[None], Backend] = {}

    def retire(self, backends: Iterable[Backend]) -> None:
        for backend in backends:
            task = asyncio.get_running_loop().create_task(self._close_when_done(backend))
            self._waiting[task] = backend
            task.add_done_callback(self._waiting.pop)

    async def close(self) -> None:
        """Close those that are left, whatever they do."""
        for task, backend in list(self._waiting.items()):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await backend.close()

    async def _close_when_done(self, backend: Backend) -> None:
        while self._is_busy(backend):  # noqa: ASYNC110  # nobody tells when a turn of one agent among others is over
            await asyncio.sleep(LOOK_SECONDS)
        await asyncio.shield(backend.close())
