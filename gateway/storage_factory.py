"""Makes the storage that the setting `log:` names: in memory, in an SQLite file, or in Redis."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gateway.config import Config
from gateway.engine import Hub, Runtime, SessionTable, local_session_service
from gateway.ports import (
    AsyncKeyTable,
    Clock,
    EventLog,
    ManagedSessionService,
    Resource,
    Resources,
    ResponseStore,
    TokenBuckets,
)
from gateway.quotas import PartQuotas, Quotas, StoreTally
from gateway.resources import KeyStore
from gateway.storage import UNSEALED, Database, FernetSeal, Seal, load_or_create_key
from gateway.storage.log import MemoryLog, SqliteLog, SqliteOwnerTraces
from gateway.storage.resources import (
    MemoryResources,
    MemoryResponses,
    SqliteKeyTable,
    SqliteResources,
    SqliteResponses,
    ThreadedKeyTable,
    read_stored_resources,
)

if TYPE_CHECKING:
    from gateway.storage.redis import RedisOwnerTraces, SharedRedis, StoreCounts

DATABASE_FILE = "dragoman.db"
MAX_READ = 10_000


@dataclass(frozen=True)
class Storage:
    """The event log, the resources, the stored responses for idempotency keys, and the keys."""

    log: EventLog
    resources: Resources
    answers: ResponseStore
    keys: AsyncKeyTable
    recount: Callable[[], Awaitable[None]]
    """Counts what each owner has, once the log is open."""
    tokens: TokenBuckets | None = None
    """The token buckets that several servers share."""


class StorageLimits(Protocol):
    """The limits that the stores need."""

    @property
    def max_sessions(self) -> int: ...
    @property
    def max_resources(self) -> int: ...


async def _count_nothing() -> None:
    """Count nothing: a store in memory is empty at the start, and Redis counts for all servers."""


def make_storage(config: Config, clock: Clock, limits: Callable[[], StorageLimits], tally: Quotas) -> Storage:
    """Return the storage, not yet opened; the quotas count what is stored."""
    kind = config.log.partition(":")[0]
    if "://" in config.log:
        return _redis_storage(config, clock, limits, tally)
    most, keys = _most_resources(limits), ThreadedKeyTable(SqliteKeyTable(database_path(config)))
    if kind == "memory":
        return Storage(
            MemoryLog(tally=tally), MemoryResources(clock, most, tally), MemoryResponses(clock), keys, _count_nothing,
        )
    path = database_path(config)
    database, seal = Database(path, fsync=config.durability == "fsync"), make_seal(config)
    resources = SqliteResources(database, clock, most, seal, tally)
    return Storage(
        SqliteLog(database, seal, tally), resources, SqliteResponses(database, clock, seal=seal), keys,
        resources.recount,
    )


def _most_resources(limits: Callable[[], StorageLimits]) -> Callable[[], int]:
    return lambda: limits().max_resources


def database_path(config: Config) -> Path:
    """Return the database of the data folder, which has the keys even if the log is in memory."""
    return config.data / (config.log.partition(":")[2] or DATABASE_FILE)


def make_seal(config: Config) -> Seal:
    """Return the seal for stored secrets, with the keys of the settings or of the data folder."""
    if config.log == "memory":
        return UNSEALED
    return FernetSeal(lambda: secrets_keys(config))


def _redis_storage(config: Config, clock: Clock, limits: Callable[[], StorageLimits], tally: Quotas) -> Storage:
    """Return the storage on a Redis server or a cluster; its modules are imported only here."""
    from gateway.storage.log.redis import PartitionedLog, RedisLog
    from gateway.storage.redis import RedisPartitions, RedisTokenBuckets
    from gateway.storage.resources.redis import RedisKeyTable, RedisResources
    from gateway.storage.resources.redis_responses import RedisResponses

    fsync, seal, redis = config.durability == "fsync", make_seal(config), make_redis(config)
    most, tallies, log = lambda: limits().max_sessions, list[StoreTally]([tally]), None
    if isinstance(redis, RedisPartitions):
        tallies = [PartQuotas(tally) for _ in redis.parts]
        log = PartitionedLog(redis, fsync=fsync, seal=seal, tallies=tallies, most=most)
    return Storage(
        log or RedisLog(redis.parts[0], fsync=fsync, seal=seal, tally=tally, most=most),
        RedisResources(redis, clock, _most_resources(limits), seal, tallies), RedisResponses(redis, clock, seal=seal),
        RedisKeyTable(redis), _count_nothing, RedisTokenBuckets(redis),
    )


def make_redis(config: Config) -> "SharedRedis":
    """The client of the Redis server, or of the cluster, that the settings name; it is not open."""
    from gateway.storage.redis import RedisAddress, RedisClient, RedisPartitions

    address = RedisAddress.read(config.log, config.file.parent if config.file else Path())
    kind: type[RedisClient | RedisPartitions] = RedisPartitions if address.nodes else RedisClient
    return kind(
        address, lease=config.limits.lease_seconds, fsync=config.durability == "fsync",
        name=f"{socket.gethostname()}:{config.port}")


async def move_store(
    source: Config, target: Config, *, is_dry: bool, progress: Callable[[int, int], None],
) -> "StoreCounts":
    """Move everything from the Redis of some settings to that of others, or only say how much that is."""
    from gateway.storage.redis import StoreMove

    ends = make_redis(source), make_redis(target)
    try:
        move = StoreMove(*ends, progress)
        return await (move.check() if is_dry else move.run())
    finally:
        for redis in ends:
            await redis.close()


def secrets_keys(config: Config) -> list[str]:
    """Return the keys that seal secrets, of the settings or of the data folder; the first one seals."""
    given = config.secrets_key.get_secret_value()
    return [key.strip() for key in given.split(",")] if given else [load_or_create_key(config.data)]


def make_key_store(config: Config) -> KeyStore:
    """Return the key store for commands, which run with or without a server."""
    if "://" not in config.log:
        return KeyStore(SqliteKeyTable(database_path(config)), config.data)
    from gateway.storage.resources.redis import BlockingKeyTable

    return KeyStore(BlockingKeyTable(lambda: make_redis(config)), config.data)


def read_resources(config: Config, kind: str, owner: str) -> Sequence[Resource]:
    """The resources of a kind, for commands, which run beside servers; nothing outlives a server with `log: memory`."""
    if config.log == "memory":
        return ()
    if "://" not in config.log:
        return read_stored_resources(database_path(config), kind, owner)

    async def read() -> Sequence[Resource]:
        from gateway.storage.resources.redis import RedisResources

        redis = make_redis(config)
        try:
            return await RedisResources(redis, time.time).list(kind, owner, limit=MAX_READ)
        finally:
            await redis.close()

    return asyncio.run(read())


def make_owner_traces(config: Config) -> "SqliteOwnerTraces | RedisOwnerTraces":
    """What is stored of users beside sessions, resources and keys, for the command that erases it."""
    if "://" not in config.log:
        return SqliteOwnerTraces(database_path(config))
    from gateway.storage.redis import RedisOwnerTraces

    return RedisOwnerTraces(lambda: make_redis(config))


def make_session_service(
    runtime: Runtime, table: SessionTable, hub: Hub, stop: Callable[[], None] = lambda: None,
) -> ManagedSessionService:
    """The session service of this server: of the only one, or of one of several that share a log in Redis.

    `stop` is called when an operator has asked this one of several servers to drain.
    """
    if isinstance(runtime.log, MemoryLog | SqliteLog):
        return local_session_service(runtime, table, hub)
    from gateway.cluster import cluster_session_service
    from gateway.storage.log.redis import PartitionedLog, RedisLog

    assert isinstance(runtime.log, RedisLog | PartitionedLog), "there is no other log"
    return cluster_session_service(runtime, table, hub, runtime.log, stop)
