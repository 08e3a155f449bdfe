"""One SQLite file: a thread that writes in groups, a thread that reads, and a thread that does checkpoints."""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import structlog

from gateway.errors import GatewayError, Overloaded
from gateway.private_files import make_private_folder

from .connection import (
    CHECKPOINT_BYTES,
    PAGE_BYTES,
    DatabaseLock,
    StorageUnusable,
    explain_error,
    is_task_error,
    lock_database,
    open_connection,
)
from .schema import version_of

log = structlog.get_logger("dragoman.storage")
WINDOW = 0.002
"""Seconds that writes wait for others, with which they are committed together, after a group of many."""
FEW = 4
"""After a group of fewer writers the next write waits for nobody: the server is nearly idle."""
RETRY_SECONDS = 1.0
"""Seconds after which a group that could not be written is written again."""
GROUPS_PER_CHECKPOINT = 64
"""After so many groups the size of the write-ahead log is checked."""
MAX_WAL_BYTES = 32 * 1024 * 1024
"""The size of the write-ahead log at which the writer pauses for a checkpoint."""


T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]


class WriteSource(Protocol):
    """The log, as the database sees it: it adds its records to every group."""

    def gather(self) -> Work[None] | None:
        """What there is to write now, as one piece of work; None if there is nothing."""
    def committed(self) -> None:
        """The last group of writes is stored."""
    def failed(self, error: GatewayError) -> None:
        """The last group of writes is not stored; gather it again."""


@dataclass(slots=True)
class WriteTask:
    """A piece of work that writes, and the future of its result."""

    work: Work[Any]
    done: asyncio.Future[Any]


@dataclass(slots=True)
class WriteResult:
    """What a piece of work has returned or raised."""

    task: WriteTask
    value: Any = None
    error: BaseException | None = None


class Database:
    """All writes go through one thread; their callers wait until they are committed.

    Each group of writes takes further work from `source`, and reports success or failure to `source`, which offers
    failed work again.
    """

    def __init__(
        self, path: Path, *, window: float = WINDOW, fsync: bool = False, again: float = RETRY_SECONDS
    ) -> None:
        self.path = path
        self.trouble: GatewayError | None = None
        """Why nothing can be written just now."""
        self._window = window
        self._fsync = fsync
        self._again = again
        self._source: WriteSource | None = None
        self._tasks: list[WriteTask] = []
        self._stirred = self._busy = self._closing = self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._lock: DatabaseLock | None = None
        self._writers = 0
        """How many sessions and tasks have something to write since the last group began."""
        self._had_many = False
        """Whether the last group had many writers."""
        self._written = 0
        self._tidies = False
        self._writing = ThreadPoolExecutor(1, "dragoman-write")
        self._reading = ThreadPoolExecutor(1, "dragoman-read")
        self._tidying = ThreadPoolExecutor(1, "dragoman-tidy")
        self._connections: dict[str, sqlite3.Connection] = {}

    def attach(self, source: WriteSource) -> None:
        self._source = source

    async def open(self) -> None:
        """Open the file or make it; raises `StorageUnusable`."""
        self._loop = loop = asyncio.get_running_loop()
        try:
            make_private_folder(self.path.parent)
            self._lock = lock_database(self.path)
            await loop.run_in_executor(self._writing, self._connect, "write")
            await loop.run_in_executor(self._reading, self._connect, "read")
            await loop.run_in_executor(self._tidying, self._connect, "tidy")
        except (sqlite3.Error, OSError) as error:
            await self.close()
            raise StorageUnusable(explain_error(self.path, error)) from None
        except StorageUnusable:
            await self.close()
            raise

    def _connect(self, name: str) -> None:
        self._connections[name] = open_connection(self.path, fsync=self._fsync, prepared=name != "write")

    async def read(self, query: Work[T]) -> T:
        """Run a query in the thread that reads; all its statements see the same state of the file."""
        connection = self._connections.get("read")
        if connection is None:
            raise StorageUnusable(f"{self.path} is closed: the server is about to stop")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._reading, read_snapshot, query, connection)
        except sqlite3.Error as error:
            raise StorageUnusable(explain_error(self.path, error)) from error

    # -- writing --------------------------------------------------------------------------------------------------

    async def write(self, work: Work[T]) -> T:
        """Do the work in the thread that writes; return when it is committed, and raise what it raises."""
        if self.trouble is not None:
            raise self.trouble
        if self._closed:
            raise StorageUnusable(f"{self.path} is closed: the server is about to stop")
        task = WriteTask(work, asyncio.get_running_loop().create_future())
        self._tasks.append(task)
        self.schedule_write()
        result: T = await task.done
        return result

    def schedule_write(self) -> None:
        """A session or a task has something to write: begin a group soon."""
        self._writers += 1
        if not self._stirred and not self._busy and not self._closed:
            self._stirred = True
            self._idle.clear()
            self._loop.call_later(self._window if self._had_many else 0, self._leave)

    def _leave(self) -> None:
        self._stirred = False
        if self._busy or self._closed:
            return
        tasks, self._tasks = self._tasks, []
        batch = self._source.gather() if self._source is not None else None
        if not tasks and batch is None and self.trouble is None:
            self._idle.set()
            return
        self._busy, self._had_many, self._writers = True, self._writers >= FEW, 0
        group = self._loop.run_in_executor(self._writing, write_group, self._connections["write"], batch, tasks)
        group.add_done_callback(partial(self._came_back, batch is not None, tasks))

    def _came_back(self, had_batch: bool, tasks: list[WriteTask], group: asyncio.Future[list[WriteResult]]) -> None:
        """The thread has written the group, or has failed to."""
        self._busy = False
        if (error := group.exception()) is not None:
            self._failed(error, tasks)
            return
        if self.trouble is not None:
            log.info("storage_write_recovered", file=str(self.path))
            self.trouble = None
        if had_batch and self._source is not None:
            self._source.committed()
        for result in group.result():
            _resolve(result)
        self._tidy()
        self._leave()

    def _failed(self, error: BaseException, tasks: list[WriteTask]) -> None:
        """Nothing was written: the tasks fail, and what the source has gathered is written again later."""
        first = self.trouble is None
        self.trouble = Overloaded(f"nothing can be stored just now: {explain_error(self.path, error)}")
        if first:
            log.error("storage_write_failed", file=str(self.path), error=explain_error(self.path, error))
        if not self._closing:
            self._stirred = True  # first: whoever writes more because of the failure joins the next attempt
            self._loop.call_later(self._again, self._leave)
        for task in tasks:
            _resolve(WriteResult(task, error=self.trouble))
        if self._source is not None:
            self._source.failed(self.trouble)
        if self._closing:
            self._idle.set()

    # -- tidying up -----------------------------------------------------------------------------------------------

    def _tidy(self) -> None:
        """Do a checkpoint after some groups or many bytes, in a thread of its own."""
        self._written += 1
        if self._tidies or self._closing:
            return
        if self._written % GROUPS_PER_CHECKPOINT == 0 or self._wal_bytes() > MAX_WAL_BYTES:
            self._tidies = True
            self._tidying.submit(self._carry_over)

    def _carry_over(self) -> None:
        """Do most of the checkpoint in this thread, where nothing waits for it; the rest in the thread that writes."""
        try:
            if self._wal_bytes() > CHECKPOINT_BYTES and self._checkpoint("tidy") > MAX_WAL_BYTES:
                self._checkpoint("tidy")
                self._writing.submit(self._checkpoint, "write").result()
        except (sqlite3.Error, OSError, RuntimeError) as error:
            log.warning("checkpoint_failed", file=str(self.path), error=str(error))
        finally:
            self._tidies = False

    @property
    def _wal(self) -> Path:
        return self.path.with_name(f"{self.path.name}-wal")

    def _wal_bytes(self) -> int:
        try:
            return self._wal.stat().st_size
        except OSError:  # it is gone, as the disk may be; the next write reports that
            return 0

    def _checkpoint(self, name: str) -> int:
        """Do a passive checkpoint, for which neither readers nor the writer wait; return the size of the log."""
        _, pages, _ = self._connections[name].execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return int(pages) * PAGE_BYTES

    async def close(self) -> None:
        """Write what is left, if that is possible, and close the file."""
        self._closing = True
        if self.trouble is not None and "write" in self._connections:
            self._idle.clear()
            self._leave()  # the last attempt: what cannot be stored now is lost
        await self._idle.wait()
        self._closed = True
        loop = asyncio.get_running_loop()
        for name, thread in (("read", self._reading), ("tidy", self._tidying), ("write", self._writing)):
            connection = self._connections.pop(name, None)
            if connection is not None:
                await loop.run_in_executor(thread, connection.close)
            thread.shutdown(wait=False)
        if self._lock is not None:
            self._lock.close()


def _resolve(result: WriteResult) -> None:
    done = result.task.done
    if done.done():
        return
    if result.error is None:
        done.set_result(result.value)
    else:
        done.set_exception(result.error)


def read_snapshot(query: Work[T], connection: sqlite3.Connection) -> T:
    """Run a query of which no statement sees what is committed after its first one."""
    connection.execute("BEGIN")
    try:
        return query(connection)
    finally:
        _roll_back(connection)


def write_group(
    connection: sqlite3.Connection, batch: Work[None] | None, tasks: list[WriteTask],
) -> list[WriteResult]:
    """Commit all of the group, or nothing and raise why; if there is nothing to write, try whether the file can be."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        if batch is not None:
            batch(connection)
        elif not tasks:
            _probe(connection)
        results = [_attempt(connection, task) for task in tasks]
        connection.execute("COMMIT")
        return results
    finally:
        _roll_back(connection)  # after a commit there is nothing to roll back


def _attempt(connection: sqlite3.Connection, task: WriteTask) -> WriteResult:
    result = WriteResult(task)
    with Savepoint(connection, result):
        result.value = task.work(connection)
    return result


class Savepoint:
    """Rolls one piece of work back if its own error ended it; an error of the file ends the whole group."""

    def __init__(self, connection: sqlite3.Connection, result: WriteResult) -> None:
        self._connection = connection
        self._result = result

    def __enter__(self) -> None:
        self._connection.execute("SAVEPOINT piece")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if error is not None:
            if not isinstance(error, Exception) or not is_task_error(error):
                return False
            self._result.error = error  # it is raised again where the work was asked for
            self._connection.execute("ROLLBACK TO piece")
        self._connection.execute("RELEASE piece")
        return True


def _probe(connection: sqlite3.Connection) -> None:
    """Write a page that has the content of before, to see whether the file can be written."""
    connection.execute(f"PRAGMA user_version = {version_of(connection)}")


def _roll_back(connection: sqlite3.Connection) -> None:
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        log.warning("rollback_failed", error=str(error))
