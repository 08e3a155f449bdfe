"""Keeps a loop of the server running: a failure is reported, and the loop is started again."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


async def keep_running(
    loop: Callable[[], Coroutine[Any, Any, None]], failed: Callable[[BaseException], None],
) -> None:
    """Run the loop until it returns; if it raises something, call `failed` and run it again."""
    while True:
        task = asyncio.create_task(loop())
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise
        error = task.exception()
        if error is None:
            return
        failed(error)
