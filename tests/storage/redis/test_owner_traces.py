"""The traces of a user in Redis: counted exactly, erased for one user, and left alone while the user has more."""

import secrets

import pytest

from gateway.errors import NotFound
from gateway.ports import StoredResponse
from gateway.storage.redis import RedisAddress, RedisClient, RedisOwnerTraces
from gateway.storage.resources.redis import RedisResources
from gateway.storage.resources.redis_responses import RedisResponses
from tests.support.redis_server import redis_of_this_run

ANSWER = StoredResponse(digest="d", status=200, content_type="text/plain", body=b"hello")


def new_client(prefix: str) -> RedisClient:
    return RedisClient(RedisAddress.read(f"{redis_of_this_run().url}?prefix={prefix}"))


async def test_responses_of_one_user_go_and_those_of_similar_names_stay() -> None:
    prefix = secrets.token_hex(4)
    traces, redis = RedisOwnerTraces(lambda: new_client(prefix)), new_client(prefix)
    with pytest.raises(NotFound, match="has no data of Dragoman"):
        await traces.check_data()
    await redis.open()
    await traces.check_data()
    kept = RedisResponses(redis, lambda: 1000.0)
    for owner in ("ann", "anna", "an"):
        await kept.store((owner, "POST", "/x", "1"), ANSWER)
    assert [await traces.count_responses(owner) for owner in ("ann", "anna", "nobody")] == [1, 1, 0]
    assert await traces.erase("ann")
    assert await kept.find(("ann", "POST", "/x", "1")) is None
    assert await kept.find(("anna", "POST", "/x", "1")) is not None
    [size] = await redis.read_all([("GET", redis.key("answers.bytes"))])
    assert int(size) == 2 * len(ANSWER.body)
    assert await traces.rewrite_file()
    await redis.close()


async def test_a_user_with_resources_keeps_the_counters() -> None:
    prefix = secrets.token_hex(4)
    traces, redis = RedisOwnerTraces(lambda: new_client(prefix)), new_client(prefix)
    await redis.open()
    resources = RedisResources(redis, lambda: 1000.0)
    made = await resources.create("note", "ann", {"content": "tea"})
    assert not await traces.erase("ann")
    await resources.delete("note", "ann", made.resource_id)
    assert await traces.erase("ann")
    assert [key async for key in redis.scan("kept")] == []
    await redis.close()
