"""A Redis server beside a simulated loop: its answers come before any time passes, and its keys age with the loop."""

import asyncio
from pathlib import Path

import pytest

from gateway.storage.redis import RedisAddress, RedisConnection, RedisUnreachable
from tests.simulation.loop import LoopDeadlock, SimulatedLoop, simulated
from tests.support.redis_server import RedisServer, redis_of_this_run


async def line() -> RedisConnection:
    """A connection to a server that is empty; an answer that takes any time at all is too late."""
    redis_of_this_run().forget()
    return RedisConnection(RedisAddress.read(redis_of_this_run().url), 0.000_01)


async def test_no_time_passes_before_an_answer_has_come() -> None:
    loop, made = asyncio.get_running_loop(), await line()
    assert await made.ask("EVAL", "for n = 1, 5000000 do end return 'done'", 0) == b"done"
    assert loop.time() == 0
    await made.close()


@pytest.mark.parametrize("size", [40_000, 5_000_000])
async def test_no_time_passes_before_a_long_question_has_been_read(size: int) -> None:
    loop, made = asyncio.get_running_loop(), await line()
    assert await made.ask_all([("SET", "long", "x" * size), ("STRLEN", "long")] * 3) == [b"OK", size] * 3
    assert loop.time() == 0
    await made.close()


async def test_a_question_that_is_not_finished_holds_nothing_up_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.simulation.loop.HANG", 0.1)
    reader, writer = await asyncio.open_connection("127.0.0.1", redis_of_this_run().port)
    writer.write(b"PI")
    await asyncio.sleep(3600)
    writer.write(b"NG\r\n")
    assert await reader.readline() == b"+PONG\r\n"
    writer.close()


async def test_a_key_lives_as_long_as_the_clock_of_the_loop_says() -> None:
    made = await line()
    await made.ask("SET", "lease", "mine", "PX", 3_600_000)
    await asyncio.sleep(3590)
    assert await made.ask("GET", "lease") == b"mine"
    await asyncio.sleep(11)
    assert await made.ask("GET", "lease") is None
    await made.close()


async def test_a_key_that_is_set_anew_lives_anew() -> None:
    made = await line()
    for _ in range(3):
        await made.ask("SET", "lease", "mine", "PX", 3_600_000)
        await asyncio.sleep(3000)
    assert await made.ask("GET", "lease") == b"mine"
    await made.close()


async def test_what_one_connection_publishes_another_hears_before_time_passes() -> None:
    loop, made = asyncio.get_running_loop(), await line()
    reader, writer = await asyncio.open_connection("127.0.0.1", redis_of_this_run().port)
    writer.write(b"SUBSCRIBE news\r\n")
    await reader.readuntil(b":1\r\n")
    began = loop.time()
    for number in range(100):
        heard = asyncio.create_task(reader.readuntil(b"%03d\r\n" % number))
        await made.ask("PUBLISH", "news", f"{number:03}")
        async with asyncio.timeout(0.000_01):
            await heard
    assert loop.time() == began
    writer.close()
    await made.close()


def test_who_waits_for_what_nobody_will_say_is_told_though_a_connection_is_open() -> None:
    async def wait() -> None:
        reader, _ = await asyncio.open_connection("127.0.0.1", redis_of_this_run().port)
        await reader.read()

    with pytest.raises(LoopDeadlock):
        simulated(wait())


async def test_a_server_that_has_stopped_is_no_neighbour_and_one_that_is_back_is(tmp_path: Path) -> None:
    loop, server = asyncio.get_running_loop(), RedisServer(tmp_path / "redis")
    assert isinstance(loop, SimulatedLoop)
    server.start()
    made = RedisConnection(RedisAddress.read(server.url), 0.000_01)
    await made.ask("SET", "lease", "mine", "PX", 3_600_000)
    await asyncio.sleep(1800)
    server.stop()
    assert loop.neighbours == []
    with pytest.raises(RedisUnreachable):
        await made.ask("GET", "lease")
    server.start()
    assert await made.ask("GET", "lease") == b"mine"
    await asyncio.sleep(1800)
    assert await made.ask("GET", "lease") is None
    await made.close()
    server.stop(kill=True)
