"""Keys in the SQLite database of the data folder; `dragoman keys` can use them while a server runs."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from gateway.errors import Overloaded
from gateway.ports import Key, KeyChange, Keys, KeyUse, with_use
from gateway.storage.sqlite import StorageUnusable, add_to_counter, explain_error, open_beside_server

VERSION = "keys.version"
"""The counter of the changes."""

T = TypeVar("T")
Stamp = tuple[tuple[int, ...], ...]


class SqliteKeyTable:
    """The keys of a SQLite file, over a connection of its own; the file is created with the first key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None

    def load(self) -> tuple[int, Keys]:
        def read(file: sqlite3.Connection) -> tuple[int, Keys]:
            file.execute("BEGIN")
            try:
                rows = file.execute("SELECT record, used_at, used_from FROM keys").fetchall()
                return add_to_counter(file, VERSION), [
                    with_use(decode_key(row[0]), KeyUse(row[1] or 0, row[2])) for row in rows
                ]
            finally:
                file.execute("ROLLBACK")

        return self._query(read) if self.path.exists() else (0, [])

    def version(self) -> int:
        return self._query(lambda file: add_to_counter(file, VERSION)) if self.path.exists() else 0

    def change(self, version: int, change: KeyChange) -> bool:
        def write(file: sqlite3.Connection) -> bool:
            if add_to_counter(file, VERSION) != version:
                return False
            if not change.put and not change.remove:
                return True
            add_to_counter(file, VERSION, 1)
            file.executemany("DELETE FROM keys WHERE hash = ?", [(key.hash,) for key in change.remove])
            file.executemany(
                "INSERT INTO keys (hash, record, used_at, used_from) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (hash) DO UPDATE SET record = excluded.record",
                [(key.hash, encode_key(key), key.used and key.used.timestamp(), key.used_from) for key in change.put],
            )
            return True

        return self._written(write)

    def uses(self, hashes: Iterable[str]) -> dict[str, KeyUse]:
        def read(file: sqlite3.Connection) -> dict[str, KeyUse]:
            rows = (file.execute("SELECT hash, used_at, used_from FROM keys WHERE hash = ?", (one,)).fetchone()
                    for one in hashes)
            return {row[0]: KeyUse(row[1], row[2] or "") for row in rows if row is not None and row[1] is not None}

        return self._query(read) if self.path.exists() else {}

    def touch(self, uses: Mapping[str, KeyUse]) -> None:
        """Store when keys were used last, without waiting for the disk."""
        self._written(lambda file: file.executemany(
            "UPDATE keys SET used_at = ?, used_from = ? WHERE hash = ? AND coalesce(used_at, 0) < ?",
            [(use.at, use.address, one, use.at) for one, use in uses.items()],
        ), fsync=False)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def stamp(self) -> Stamp:
        """A stamp that differs if the file was written to."""
        return _stamp(self.path), _stamp(self.path.with_name(f"{self.path.name}-wal"))

    def _written(self, write: Callable[[sqlite3.Connection], T], *, fsync: bool = True) -> T:
        def work(file: sqlite3.Connection) -> T:
            file.execute(f"PRAGMA synchronous = {'FULL' if fsync else 'NORMAL'}")
            file.execute("BEGIN IMMEDIATE")
            try:
                result = write(file)
                file.execute("COMMIT")
                return result
            except BaseException:
                if file.in_transaction:
                    file.execute("ROLLBACK")
                raise

        return self._query(work)

    def _query(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            if self._connection is None:
                self._connection = open_beside_server(self.path)
            return work(self._connection)
        except (sqlite3.Error, OSError, StorageUnusable) as error:
            why = error.message if isinstance(error, StorageUnusable) else explain_error(self.path, error)
            raise Overloaded(f"keys cannot be read or stored just now: {why}") from None


class ThreadedKeyTable:
    """A key table for an event loop; a thread of its own waits for the file, if there is one."""

    def __init__(self, table: SqliteKeyTable) -> None:
        self._table = table
        self._thread = ThreadPoolExecutor(1, "dragoman-keys")
        self._version = -1
        self._stamp: Stamp = ()
        self._again = True
        self._has_thread = False

    async def version(self) -> int:
        """The version, which is asked for often: the file is read if it was written to, and once more after that.

        Two writes within one tick of the file system's clock may leave the same stamp; the second look finds the later.
        """
        stamp = self._table.stamp
        if stamp != self._stamp or self._again:
            self._again = stamp != self._stamp
            self._stamp, self._version = stamp, await self._in_thread(self._table.version) if self._is_stored else 0
        return self._version

    async def load(self) -> tuple[int, Keys]:
        return await self._in_thread(self._table.load) if self._is_stored else (0, [])

    async def change(self, version: int, change: KeyChange) -> bool:
        return await self._in_thread(lambda: self._table.change(version, change))

    async def uses(self, hashes: Iterable[str]) -> dict[str, KeyUse]:
        return await self._in_thread(lambda: self._table.uses(hashes))

    async def touch(self, uses: Mapping[str, KeyUse]) -> None:
        await self._in_thread(lambda: self._table.touch(uses))

    async def close(self) -> None:
        if self._has_thread:
            await self._in_thread(self._table.close)
        self._thread.shutdown(wait=False)

    @property
    def _is_stored(self) -> bool:
        return self._table.path.exists()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        self._has_thread = True
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        stat = path.stat()
    except OSError:
        return ()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


# -- records ----------------------------------------------------------------------------------------------------------

decode_key = msgspec.json.Decoder(Key).decode


def encode_key(key: Key) -> bytes:
    """The key without its last use, which is stored apart because it changes often."""
    return msgspec.json.encode(replace(key, used=None, used_from=""))


