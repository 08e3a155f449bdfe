"""A loop that fails is reported and runs again; a loop that returns, or is cancelled, does not."""

import asyncio

import pytest

from gateway.supervision import exception_of, keep_running


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
