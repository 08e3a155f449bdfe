"""Work in threads: what it gives and raises comes back, and there are only so many."""

import asyncio
import threading

import pytest

from gateway.backends.python.worker import ThreadRunner
from gateway.errors import Overloaded
from tests.support.gateway_server import until


def nothing() -> None:
    pass


async def test_what_it_gives_and_raises_comes_back() -> None:
    threads = ThreadRunner(1)
    assert await threads.run(lambda: threading.current_thread().name, "mine", nothing) == "mine"
    with pytest.raises(ZeroDivisionError):
        await threads.run(lambda: 1 / 0, "mine", nothing)


async def test_when_all_are_at_work_the_next_is_refused_after_a_while() -> None:
    threads, may_go = ThreadRunner(1, wait_seconds=0.05), threading.Event()
    first = asyncio.create_task(threads.run(lambda: may_go.wait(300), "first", nothing))
    await asyncio.sleep(0)
    with pytest.raises(Overloaded, match="All 1 threads of the agent are at work"):
        await threads.run(nothing, "second", nothing)
    may_go.set()
    assert await first is True
    await threads.run(nothing, "third", nothing)


async def test_where_no_thread_can_be_had_the_place_is_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = ThreadRunner(1, wait_seconds=0.05)

    def no_more(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", no_more)
        with pytest.raises(Overloaded, match="No thread could be started"):
            await threads.run(nothing, "first", nothing)
    await threads.run(nothing, "second", nothing)


async def test_cancelled_it_halts_the_work_and_waits_and_cancelled_again_it_does_not() -> None:
    threads, may_go, halted = ThreadRunner(1, wait_seconds=0.05), threading.Event(), asyncio.Event()
    task = asyncio.create_task(threads.run(lambda: may_go.wait(300), "first", halted.set))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait_for(halted.wait(), 60)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 60)
    with pytest.raises(Overloaded):
        await threads.run(nothing, "second", nothing)
    may_go.set()
    await until(lambda: not any(thread.name == "first" for thread in threading.enumerate()))
    await asyncio.sleep(0)
    await threads.run(nothing, "third", nothing)
