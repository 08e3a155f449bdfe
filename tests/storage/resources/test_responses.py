"""Answers are found again for a while; the oldest make room."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import OutcomeUnknown
from gateway.ports import Clock, IdempotencyKey, ResponseStore, StoredResponse
from gateway.storage import Database, add_to_counter
from gateway.storage.redis import RedisAddress, RedisClient, RedisFull
from gateway.storage.resources.redis_responses import RedisResponses
from gateway.storage.resources.responses import BYTES, NUMBER, MemoryResponses, ResponseLimits, SqliteResponses
from tests.support.cluster.tcp_forwarder import TcpForwarder
from tests.support.examples import examples
from tests.support.redis_server import RedisServer, redis_of_this_run

Opened = Callable[[Path, Clock, ResponseLimits], AbstractAsyncContextManager[ResponseStore]]


@asynccontextmanager
async def in_memory(folder: Path, clock: Clock, bounds: ResponseLimits) -> AsyncIterator[ResponseStore]:
    yield MemoryResponses(clock, bounds)


@asynccontextmanager
async def in_sqlite(folder: Path, clock: Clock, bounds: ResponseLimits) -> AsyncIterator[ResponseStore]:
    database = Database(folder / "dragoman.db", window=0.0)
    await database.open()
    yield SqliteResponses(database, clock, bounds)
    await database.close()


@asynccontextmanager
async def in_redis(folder: Path, clock: Clock, bounds: ResponseLimits) -> AsyncIterator[ResponseStore]:
    redis = RedisClient(RedisAddress.read(f"{redis_of_this_run().url}?prefix={quote(str(folder))}"))
    await redis.open()
    yield RedisResponses(redis, clock, bounds)
    await redis.close()


ANSWERS: dict[str, Opened] = {"memory": in_memory, "sqlite": in_sqlite, "redis": in_redis}


def place(key: str, owner: str = "ann", method: str = "POST", path: str = "/a") -> IdempotencyKey:
    return owner, method, path, key


def answer(size: int = 2, digest: str = "d") -> StoredResponse:
    return StoredResponse(digest=digest, status=201, content_type="application/json", body=b"x" * size)


class Now:
    at = 0.0

    def __call__(self) -> float:
        return self.at


@pytest.mark.parametrize("name", ANSWERS)
async def test_an_answer_is_found_in_its_place_alone(name: str, tmp_path: Path) -> None:
    async with ANSWERS[name](tmp_path, Now(), ResponseLimits()) as answers:
        await answers.store(place("k"), answer())
        assert await answers.find(place("k")) == answer()
        for other in (place("l"), place("k", "bob"), place("k", method="DELETE"), place("k", path="/b")):
            assert await answers.find(other) is None


@pytest.mark.parametrize("name", ANSWERS)
async def test_an_answer_is_kept_for_so_long(name: str, tmp_path: Path) -> None:
    now = Now()
    async with ANSWERS[name](tmp_path, now, ResponseLimits(seconds=60)) as answers:
        await answers.store(place("k"), answer())
        now.at = 60.0
        assert await answers.find(place("k")) == answer()
        now.at = 60.5
        assert await answers.find(place("k")) is None
        await answers.store(place("k"), answer(digest="new"))
        assert await answers.find(place("k")) == answer(digest="new")


@pytest.mark.parametrize("name", ANSWERS)
async def test_one_that_is_too_large_alone_still_stays_until_the_next(name: str, tmp_path: Path) -> None:
    now = Now()
    async with ANSWERS[name](tmp_path, now, ResponseLimits(most_bytes=100)) as answers:
        await answers.store(place("large"), answer(1000))
        assert await answers.find(place("large")) == answer(1000)
        now.at = 1.0
        await answers.store(place("small"), answer(1))
        assert (await answers.find(place("large")), await answers.find(place("small"))) == (None, answer(1))


steps = st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 60), st.floats(0.001, 30.0))


@pytest.mark.parametrize("name", [name for name in ANSWERS if name != "memory"])
@examples(30)
@given(st.lists(steps, max_size=25), st.integers(1, 5), st.integers(1, 150))
async def test_whatever_comes_is_kept_and_forgotten_as_in_memory(
    name: str, told: list[tuple[str, int, float]], most: int, most_bytes: int,
) -> None:
    now, bounds = Now(), ResponseLimits(most=most, most_bytes=most_bytes, seconds=60)
    plain = MemoryResponses(now, bounds)
    with TemporaryDirectory() as folder:
        async with ANSWERS[name](Path(folder), now, bounds) as answers:
            for key, size, wait in told:
                now.at += wait
                await plain.store(place(key), answer(size))
                await answers.store(place(key), answer(size))
                for other in "abcdefgh":
                    assert await answers.find(place(other)) == await plain.find(place(other))


async def test_the_file_has_what_was_kept_and_no_more(tmp_path: Path) -> None:
    now = Now()
    async with in_sqlite(tmp_path, now, ResponseLimits(most=3, seconds=60)) as answers:
        for key in "abcdea":
            now.at += 1.0
            await answers.store(place(key), answer(7))
    with sqlite3.connect(tmp_path / "dragoman.db") as file:
        assert [key for (key,) in file.execute("SELECT key FROM answers ORDER BY at")] == ["d", "e", "a"]
        assert (add_to_counter(file, NUMBER), add_to_counter(file, BYTES)) == (3, 21)


async def test_what_is_too_old_leaves_the_file(tmp_path: Path) -> None:
    now = Now()
    async with in_sqlite(tmp_path, now, ResponseLimits(seconds=60)) as answers:
        for key in "abc":
            await answers.store(place(key), answer(7))
        now.at = 61.0
        await answers.store(place("d"), answer(1))
    with sqlite3.connect(tmp_path / "dragoman.db") as file:
        assert file.execute("SELECT key FROM answers").fetchall() == [("d",)]
        assert (add_to_counter(file, NUMBER), add_to_counter(file, BYTES)) == (1, 1)


async def test_the_oldest_are_found_by_their_age(tmp_path: Path) -> None:
    async with in_sqlite(tmp_path, Now(), ResponseLimits()):
        pass
    with sqlite3.connect(tmp_path / "dragoman.db") as file:
        for query in ("DELETE FROM answers WHERE at < 1", "SELECT key FROM answers ORDER BY at LIMIT 1"):
            plans = [row[3] for row in file.execute(f"EXPLAIN QUERY PLAN {query}")]
            assert ["answers_by_age" in plan for plan in plans] == [True]


@asynccontextmanager
async def two_servers(folder: Path) -> AsyncIterator[tuple[RedisResponses, RedisResponses]]:
    """Two members of a cluster that share a Redis."""
    address = RedisAddress.read(f"{redis_of_this_run().url}?prefix={quote(str(folder))}")
    clients = [RedisClient(address), RedisClient(address)]
    for redis in clients:
        await redis.open()
        await redis.run_script("beat", redis.replica, 60_000)
    one, other = (RedisResponses(redis, Now()) for redis in clients)
    yield one, other
    for redis in clients:
        await redis.close()


async def test_a_server_waits_for_the_one_that_executes_the_request(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as (one, other):
        await one.claim(place("k"))
        await one.claim(place("k"))  # a server does not wait for itself
        await other.claim(place("another"))
        waiting = asyncio.create_task(other.claim(place("k")))
        await asyncio.wait([waiting], timeout=1)
        assert not waiting.done()
        await one.store(place("k"), answer())
        await waiting
        assert await other.find(place("k")) == answer()


@pytest.mark.parametrize("is_dead", [False, True])
async def test_a_key_is_free_when_it_is_released_or_its_server_is_dead(tmp_path: Path, is_dead: bool) -> None:
    async with two_servers(tmp_path) as (one, other):
        await one.claim(place("k"))
        waiting = asyncio.create_task(other.claim(place("k")))
        await asyncio.wait([waiting], timeout=1)
        assert not waiting.done()
        if is_dead:
            await one._redis.run_script("leave", one._redis.replica)
        else:
            await one.release(place("k"))
        await waiting
        await one.release(place("k"))  # which is not its own any more
        again = asyncio.create_task(one.claim(place("k")))
        await asyncio.wait([again], timeout=1)
        assert not again.done()
        await other.store(place("k"), answer())
        await again


@asynccontextmanager
async def behind_a_wire(folder: Path) -> AsyncIterator[tuple[RedisResponses, TcpForwarder]]:
    wire = TcpForwarder(lambda: [redis_of_this_run().port])
    await wire.start()
    redis = RedisClient(
        RedisAddress.read(f"redis://127.0.0.1:{wire.port}/0?prefix={quote(str(folder))}"), lease=1.5)
    await redis.open()
    yield RedisResponses(redis, Now()), wire
    await redis.close()
    await wire.close()


@pytest.mark.parametrize("how", ["cut", "hush"])
async def test_an_answer_is_kept_as_soon_as_redis_can_be_reached_again(how: str, tmp_path: Path) -> None:
    async with behind_a_wire(tmp_path) as (answers, wire):
        await answers.claim(place("k"))
        getattr(wire, how)()
        storing = asyncio.create_task(answers.store(place("k"), answer()))
        await asyncio.sleep(1.0)
        assert not storing.done()
        wire.mend()
        await storing
        assert await answers.find(place("k")) == answer()


async def test_an_answer_that_cannot_be_kept_while_its_key_is_claimed_is_unknown(tmp_path: Path) -> None:
    async with behind_a_wire(tmp_path) as (answers, wire):
        wire.cut()
        with pytest.raises(OutcomeUnknown, match="look at what it has done before you send it again"):
            await answers.store(place("k"), answer())


async def test_a_redis_without_room_says_so(tmp_path: Path) -> None:
    server = RedisServer(tmp_path)
    server.start()
    try:
        redis = RedisClient(RedisAddress.read(server.url))
        await redis.open()
        assert await redis.read_all([("CONFIG", "SET", "maxmemory", "1")]) == [b"OK"]
        with pytest.raises(RedisFull, match="OOM"):
            await RedisResponses(redis, Now()).claim(place("k"))
        await redis.close()
    finally:
        server.stop(kill=True)


async def test_a_key_whose_answer_has_no_room_stays_claimed(tmp_path: Path) -> None:
    """A script of which the first half was done would let the key go, and the work could be done a second time."""
    server = RedisServer(tmp_path)
    server.start()
    try:
        redis, other = (RedisClient(RedisAddress.read(server.url)) for _ in range(2))
        for one in (redis, other):
            await one.open()
            await one.run_script("beat", one.replica, 60_000, b"1")
        assert await redis.run_script("claim_key", redis.replica, "k", 60_000) == 1
        await redis.read_all([("CONFIG", "SET", "maxmemory", "1")])
        with pytest.raises(RedisFull, match="OOM"):
            await redis.run_script("answer", "k", 1, 0, 10, 1000, 6, b"answer")
        await redis.read_all([("CONFIG", "SET", "maxmemory", "0")])
        assert await other.run_script("claim_key", other.replica, "k", 60_000) == 0
        await redis.close()
        await other.close()
    finally:
        server.stop(kill=True)
