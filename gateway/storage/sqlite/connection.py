"""Opens the SQLite file for one server at a time, and explains errors with advice."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

from gateway.errors import GatewayError
from gateway.private_files import make_private_folder

from .schema import SCHEMA_VERSION, is_our_file, migrate, version_of

PAGE_BYTES = 4096
CHECKPOINT_BYTES = 4 * 1024 * 1024
"""The size of the write-ahead log from which a checkpoint is done, and to which it is cut afterwards."""
PAGE_CHECK_SECONDS = 1.0
"""For how many seconds the pages of a file are checked before it is written; a large file is checked in part."""


class StorageUnusable(GatewayError):
    """The file cannot be used; the message says why and what to do."""


def open_connection(path: Path, *, fsync: bool, prepared: bool = True) -> sqlite3.Connection:
    """A connection that may write; a file that is not `prepared` is checked first, and migrated."""
    if not path.exists():
        with suppress(OSError):  # the attempt to open the file reports what is wrong
            path.touch(mode=0o600)  # the file will have secrets
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
    try:
        if not prepared:
            check_ours(connection, path)
            check_pages(connection, path)
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if fsync else 'NORMAL'}")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute(f"PRAGMA journal_size_limit = {CHECKPOINT_BYTES}")
        connection.execute("PRAGMA temp_store = MEMORY")
        if not prepared:
            migrate(connection)
            _carry_over(connection)
    except (sqlite3.Error, StorageUnusable):
        connection.close()
        raise
    return connection


def open_beside_server(path: Path) -> sqlite3.Connection:
    """A connection that may write while a server holds the file, or before there is one; raises `StorageUnusable`."""
    try:
        make_private_folder(path.parent)
        connection = open_connection(path, fsync=True, prepared=path.exists() and path.stat().st_size > 0)
        try:
            check_ours(connection, path)
            migrate(connection)
            # no server may be there to do checkpoints
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_BYTES // PAGE_BYTES}")
        except (sqlite3.Error, StorageUnusable):
            connection.close()
            raise
    except (sqlite3.Error, OSError) as error:
        raise StorageUnusable(explain_error(path, error)) from None
    return connection


def _carry_over(connection: sqlite3.Connection) -> None:
    """Do a checkpoint of what a dead server has left; if the disk is full, the write-ahead log stays."""
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()


def check_ours(connection: sqlite3.Connection, path: Path) -> None:
    if not is_our_file(connection):
        raise StorageUnusable(f"{path} is a database, but not one of ours; name another file in `log:`")
    if (version := version_of(connection)) > SCHEMA_VERSION:
        raise StorageUnusable(
            f"{path} was written by a newer Dragoman (version {version} of the tables, this one knows "
            f"{SCHEMA_VERSION}); install that one, or name another file in `log:`"
        )


def check_pages(connection: sqlite3.Connection, path: Path, seconds: float = PAGE_CHECK_SECONDS) -> None:
    """Refuse a file with damaged pages; the check ends after so many seconds."""
    until = time.monotonic() + seconds
    connection.set_progress_handler(lambda: time.monotonic() > until, 10_000)
    try:
        [found] = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return
    finally:
        connection.set_progress_handler(None, 0)
    if found != "ok":
        raise StorageUnusable(f"{path} is damaged ({_one_line(found)}); {HINTS['malformed']}")


def open_read_only(path: Path) -> sqlite3.Connection:
    """A connection that only reads, whether a server writes meanwhile or not."""
    if not path.is_file():
        raise StorageUnusable(f"{path}: there is no such file; is this the right data folder?")
    try:
        connection = _read_only(path)
        try:
            check_ours(connection, path)
        except StorageUnusable:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise StorageUnusable(explain_error(path, error)) from None
    return connection


def _read_only(path: Path) -> sqlite3.Connection:
    """If the folder cannot be written, no server writes the file either, and it is opened as immutable."""
    for how in ("mode=ro", "immutable=1"):
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, isolation_level=None, timeout=5.0)
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            connection.close()
            if how != "mode=ro" or error.sqlite_errorcode & 0xFF not in (
                sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY,
            ):
                raise
        except sqlite3.Error:
            connection.close()
            raise
        else:
            return connection
    raise AssertionError("the second way returns or raises")


class DatabaseLock:
    """Keeps a second server from a database, under every path of the file; the system releases it with the process.

    Locked is the file itself, which cannot be missing, and the file beside it that servers before this one lock. A
    process that closes the database loses all locks that SQLite holds there for it: so it is closed last, and one
    that this process holds is never opened a second time.
    """

    _held: ClassVar[set[tuple[int, int]]] = set()
    """The databases that this process holds, by device and number."""

    def __init__(self, path: Path) -> None:
        self._fds: list[int] = []
        self._inode: tuple[int, int] | None = None
        path = path.resolve()
        try:
            self._take(path.with_name(f"{path.name}.lock"))
            if path.exists() and _inode(path.stat()) in self._held:
                raise BlockingIOError
            self._inode = _inode(os.fstat(self._take(path)))
            self._held.add(self._inode)
        except BaseException:
            self.close()
            raise

    def _take(self, path: Path) -> int:
        import fcntl

        flags = os.O_RDONLY if path.exists() else os.O_RDWR | os.O_CREAT
        fd = os.open(path, flags, 0o600)  # the file will have secrets
        self._fds.append(fd)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return fd

    def close(self) -> None:
        fds, self._fds = self._fds, []
        for fd in fds:
            os.close(fd)
        if self._inode is not None:
            self._held.discard(self._inode)
            self._inode = None

    def __enter__(self) -> "DatabaseLock":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _inode(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_dev, stat.st_ino


def lock_database(path: Path) -> DatabaseLock:
    """The lock that keeps a second server from the file; raises `StorageUnusable` if there is one."""
    try:
        return DatabaseLock(path)
    except BlockingIOError:
        raise StorageUnusable(
            f"{path} is in use by another server; stop that one, or name another file in `log:` (several servers "
            f"share a log through redis://…)"
        ) from None


def create_database(path: Path) -> None:
    """An empty file with our tables, and the folder it is in."""
    try:
        make_private_folder(path.parent)
        open_connection(path, fsync=True, prepared=False).close()
    except (sqlite3.Error, OSError) as error:
        raise StorageUnusable(explain_error(path, error)) from None


@contextmanager
def open_exclusively(path: Path, *, prepared: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection to a file that no server can use meanwhile; what is not committed at the end is rolled back.

    A file that is not `prepared` is checked first, which takes the longer, the larger it is, and migrated.
    """
    if not path.is_file():
        raise StorageUnusable(f"{path}: there is no such file; is this the right data folder?")
    lock = lock_database(path)
    try:
        connection = open_connection(path, fsync=True, prepared=prepared)
    except (sqlite3.Error, OSError) as error:
        lock.close()
        raise StorageUnusable(explain_error(path, error)) from None
    try:
        yield connection
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.close()
        lock.close()


def is_task_error(error: Exception) -> bool:
    """Whether the error is of the work, not of the file: a broken constraint, a mistake in a statement."""
    if not isinstance(error, sqlite3.Error):
        return not isinstance(error, OSError)
    code = getattr(error, "sqlite_errorcode", None)
    return code is None or code & 0xFF in _OWN


_OWN = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG,
        sqlite3.SQLITE_RANGE, sqlite3.SQLITE_MISUSE)
HINTS = {
    "full": "free some space; what was stored is safe, and writing goes on by itself",
    "no space": "free some space; what was stored is safe, and writing goes on by itself",
    "disk i/o": "look at the disk: is it there, is there space, may so large a file be written; what was stored is "
                "safe, and writing goes on by itself",
    "readonly": "make it and its folder writable for this user",
    "read-only": "make it and its folder writable for this user",
    "permission": "make it and its folder writable for this user",
    "unable to open": "make it and its folder writable for this user",
    "malformed": "look at it with `dragoman log verify`; put a copy in its place, or name another file in `log:`",
    "not a database": "name another file in `log:`",
    "locked": "another program holds it; let that end",
    "no such module": "use a Python whose SQLite has full-text search (FTS5)",
    "not a directory": "name another folder in `data:`",
}


def explain_error(path: Path, error: BaseException) -> str:
    """The error, and what can be done about it."""
    words = str(error) if isinstance(error, sqlite3.Error) else getattr(error, "strerror", None) or str(error)
    hint = next((hint for mark, hint in HINTS.items() if mark in words.lower()), "")
    return f"{path}: {_one_line(words)}{'; ' + hint if hint else ''}"


def _one_line(words: object) -> str:
    return " ".join(str(words).split())
