"""What is put in comes out in order, never more than may be on the way, and nobody waits for a turn that is over."""

import asyncio
import threading

import pytest

import gateway.model as m
from gateway.backends.python.worker import Pipe, ThreadHalted
from tests.support.gateway_server import until


def notice(number: int) -> list[m.NoticePosted]:
    return [m.NoticePosted(topic="t", title=str(number))]


async def drained(pipe: Pipe) -> list[str]:
    titles = []
    while (batches := await asyncio.wait_for(pipe.take(), 60)) is not None:
        titles += [said.title for batch in batches for said in batch]  # type: ignore[union-attr]
    return titles


async def test_order_is_kept_and_no_more_than_that_many_are_ahead() -> None:
    pipe, put = Pipe(), 0

    async def fill() -> None:
        nonlocal put
        with pipe:
            for number in range(100):
                await pipe.put(notice(number), ahead=3)
                put += 1

    task = asyncio.create_task(fill())
    await until(lambda: put == 3)
    for _ in range(20):
        await asyncio.sleep(0)
    assert put == 3
    assert await drained(pipe) == [str(number) for number in range(100)]
    await task


async def test_the_same_from_a_thread() -> None:
    pipe, loop = Pipe(), asyncio.get_running_loop()
    over = loop.create_future()

    def fill() -> None:
        for number in range(1000):
            pipe.put_from_thread(notice(number), ahead=3)
        loop.call_soon_threadsafe(over.set_result, None)

    async def end() -> None:
        with pipe:
            await over

    thread, task = threading.Thread(target=fill), asyncio.create_task(end())
    thread.start()
    assert await drained(pipe) == [str(number) for number in range(1000)]
    await task
    await asyncio.to_thread(thread.join, 20)


@pytest.mark.parametrize(("error", "told"), [
    (ValueError("x"), ValueError), (SystemExit(1), RuntimeError), (KeyboardInterrupt(), RuntimeError),
])
async def test_it_ends_as_its_block_ends(error: BaseException, told: type[BaseException]) -> None:
    pipe = Pipe()
    with pipe:
        raise error
    with pytest.raises(told):
        await pipe.take()


async def test_a_thread_that_waits_is_halted() -> None:
    pipe, halted, asked = Pipe(), threading.Event(), threading.Event()

    def fill() -> None:
        with pytest.raises(ThreadHalted):
            pipe.put_from_thread(notice(1))
        halted.set()

    def ask() -> None:
        with pytest.raises(ThreadHalted):
            pipe.call_from_thread(asyncio.Event().wait())
        asked.set()

    threads = [threading.Thread(target=fill), threading.Thread(target=ask)]
    for thread in threads:
        thread.start()
    await until(lambda: pipe._waiting and pipe._calls)
    pipe.halt()
    await until(lambda: halted.is_set() and asked.is_set())
    with pytest.raises(ThreadHalted):
        pipe.put_from_thread(notice(2))
    with pytest.raises(ThreadHalted):
        pipe.call_from_thread(asyncio.sleep(0))


async def test_what_a_coroutine_gives_reaches_the_thread() -> None:
    pipe = Pipe()

    async def answer() -> int:
        return 42

    async def fail() -> int:
        raise ValueError("no")

    assert await asyncio.to_thread(lambda: pipe.call_from_thread(answer())) == 42
    with pytest.raises(ValueError, match="no"):
        await asyncio.to_thread(lambda: pipe.call_from_thread(fail()))
