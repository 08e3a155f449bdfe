"""Buckets of tokens that several servers share: how many requests each key has left."""

from .store import Redis


class RedisTokens:
    """One script takes tokens out and fills up what time has brought, by the clock of Redis."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def grant(self, owner: str, rate: float, size: int, wanted: int) -> tuple[int, float]:
        granted, wait = await self._redis.change("tokens", owner, rate, size, wanted)
        return int(granted), float(wait)
