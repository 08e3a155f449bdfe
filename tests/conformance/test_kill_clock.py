"""In the loop of the kill matrix a wait takes no time, and what was sent comes before what was waited for in vain."""

import asyncio
import time

import pytest

from conformance.faults.kill.clock import JumpingLoop, run_jumping


def test_the_clock_jumps_to_the_next_timer() -> None:
    async def work() -> float:
        start = asyncio.get_running_loop().time()
        await asyncio.gather(asyncio.sleep(3600), asyncio.sleep(7200))
        return asyncio.get_running_loop().time() - start

    assert run_jumping(work()) == pytest.approx(7200)


def test_what_was_sent_is_read_before_the_clock_jumps() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()  # with Python 3.12 and newer a server is closed once its connections are

    async def work() -> int:
        async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
            read = 0
            for number in range(200):
                writer.write(b"%d\n" % number)
                async with asyncio.timeout(0.01):
                    read += int(await reader.readline()) == number
            writer.close()
            return read

    assert run_jumping(work()) == 200


def test_the_clock_stands_still_while_a_thread_works() -> None:
    async def work() -> float:
        loop = asyncio.get_running_loop()
        timer = asyncio.ensure_future(asyncio.sleep(1000))
        start = loop.time()
        await loop.run_in_executor(None, time.sleep, 0.05)
        timer.cancel()
        return loop.time() - start

    assert run_jumping(work()) < 1000
    assert isinstance(JumpingLoop(), asyncio.SelectorEventLoop)
