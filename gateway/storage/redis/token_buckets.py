"""The token buckets of users, which all gateways that share a Redis take from."""

from .shared import SharedRedis


class RedisTokenBuckets:
    """Token buckets that several servers share; one script takes tokens and adds those of the time that has passed."""

    def __init__(self, redis: SharedRedis) -> None:
        self._redis = redis

    async def grant(self, owner: str, rate: float, size: int, wanted: int) -> tuple[int, float]:
        granted, wait = await self._redis.part_of(owner).run_script("tokens", owner, rate, size, wanted)
        return int(granted), float(wait)
