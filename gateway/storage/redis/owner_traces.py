"""What Redis has of a user beside sessions, resources and keys: stored responses, counters, marks of the index."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from .connection import RedisUnreachable
from .shared import SharedRedis

SEPARATOR = "\0"


class RedisOwnerTraces:
    """Counts and erases the traces of a user, each time over a new connection; servers may run meanwhile."""

    def __init__(self, redis: Callable[[], SharedRedis]) -> None:
        self._make = redis

    async def check_data(self) -> None:
        """Raise `NotFound` if no server has stored anything there; nothing is written."""
        async with self._connected() as redis:
            await redis.check_has_data()

    async def count_responses(self, owner: str) -> int:
        """The number of stored responses to requests of the user."""
        async with self._connected() as redis:
            found = await asyncio.gather(*(part.read_all([("HKEYS", part.key("answers"))]) for part in redis.parts))
        start = f"{owner}{SEPARATOR}".encode(errors="surrogatepass")
        return sum(1 for [places] in found for place in places if place.startswith(start))

    async def erase(self, owner: str) -> bool:
        """Erase the traces; False if the user has sessions or resources again."""
        async with self._connected() as redis:
            await redis.open()
            names = [key.split(SEPARATOR) for word in ("all", "indexed") async for key in redis.scan(word)]
            kinds = {words[0] for words in names if words[1] == owner}
            return all(await asyncio.gather(
                *(part.run_script("erase_owner", owner, *sorted(kinds)) for part in redis.parts)))

    async def rewrite_file(self) -> bool:
        """Let Redis write its append-only file anew, without what was deleted; False if it refuses."""
        async with self._connected() as redis:
            try:
                await redis.ask_servers(("BGREWRITEAOF",))
            except RedisUnreachable:
                return False
        return True

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[SharedRedis]:
        redis = self._make()
        try:
            yield redis
        finally:
            await redis.close()
