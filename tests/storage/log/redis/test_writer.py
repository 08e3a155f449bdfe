"""What is the Redis log's alone: one writer held to it by a token, writes that may be sent twice, and data that go."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from msgspec.structs import replace

import gateway.model as m
from gateway.errors import Overloaded
from gateway.storage.log.redis import LeaseLost, RedisLog
from gateway.storage.log.redis.writer import FEW
from gateway.storage.redis import Command, RedisAddress, RedisClient, RedisDataLost, RedisUnreachable
from tests.support.gateway_server import simulation, until
from tests.support.redis_server import RedisServer, redis_of_this_run
from tests.support.storage.commit_recorder import CommitRecorder
from tests.support.storage.event_logs import created, note, put


@asynccontextmanager
async def opened(
    url: str = "", lease: float = 10.0, prefix: str = "", *, fsync: bool = False,
) -> AsyncIterator[RedisLog]:
    address = RedisAddress.read(f"{url or redis_of_this_run().url}?prefix={prefix or uuid4().hex}")
    log = RedisLog(RedisClient(address, lease=lease, clock=simulation().time), fsync=fsync)
    await log.open()
    recorder = CommitRecorder()
    log.attach(recorder, recorder)
    yield log
    await log.close()


def recorder(log: RedisLog) -> CommitRecorder:
    assert isinstance(log._listener, CommitRecorder)
    return log._listener


def told(log: RedisLog) -> list[int]:
    return recorder(log).seqs


async def taken(log: RedisLog, session_id: str) -> tuple[str, int]:
    """Another server claims the session; its token and the head."""
    other = RedisClient(log.redis.address)
    await other.open()
    await other.run_script("beat", other.replica, 10_000)
    answer = await other.run_script("claim", other.replica, session_id)
    await other.close()
    assert answer[0] == b"yours"
    return answer[1].decode(), int(answer[2])


async def test_who_is_not_the_writer_any_more_stores_nothing() -> None:
    async with opened() as log:
        lost = recorder(log).lost
        await put(log, created("s"))
        ours = int(log.token_of("s") or 0)
        assert await taken(log, "s") == (str(ours + 1), 1)
        log.append(note("s", 2))
        with pytest.raises(LeaseLost):
            await log.wait_stored("s", 2)
        assert (lost, told(log), len(await log.read("s"))) == (["s"], [1], 1)
        with pytest.raises(LeaseLost):
            log.append(note("s", 2))
        with pytest.raises(LeaseLost):
            await log.wait_stored("s", 2)


async def test_what_cannot_be_written_at_all_stops_nobody_else() -> None:
    async with opened() as log:
        lost = recorder(log).lost
        await put(log, created("s"))
        log.append(replace(note("s", 2), event=object()))  # type: ignore[arg-type]
        with pytest.raises(LeaseLost):
            await log.wait_stored("s", 2)
        assert lost == ["s"]
        await put(log, created("t"), note("t", 2))
        assert [record.seq for record in await log.read("t")] == [1, 2]


async def test_the_new_writer_goes_on_where_the_old_one_was() -> None:
    prefix = uuid4().hex
    async with opened(prefix=prefix) as old, opened(prefix=prefix) as new:
        await put(old, created("s"), note("s", 2))
        new.hold("s", *await taken(old, "s"))
        await put(new, note("s", 3))
        assert [record.seq for record in await old.read("s")] == [1, 2, 3]
        assert await old.since("s", 1) == [note("s", 2), note("s", 3)]
        assert await old.since("s", 3) == []
        assert await old.since("s", 4) is None
        assert await old.since("nobody's", 0) is None


def once(log: RedisLog, after: Callable[[], Any]) -> None:
    """The next write is carried out, then `after` happens, and then its reply is lost."""
    change_all = log.redis.run_scripts

    async def broken(calls: Any, *extra: Command) -> list[Any]:
        log.redis.run_scripts = change_all  # type: ignore[method-assign]
        await change_all(calls, *extra)
        await after()
        raise RedisUnreachable("the reply was lost")

    log.redis.run_scripts = broken  # type: ignore[method-assign]


async def test_a_write_whose_reply_was_lost_is_there_once() -> None:
    async with opened() as log:
        await put(log, created("s"))

        async def more() -> None:
            log.append(note("s", 4))

        once(log, more)
        await put(log, note("s", 2), note("s", 3))
        await log.wait_stored("s", 4)
        assert told(log) == [1, 2, 3, 4]
        assert [record.seq for record in await log.read("s")] == [1, 2, 3, 4]


async def test_a_write_whose_reply_was_lost_counts_if_it_was_before_another_writer_came() -> None:
    async with opened() as log:
        await put(log, created("s"))

        async def stolen() -> None:
            await taken(log, "s")
            log.append(note("s", 3))

        once(log, stolen)
        log.append(note("s", 2))
        await log.wait_stored("s", 2)
        assert told(log) == [1, 2]
        await until(lambda: not log.holds("s"))
        assert [record.seq for record in await log.read("s")] == [1, 2]


async def test_a_log_that_has_lost_its_end_has_lost_its_writer_too() -> None:
    """As after a power cut: what was acknowledged is not all there, so nothing is put after the gap."""
    async with opened() as log:
        lost = recorder(log).lost
        await put(log, created("s"), note("s", 2), note("s", 3))
        await log.redis.read_all([("HSET", log.redis.key("s", "s"), "head", "2")])
        log.append(note("s", 4))
        with pytest.raises(LeaseLost):
            await log.wait_stored("s", 4)
        assert lost == ["s"]


async def test_many_sessions_of_one_moment_are_stored_by_one_write() -> None:
    async with opened() as log:
        writes: list[int] = []
        change_all = log.redis.run_scripts

        async def counted(calls: Any, *extra: Command) -> list[Any]:
            writes.append(len(calls))
            return await change_all(calls, *extra)

        log.redis.run_scripts = counted  # type: ignore[method-assign]
        names = [f"s{number}" for number in range(150)]
        await put(log, *map(created, names))
        assert writes == [3]
        assert log.session_count == 150


async def test_data_that_are_gone_are_noticed_and_nothing_half_is_left() -> None:
    async with opened() as log:
        await put(log, created("s"))
        epoch = log.redis.epoch
        await log.redis.read_all([("DEL", *(await log.redis.read_all([("KEYS", f"{log.redis.prefix}*")]))[0])])
        log.append(note("s", 2))
        with pytest.raises(RedisDataLost):
            await log.wait_stored("s", 2)
        assert (recorder(log).resets, log.held, log.session_count) == (1, (), 0)
        assert log.redis.epoch != epoch
        await put(log, created("t"))
        assert await log.head("s") is None
        assert [head.session_id for head in await log.sessions(None)] == ["t"]


async def test_a_server_that_goes_away_is_trouble_until_it_comes_back(tmp_path: Path) -> None:
    server = RedisServer(tmp_path / "redis")
    server.start()
    try:
        async with opened(server.url, lease=1.0) as log:
            troubles = recorder(log).errors
            await put(log, created("s"))
            server.stop()
            log.append(note("s", 2))
            with pytest.raises(Overloaded, match=r"nothing can be stored just now: Redis at .* cannot be reached"):
                await log.wait_stored("s", 2)
            assert troubles and log.write_error is troubles[-1]
            log.append(note("s", 3))
            with pytest.raises(Overloaded):
                await log.wait_stored("s", 3)
            server.start()
            await until(lambda: log.write_error is None)
            await log.wait_stored("s", 3)
            assert told(log) == [1, 2, 3]
            assert [record.seq for record in await log.read("s")] == [1, 2, 3]
    finally:
        server.stop(kill=True)


async def test_scripts_that_the_server_forgot_are_taught_again() -> None:
    async with opened() as log:
        await put(log, created("s"))
        await log.redis.read_all([("SCRIPT", "FLUSH", "SYNC")])
        await put(log, note("s", 2))
        await log.redis.read_all([("SCRIPT", "FLUSH", "SYNC")])
        assert [record.seq for record in await log.read_without_deltas("s")] == [1, 2]


async def test_what_must_be_on_the_disk_is_waited_for() -> None:
    """Asks and ends of turns, where the settings say so; a server that can wait is played by the test."""
    end = m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN)
    async with opened(fsync=True) as log:
        change_all, extras = log.redis.run_scripts, list[Command]()

        async def waited(calls: Any, *extra: Command) -> list[Any]:
            extras.extend(extra)
            replies = await change_all(calls)
            return [*replies, *([b"OK", [0 if len(extras) == 2 else 1, 0]] if extra else [])]

        log.redis.run_scripts = waited  # type: ignore[method-assign]
        await put(log, created("s"), note("s", 2))
        assert extras == []
        await put(log, m.Record(seq=3, at=1.0, session_id="s", turn_id="t", event=end))
        assert [command[0] for command in extras] == ["SET", "WAITAOF", "SET", "WAITAOF"], "the first came to nothing"
        assert told(log) == [1, 2, 3]


async def test_records_wait_for_others_only_after_a_group_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.storage.log.redis.writer.WINDOW", 3.0)
    clock = simulation().time
    async with opened() as log:
        began = clock()
        await put(log, created("a"))
        for session_id in (names := [f"s{number}" for number in range(FEW)]):
            log.append(created(session_id))
        for session_id in names:
            await log.wait_stored(session_id, 1)
        assert clock() < began + 3
        await put(log, note("a", 2))
        assert clock() >= began + 3
        await put(log, note("a", 3))
        assert clock() < began + 6


async def test_records_that_leave_together_come_back_in_order() -> None:
    async with opened() as log:
        log.append(created("s"))
        for seq in range(2, 700):
            log.append(note("s", seq))
            if seq % 97 == 0:
                await asyncio.sleep(0.005)
        await log.wait_stored("s", 699)
        assert [record.seq for record in await log.read("s")] == list(range(1, 700))
        assert [record.seq for record in await log.read("s", 300, 50)] == list(range(301, 351))
