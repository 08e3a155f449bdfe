"""Tokens of a shared bucket: as many as there are, and when there is one again, by the clock of Redis."""

from pathlib import Path

from gateway.storage.redis import RedisAddress, RedisClient
from gateway.storage.redis.token_buckets import RedisTokenBuckets
from tests.support.redis_server import redis_of_this_run


async def test_as_many_tokens_are_granted_as_are_there(tmp_path: Path) -> None:
    redis = RedisClient(RedisAddress.read(f"{redis_of_this_run().url}?prefix={tmp_path.name}"))
    await redis.open()
    tokens = RedisTokenBuckets(redis)
    assert await tokens.grant("ann", 0.0001, 5, 3) == (3, 0.0)
    assert await tokens.grant("ann", 0.0001, 5, 3) == (2, 0.0)
    granted, wait = await tokens.grant("ann", 0.0001, 5, 3)
    assert granted == 0
    assert 0 < wait <= 10_000
    assert await tokens.grant("bob", 0.0001, 5, 3) == (3, 0.0)
    await redis.close()
