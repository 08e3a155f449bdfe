"""The logs that must all pass the same proofs, each opened on a place of its own."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from uuid import uuid4

import gateway.model as m
from gateway.ports import EventLog
from gateway.storage import Database
from gateway.storage.log import MemoryLog, SqliteLog
from gateway.storage.log.redis import PartitionedLog, RedisLog
from gateway.storage.redis import RedisAddress, RedisClient, RedisPartitions
from tests.support.redis_server import cluster_url, redis_of_this_run

Opened = Callable[[Path], AbstractAsyncContextManager[EventLog]]


@asynccontextmanager
async def in_memory(folder: Path) -> AsyncIterator[EventLog]:
    log = MemoryLog()
    await log.open()
    yield log
    await log.close()


@asynccontextmanager
async def in_sqlite(folder: Path) -> AsyncIterator[EventLog]:
    log = SqliteLog(Database(folder / "log.db"))
    await log.open()
    yield log
    await log.close()


@asynccontextmanager
async def in_redis(folder: Path) -> AsyncIterator[EventLog]:
    log = RedisLog(RedisClient(RedisAddress.read(f"{redis_of_this_run().url}?prefix={uuid4().hex}")))
    await log.open()
    yield log
    await log.close()


@asynccontextmanager
async def in_cluster(folder: Path) -> AsyncIterator[EventLog]:
    log = PartitionedLog(RedisPartitions(RedisAddress.read(cluster_url(uuid4().hex))))
    await log.open()
    yield log
    await log.close()


LOGS: dict[str, Opened] = {"memory": in_memory, "sqlite": in_sqlite, "redis": in_redis, "cluster": in_cluster}
COMPARED_LOGS = [name for name in LOGS if name != "cluster"]
"""Those that property tests compare; the proof `redis_cluster` compares the others."""


def created(session_id: str, owner: str = "ann") -> m.Record:
    return m.Record(seq=1, at=1.0, session_id=session_id, event=m.SessionCreated(agent="a", owner=owner))


def note(session_id: str, seq: int) -> m.Record:
    return m.Record(seq=seq, at=1.0, session_id=session_id, event=m.NoticePosted(topic="t", title=str(seq)))


async def put(log: EventLog, *records: m.Record) -> None:
    """Append, and wait until all is safe."""
    for record in records:
        log.append(record)
    for record in records:
        await log.wait_stored(record.session_id, record.seq)
