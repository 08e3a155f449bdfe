"""What a server that drains waits for: turns that run, here or elsewhere; no longer than it may, and not in a hurry."""

import asyncio
from collections.abc import Coroutine

from .session_cache import SessionTable
from .streams import Hub

DRAIN_POLL_SECONDS = 0.25
"""How often the server looks whether turns still run."""


async def wait_for_turns(table: SessionTable, hub: Hub, seconds: float, hurry: asyncio.Event) -> None:
    """Wait until no turn runs here, and none elsewhere that is watched here, for so many seconds at most.

    A turn that waits for people does not run.
    """
    clock = asyncio.get_running_loop().time
    end = clock() + seconds
    while (left := end - clock()) > 0 and not hurry.is_set():
        works = [run.wait_finished(left) for run in table.running_turns()]
        if table.runs_elsewhere(hub.watched):
            works.append(hub.wait_until_unwatched())
        if not works:
            return
        await wait_unless_forced(hurry, min(left, DRAIN_POLL_SECONDS), *works)


async def wait_unless_forced(hurry: asyncio.Event, seconds: float, *works: Coroutine[object, None, None]) -> None:
    """Wait for all works, for so many seconds at most, and not at all once `hurry` is set."""
    async def all_done() -> None:
        await asyncio.gather(*works)

    waits = [asyncio.ensure_future(all_done()), asyncio.ensure_future(hurry.wait())]
    await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for waiting in waits:
        waiting.cancel()
    await asyncio.wait(waits)
