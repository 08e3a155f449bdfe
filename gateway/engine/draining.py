"""How long a server that stops waits: until nothing runs, no longer than it was told to, and not in a hurry."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from .turn import TurnRun

LOOK_SECONDS = 0.25
"""How often to look whether turns still run that the server waits for."""


async def silence(talking: Callable[[], Iterable[TurnRun]], seconds: float, hurry: asyncio.Event) -> None:
    """Wait until no turn runs, for so long; one that has come to wait for people does not count any more."""
    clock = asyncio.get_running_loop().time
    end = clock() + seconds
    while (runs := list(talking())) and (left := end - clock()) > 0 and not hurry.is_set():
        await unless(hurry, min(left, LOOK_SECONDS), *(run.gone(left) for run in runs))


async def unless(hurry: asyncio.Event, seconds: float, *works: Coroutine[Any, Any, None]) -> None:
    """Wait for all of these, but no longer than that, and not at all once somebody is in a hurry."""
    async def all_done() -> None:
        await asyncio.gather(*works)

    waits = [asyncio.ensure_future(all_done()), asyncio.ensure_future(hurry.wait())]
    await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for waiting in waits:
        waiting.cancel()
    await asyncio.wait(waits)
