"""The stores that must all pass the same proofs, each opened on a place of its own."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from urllib.parse import quote

from gateway.ports import Clock, Resources
from gateway.storage import Database
from gateway.storage.redis import RedisAddress, RedisClient, RedisPartitions
from gateway.storage.resources.memory import MemoryResources
from gateway.storage.resources.redis import RedisResources
from gateway.storage.resources.sqlite import SqliteResources
from tests.support.redis_server import cluster_url, redis_of_this_run

Opened = Callable[[Path, Clock, Callable[[], int]], AbstractAsyncContextManager[Resources]]


@asynccontextmanager
async def in_memory(folder: Path, clock: Clock, most: Callable[[], int]) -> AsyncIterator[Resources]:
    yield MemoryResources(clock, most)


@asynccontextmanager
async def in_sqlite(folder: Path, clock: Clock, most: Callable[[], int]) -> AsyncIterator[Resources]:
    database = Database(folder / "dragoman.db", window=0.0)
    await database.open()
    yield SqliteResources(database, clock, most)
    await database.close()


@asynccontextmanager
async def in_redis(folder: Path, clock: Clock, most: Callable[[], int]) -> AsyncIterator[Resources]:
    redis = RedisClient(RedisAddress.read(f"{redis_of_this_run().url}?prefix={quote(str(folder))}"))
    await redis.open()
    yield RedisResources(redis, clock, most)
    await redis.close()


@asynccontextmanager
async def in_cluster(folder: Path, clock: Clock, most: Callable[[], int]) -> AsyncIterator[Resources]:
    """In one partition: in several, owners know nothing of each other, and two of them may take one id."""
    redis = RedisPartitions(RedisAddress.read(cluster_url(quote(str(folder)), partitions=1)))
    await redis.open()
    yield RedisResources(redis, clock, most)
    await redis.close()


STORES: dict[str, Opened] = {"memory": in_memory, "sqlite": in_sqlite, "redis": in_redis, "cluster": in_cluster}
COMPARED_STORES = [name for name in STORES if name != "cluster"]
"""Those that property tests compare; the proof `redis_cluster` compares the others."""
