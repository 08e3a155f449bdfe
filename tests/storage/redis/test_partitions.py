"""Data divided over a Redis Cluster: each partition in one slot, evenly spread, with everything of a session in one."""

import asyncio
from collections import Counter
from uuid import uuid4

import pytest
from redis.crc import key_slot

from gateway.quotas import NoLimits, PartQuotas, Quotas
from gateway.storage import StorageUnusable
from gateway.storage.redis import CommandRefused, RedisAddress, RedisPartitions
from gateway.storage.redis.partitions import SLOTS, slot_of_key, tags
from tests.support.cluster.receiver import Receiver
from tests.support.gateway_server import until
from tests.support.redis_server import cluster_url
from tests.support.storage.one_slot_scripts import STRICT


def partitions(prefix: str, number: int = 4) -> RedisPartitions:
    return RedisPartitions(RedisAddress.read(cluster_url(prefix, number)))


@pytest.mark.parametrize("number", [1, 2, 64, 256])
def test_partitions_are_spread_evenly_over_the_slots(number: int) -> None:
    slots = [slot_of_key(f"word:{{{tag}}}:s:1") for tag in tags(number)]
    assert slots == [key_slot(f"word:{{{tag}}}:log:2".encode()) for tag in tags(number)]
    assert [slot * number // SLOTS for slot in slots] == [*range(number)]


def test_sessions_are_spread_over_the_partitions() -> None:
    redis = RedisPartitions(RedisAddress.read("redis+cluster://h1,h2"))
    counts = Counter(redis.number_of(f"sess_{number}") for number in range(6400))
    assert len(counts) == 64 and min(counts.values()) > 50


async def test_the_number_of_partitions_is_fixed_by_the_first_server() -> None:
    prefix = uuid4().hex
    first = partitions(prefix)
    await first.open()
    with pytest.raises(StorageUnusable, match=r"keeps its data in 4 partitions, not 8; write `\?partitions=4`"):
        await partitions(prefix, 8).open()
    await first.close()


async def test_a_script_that_leaves_its_partition_is_refused_by_redis() -> None:
    redis = partitions(uuid4().hex)
    await redis.open()
    there, elsewhere = redis.parts[0], redis.parts[1]
    [reply] = await there._writing.ask_all([
        ("EVAL", f"{STRICT}return redis.call('SET', ARGV[1], '1')", 2, there.key("epoch"), there.key("never"),
         elsewhere.key("epoch"))])
    assert isinstance(reply, CommandRefused) and "same slot" in str(reply)
    await redis.close()


async def test_the_loss_of_one_partition_is_noticed_there_alone() -> None:
    redis = partitions(uuid4().hex)
    await redis.open()
    epochs = [part.epoch for part in redis.parts]
    assert len(set(epochs)) == len(epochs)
    await redis.parts[1]._writing.ask("DEL", redis.parts[1].key("epoch"))
    outcomes = await asyncio.gather(
        *(part.run_script("beat", redis.replica, 1000) for part in redis.parts), return_exceptions=True)
    assert [type(outcome).__name__ for outcome in outcomes] == ["list", "RedisDataLost", "list", "list"]
    assert [part.epoch == before for part, before in zip(redis.parts, epochs, strict=True)] == [
        True, False, True, True]
    await redis.close()


async def test_what_is_published_in_a_partition_reaches_those_who_listen_there() -> None:
    redis, receiver = partitions(uuid4().hex), Receiver()
    await redis.open()
    pubsub = redis.pubsub()
    await pubsub.start(receiver, *(part.key("news", "s") for part in redis.parts[:2]))
    counts = [await part.publish("news:s", b"%d" % number) for number, part in enumerate(redis.parts)]
    await until(lambda: len(receiver.messages) == 2)
    assert (counts, sorted(receiver.messages)) == ([1, 1, 0, 0], [b"0", b"1"])
    await pubsub.close()
    await redis.close()


async def test_keys_of_all_partitions_are_scanned() -> None:
    redis = partitions(uuid4().hex)
    await redis.open()
    for number, part in enumerate(redis.parts):
        await part._writing.ask("SET", part.key("all", f"kind\0owner{number}"), "1")
    assert sorted([key async for key in redis.scan("all")]) == [f"kind\0owner{number}" for number in range(4)]
    await redis.close()


def test_what_an_owner_has_is_the_sum_of_the_partitions() -> None:
    whole = Quotas(lambda: NoLimits(sessions=10))
    here, there = PartQuotas(whole), PartQuotas(whole)
    here.set_usage("ann", "sessions", 4)
    there.set_usage("ann", "sessions", 3)
    here.set_usage("ann", "sessions", 5)
    assert whole.usage_of("ann").sessions == 8
    assert (here.limit_of("ann", "sessions"), there.limit_of("ann", "sessions")) == (7, 5)
