"""The simulated clock: waits are free, their order is kept, threads are waited for, and a hang is told."""

import asyncio
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.simulation.loop import LoopDeadlock, SimulatedLoop, simulated

YEAR = 365 * 86_400.0


def clock() -> float:
    return asyncio.get_running_loop().time()


def test_a_year_passes_at_once() -> None:
    async def wait() -> float:
        await asyncio.sleep(YEAR)
        return clock()

    assert simulated(wait()) == pytest.approx(YEAR)


def test_timers_run_in_the_order_in_which_they_are_due() -> None:
    seen: list[tuple[str, float]] = []

    async def note(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen.append((name, clock()))

    async def both() -> None:
        await asyncio.gather(note("late", 3.0), note("early", 1.0), note("between", 2.0))

    simulated(both())
    assert seen == [("early", 1.0), ("between", 2.0), ("late", 3.0)]


def test_the_clock_stands_still_while_there_is_something_to_do() -> None:
    async def work() -> float:
        for _ in range(1000):
            await asyncio.sleep(0)
        return clock()

    assert simulated(work()) == 0.0


def test_a_timeout_ends_what_would_never_end() -> None:
    async def wait() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await asyncio.Event().wait()
        return clock()

    assert simulated(wait()) == 30.0


def test_a_wait_without_an_end_is_told_with_its_place() -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    with pytest.raises(LoopDeadlock, match=r"waits at .*test_loop\.py:\d+"):
        simulated(hang())


def test_a_thread_is_waited_for_before_the_clock_moves_on() -> None:
    may_go = threading.Event()

    async def work() -> str:
        async with asyncio.timeout(3600):
            thread = asyncio.create_task(asyncio.to_thread(may_go.wait, 60))
            await asyncio.sleep(0)
            asyncio.get_running_loop().call_soon(may_go.set)
            assert await thread
        assert clock() < 3600
        return "done"

    assert simulated(work()) == "done"


def test_what_an_executor_was_given_directly_is_waited_for() -> None:
    async def work() -> float:
        loop, came = asyncio.get_running_loop(), asyncio.Event()
        may_go = threading.Event()

        def tell() -> None:
            may_go.wait(300)
            loop.call_soon_threadsafe(came.set)

        with ThreadPoolExecutor(1) as executor:
            executor.submit(tell)
            loop.call_soon(may_go.set)
            async with asyncio.timeout(3600):
                await came.wait()
        return clock()

    assert simulated(work()) < 3600


def test_a_thread_that_somebody_started_is_waited_for() -> None:
    async def work() -> float:
        loop, came = asyncio.get_running_loop(), asyncio.Event()
        threading.Thread(target=lambda: loop.call_soon_threadsafe(came.set)).start()
        async with asyncio.timeout(3600):
            await came.wait()
        return clock()

    assert simulated(work()) < 3600


def test_the_answer_of_a_thread_is_never_overtaken_by_a_timer() -> None:
    """A timer that is due in an instant of simulated time does not fire while a thread is on its way back."""

    async def work() -> int:
        late = 0
        for _ in range(300):
            try:
                async with asyncio.timeout(1000):
                    await asyncio.to_thread(time.time)
            except TimeoutError:
                late += 1
        return late

    assert simulated(work()) == 0


def test_a_process_is_waited_for_before_the_clock_moves_on() -> None:
    async def work() -> bytes:
        async with asyncio.timeout(3600):
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", "print('hello')", stdout=subprocess.PIPE)
            told, _ = await process.communicate()
        return told

    assert simulated(work()) == b"hello\n"


async def test_an_address_is_found_without_a_thread_and_a_name_with_one() -> None:
    loop, before = asyncio.get_running_loop(), set(threading.enumerate())
    [(*_, place)] = await loop.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)
    assert place == ("127.0.0.1", 80) and set(threading.enumerate()) <= before
    assert await loop.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)
    assert set(threading.enumerate()) - before


async def test_it_is_the_loop_of_all_tests() -> None:
    assert isinstance(asyncio.get_running_loop(), SimulatedLoop)


async def test_a_wait_that_is_nearly_over_ends_though_the_loop_is_busy() -> None:
    loop = asyncio.get_running_loop()
    await asyncio.sleep(1e6 + 0.1)
    end, busy = loop.time() + 1e-9, True

    async def be_busy() -> None:
        while busy:  # noqa: ASYNC110  # busy is what it is to be
            await asyncio.sleep(0)

    beside = asyncio.create_task(be_busy())
    for _ in range(5):
        if (left := end - loop.time()) <= 0:
            break
        await asyncio.wait([beside], timeout=left)
    assert loop.time() >= end
    busy = False
    await beside
