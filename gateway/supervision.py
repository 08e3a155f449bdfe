"""Runs work that may fail without ending its caller: a failure is returned or reported, whatever was raised."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


async def exception_of(work: Coroutine[object, None, None]) -> BaseException | None:
    """Do the work in a task of its own; return what it raised, None if it came to its end."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise
    return task.exception()


async def keep_running(
    loop: Callable[[], Coroutine[object, None, None]], failed: Callable[[BaseException], None],
) -> None:
    """Run the loop until it returns; if it raises something, call `failed` and run it again."""
    while (error := await exception_of(loop())) is not None:
        failed(error)


def take_error(task: "asyncio.Future[Any]") -> None:
    """A callback for a task that clients wait for behind a shield: if all of them leave, its error is not reported."""
    if not task.cancelled():
        task.exception()
