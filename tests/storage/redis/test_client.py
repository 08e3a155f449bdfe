"""One Redis server: where it is, how it is spoken to, and what is said of one that cannot be used."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from gateway.storage import StorageUnusable
from gateway.storage.redis import (
    CommandRefused,
    RedisAddress,
    RedisClient,
    RedisConnection,
    RedisPubSub,
    RedisUnreachable,
)
from gateway.storage.redis.scripts import scripts
from tests.support.cluster.receiver import Receiver
from tests.support.cluster.tcp_forwarder import TcpForwarder
from tests.support.gateway_server import simulation, until
from tests.support.redis_server import RedisServer, free_port, redis_of_this_run


def address(url: str = "") -> RedisAddress:
    return RedisAddress.read(f"{url or redis_of_this_run().url}?prefix={uuid4().hex}")


@pytest.mark.parametrize(("written", "shown", "prefix"), [
    ("redis://host", "redis://host:6379", "dragoman:"),
    ("redis://ann:hush@host:7000/3?prefix=mine", "redis://host:7000/3", "mine:"),
    ("rediss://:hush@host/1", "rediss://host:6379/1", "dragoman:"),
    ("unix:///run/redis.sock?db=2&prefix=x", "unix:///run/redis.sock", "x:"),
])
def test_an_address_is_shown_without_its_password(written: str, shown: str, prefix: str) -> None:
    read = RedisAddress.read(written)
    assert (read.shown, read.prefix) == (shown, prefix)


async def test_replies_come_in_order_and_a_refusal_is_one_of_them() -> None:
    line = RedisConnection(address(), 5)
    replies = await line.ask_all([("ECHO", "a"), ("NONSENSE",), ("ECHO", "b")])
    assert (replies[0], replies[2]) == (b"a", b"b")
    assert isinstance(replies[1], CommandRefused)
    many = await asyncio.gather(*(line.ask("ECHO", str(number)) for number in range(200)))
    assert many == [str(number).encode() for number in range(200)]
    with pytest.raises(CommandRefused, match="NOSCRIPT"):
        await line.ask("EVALSHA", "0" * 40, 0)
    assert await line.ask("ECHO", "half a character: \udc80") == b"half a character: \xed\xb2\x80"
    await line.close()


async def test_who_leaves_early_does_not_take_the_replies_of_others() -> None:
    line = RedisConnection(address(), 5)
    await line.ask("PING")
    leaving = asyncio.create_task(line.ask("ECHO", "never mind"))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await line.ask("ECHO", "mine") == b"mine"
    await line.close()


@pytest.mark.parametrize("how", ["cut", "hush"])
async def test_a_line_that_breaks_is_told_and_made_anew(how: str) -> None:
    wire = TcpForwarder(lambda: [redis_of_this_run().port])
    await wire.start()
    line = RedisConnection(address(f"redis://127.0.0.1:{wire.port}"), 0.3)
    assert await line.ask("ECHO", "a") == b"a"
    getattr(wire, how)()
    with pytest.raises(RedisUnreachable, match=r"Redis at redis://127\.0\.0\.1:\d+ cannot be reached"):
        await line.ask("ECHO", "b")
    wire.mend()
    assert await line.ask("ECHO", "c") == b"c"
    await line.close()
    await wire.close()


async def test_a_listener_hears_again_after_a_break_and_says_that_something_was_missed() -> None:
    wire = TcpForwarder(lambda: [redis_of_this_run().port])
    await wire.start()
    receiver = Receiver()
    heard, missed = receiver.heard, receiver.missed_at
    listener = RedisPubSub(address(f"redis://127.0.0.1:{wire.port}"), 1.0)
    one, other = uuid4().hex, uuid4().hex
    await listener.start(receiver, one)
    await listener.listen(other)
    line = RedisConnection(address(), 5)
    assert [await line.ask("PUBLISH", channel, "1") for channel in (one, other)] == [1, 1]
    await until(lambda: len(heard) == 2)
    assert missed == []
    listener.ignore(other)
    wire.cut()
    wire.mend()
    await until(lambda: missed)
    assert [await line.ask("PUBLISH", channel, "2") for channel in (one, other)] == [1, 0]
    await until(lambda: len(heard) == 3)
    assert heard == [(one, b"1"), (other, b"1"), (one, b"2")]
    await listener.close()
    await line.close()
    await wire.close()


async def test_a_listener_whose_line_has_gone_dead_makes_another() -> None:
    wire = TcpForwarder(lambda: [redis_of_this_run().port])
    await wire.start()
    receiver = Receiver()
    missed = receiver.missed_at
    listener = RedisPubSub(address(f"redis://127.0.0.1:{wire.port}"), 0.2, simulation().time)
    await listener.start(receiver, "c")
    wire.hush()
    for _ in range(6):
        listener.poke()
        await asyncio.sleep(0.1)
    with pytest.raises(RedisUnreachable):
        await listener.listen("d")
    wire.mend()
    await until(lambda: missed)
    assert listener.is_subscribed("c")
    await listener.close()
    await wire.close()


# -- servers that cannot be used --------------------------------------------------------------------------------------

@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    made = RedisServer(tmp_path / "redis")
    made.start()
    yield made
    made.stop(kill=True)


async def test_nobody_there_is_told_without_the_password() -> None:
    with pytest.raises(StorageUnusable, match="cannot be reached") as told:
        await RedisClient(RedisAddress.read(f"redis://:hush@127.0.0.1:{free_port()}/0")).open()
    assert "hush" not in told.value.message


async def test_a_format_of_later_times_is_left_alone() -> None:
    redis = RedisClient(address())
    line = RedisConnection(redis.address, 5)
    await line.ask("SET", redis.key("format"), "2")
    with pytest.raises(StorageUnusable, match=r"written by a newer Dragoman \(format 2, this one knows 1\)"):
        await redis.open()
    await line.close()


async def test_the_first_server_begins_an_epoch_and_the_others_share_it() -> None:
    first = RedisClient(address())
    second = RedisClient(first.address)
    await first.open()
    await second.open()
    assert first.epoch == second.epoch != ""
    assert first.replica != second.replica
    await first.close()
    await second.close()


async def test_a_server_that_cannot_wait_for_its_disk_is_refused_where_that_is_asked_for() -> None:
    redis = RedisClient(address(), fsync=True)
    line = RedisConnection(redis.address, 5)
    knows = await line.ask("COMMAND", "INFO", "WAITAOF")
    await line.close()
    if knows and knows[0]:
        await redis.open()
        await redis.close()
        return
    with pytest.raises(
        StorageUnusable, match=r"durability: fsync needs .*WAITAOF.* is version [\d.]+; take a newer one, or"
    ):
        await redis.open()


async def test_a_server_that_keeps_nothing_is_refused_where_a_disk_is_asked_for(server: RedisServer) -> None:
    redis = RedisClient(RedisAddress.read(server.url), fsync=True)
    ask_all = redis._writing.ask_all

    async def newer(commands: object) -> list[object]:
        replies = await ask_all(commands)  # type: ignore[arg-type]
        return [[[b"waitaof"]], *replies[1:]] if len(replies) == 5 else replies

    redis._writing.ask_all = newer  # type: ignore[method-assign, assignment]
    await redis.open()
    await redis.close()
    line = RedisConnection(redis.address, 5)
    await line.ask("CONFIG", "SET", "appendonly", "no")
    await line.close()
    with pytest.raises(StorageUnusable, match="needs `appendonly yes`"):
        await redis.open()


def test_every_script_says_what_it_is_for() -> None:
    for name, (digest, text) in scripts().items():
        first, _, rest = text.partition("\n")
        assert first.startswith("-- ") or (first.startswith("#!lua") and rest.startswith("-- ")), name
        assert len(digest) == 40


def test_a_script_that_writes_is_refused_as_a_whole_when_redis_is_full() -> None:
    """Without the first line Redis runs it, and refuses the first command that needs room: some of it would be done."""
    for name, (_, text) in scripts().items():
        writes = re.findall(r"redis\.call\('(?:[SHZ]?(?:ADD|SET|INCRBY|REM|DEL)|XADD|INCR|DEL|UNLINK)'", text)
        if len(writes) > 1 and name not in ("begin", "unindexed"):
            assert text.startswith("#!lua"), name
