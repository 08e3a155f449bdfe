"""A loop that fails is reported and runs again; a loop that returns, or is cancelled, does not."""

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

from gateway.supervision import exception_of, keep_running, take_error


async def test_a_loop_runs_until_it_returns_whatever_it_raises_before() -> None:
    runs, errors = list[int](), list[BaseException]()

    async def loop() -> None:
        runs.append(len(runs))
        if len(runs) < 3:
            raise KeyError(len(runs))

    await keep_running(loop, errors.append)
    assert runs == [0, 1, 2]
    assert [repr(error) for error in errors] == ["KeyError(1)", "KeyError(2)"]


async def test_what_work_raises_is_returned() -> None:
    async def fail() -> None:
        raise ValueError("no")

    async def succeed() -> None:
        await asyncio.sleep(0)

    assert isinstance(await exception_of(fail()), ValueError)
    assert await exception_of(succeed()) is None


async def test_who_cancels_it_cancels_the_loop_and_waits_for_its_end() -> None:
    begun, ended = asyncio.Event(), list[str]()

    async def loop() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("cleaned up")

    task = asyncio.create_task(keep_running(loop, lambda error: None))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["cleaned up"]


# -- tasks that several wait for --------------------------------------------------------------------------------------

async def fail_after(begun: asyncio.Event) -> None:
    await begun.wait()
    raise ConnectionError("nobody waits for this")


async def complaints(callbacks: list[Callable[["asyncio.Future[Any]"], None]]) -> list[str]:
    """What asyncio reports of a shielded task that fails after the only one that waited was cancelled."""
    reported, loop, begun = list[str](), asyncio.get_running_loop(), asyncio.Event()
    loop.set_exception_handler(lambda loop, found: reported.append(str(found["exception"])))
    task = asyncio.ensure_future(fail_after(begun))
    for callback in callbacks:
        task.add_done_callback(callback)
    waiter = asyncio.ensure_future(asyncio.wait_for(asyncio.shield(task), None))
    await asyncio.sleep(0)
    waiter.cancel()
    await asyncio.wait([waiter])
    begun.set()
    await asyncio.wait([task])
    await asyncio.sleep(0)
    del task, waiter
    gc.collect()
    return reported


async def test_an_error_that_nobody_waits_for_is_not_reported() -> None:
    assert await complaints([]) == ["nobody waits for this"], "asyncio reports it otherwise"
    assert await complaints([take_error]) == []


async def test_who_waits_gets_the_error() -> None:
    begun = asyncio.Event()
    task = asyncio.ensure_future(fail_after(begun))
    task.add_done_callback(take_error)
    begun.set()
    with pytest.raises(ConnectionError):
        await asyncio.shield(task)


async def test_a_cancelled_task_has_no_error_to_take() -> None:
    task = asyncio.ensure_future(asyncio.Event().wait())
    task.add_done_callback(take_error)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
