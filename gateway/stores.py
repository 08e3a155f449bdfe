"""Where a server keeps what it has, by one word of its settings: in memory, in a file, or on a server for many."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gateway.config import Config
from gateway.engine import House, Hub, SessionService
from gateway.log import MemoryLog, SqliteLog
from gateway.ports import Answers, Clock, EventLog, Resources, Tokens
from gateway.quotas import Tally
from gateway.resources import (
    AsyncKeyTable,
    KeyStore,
    MemoryAnswers,
    MemoryResources,
    SqliteAnswers,
    SqliteKeyTable,
    SqliteResources,
    ThreadedKeyTable,
)
from gateway.storage import UNSEALED, Database, Seal, key_in

if TYPE_CHECKING:
    from gateway.storage.redis import Redis

FILE = "dragoman.db"


@dataclass(frozen=True)
class Stores:
    """The log, what dialects share beside conversations, answers to requests that may come twice, and keys."""

    log: EventLog
    resources: Resources
    answers: Answers
    keys: AsyncKeyTable
    recount: Callable[[], Awaitable[None]]
    """Find out what everybody keeps, once the log is open."""
    tokens: Tokens | None = None
    """The buckets that several servers share."""


class Limits(Protocol):
    """What the stores want to know of the limits in the settings."""

    @property
    def max_sessions(self) -> int: ...
    @property
    def max_resources(self) -> int: ...


async def _nothing() -> None:
    """What is not there when the server starts need not be counted; what all servers share, Redis counts."""


def stores(config: Config, clock: Clock, limits: Callable[[], Limits], tally: Tally) -> Stores:
    """Made, not yet opened; what is kept is counted in the tally."""
    kind = config.log.partition(":")[0]
    if "://" in config.log:
        return _shared(config, clock, limits, tally)
    most, keys = _most_resources(limits), ThreadedKeyTable(SqliteKeyTable(path_of(config)))
    if kind == "memory":
        return Stores(
            MemoryLog(tally=tally), MemoryResources(clock, most, tally), MemoryAnswers(clock), keys, _nothing,
        )
    path = path_of(config)
    database, seal = Database(path, fsync=config.durability == "fsync"), seal_of(config)
    resources = SqliteResources(database, clock, most, seal, tally)
    return Stores(
        SqliteLog(database, seal, tally), resources, SqliteAnswers(database, clock, seal=seal), keys,
        resources.recount,
    )


def _most_resources(limits: Callable[[], Limits]) -> Callable[[], int]:
    return lambda: limits().max_resources


def path_of(config: Config) -> Path:
    """The database of the data folder, which has the keys even if the log is in memory."""
    return config.data / (config.log.partition(":")[2] or FILE)


def seal_of(config: Config) -> Seal:
    """What secrets are sealed with before they are stored: the keys of the settings, or the data folder's own."""
    if config.log == "memory":
        return UNSEALED
    given = config.secrets_key.get_secret_value()
    return Seal(lambda: [key.strip() for key in given.split(",")] if given else [key_in(config.data)])


def _shared(config: Config, clock: Clock, limits: Callable[[], Limits], tally: Tally) -> Stores:
    """On a Redis server; what talks to it is fetched only where it is wanted."""
    from gateway.log.redis import RedisLog
    from gateway.resources.redis import RedisAnswers, RedisKeyTable, RedisResources
    from gateway.storage.redis import RedisTokens

    fsync, seal, redis = config.durability == "fsync", seal_of(config), redis_of(config)
    return Stores(
        RedisLog(redis, fsync=fsync, seal=seal, tally=tally, most=lambda: limits().max_sessions),
        RedisResources(redis, clock, _most_resources(limits), seal, tally), RedisAnswers(redis, clock, seal=seal),
        RedisKeyTable(redis), _nothing, RedisTokens(redis),
    )


def redis_of(config: Config) -> "Redis":
    from gateway.storage.redis import Address, Redis

    base = config.file.parent if config.file else Path()
    return Redis(
        Address.read(config.log, base), lease=config.limits.lease_seconds, fsync=config.durability == "fsync")


def key_store(config: Config) -> KeyStore:
    """The keys, for commands: they work beside a running server, and without one."""
    if "://" not in config.log:
        return KeyStore(SqliteKeyTable(path_of(config)), config.data)
    from gateway.resources.redis import WaitingKeyTable

    return KeyStore(WaitingKeyTable(lambda: redis_of(config)), config.data)


def session_service(house: House, hub: Hub) -> SessionService:
    """The engine's door; where several servers share a log, one that knows of the others."""
    if isinstance(house.log, MemoryLog | SqliteLog):
        return SessionService(house, hub)
    from gateway.cluster import ClusterSessions
    from gateway.log.redis import RedisLog

    assert isinstance(house.log, RedisLog), "there is no other log"
    return ClusterSessions(house, hub, house.log)
