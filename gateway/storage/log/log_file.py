"""The file of a SQLite log without a server: its sessions and segments are read, and it is compacted."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import gateway.model as m
from gateway.errors import NotFound
from gateway.ports import SessionHead
from gateway.storage.sqlite import StorageUnusable, add_to_counter, explain_error, open_exclusively, open_read_only

from .sqlite import SELECT_HEADS, decode_lines, row_to_head

Progress = Callable[[int, int], None]
"""(how much is done, how much there is): called while a file is worked on."""


class Segment(NamedTuple):
    """What one commit has stored of one session, as it is in the file."""

    last: int
    model: int
    spine: bytes
    words: bytes

    def records(self) -> list[m.Record]:
        """The records in order; raises msgspec's errors if they cannot be read."""
        return sorted(decode_lines(self.spine) + decode_lines(self.words), key=lambda record: record.seq)

    @property
    def size(self) -> int:
        return len(self.spine) + len(self.words)

    @property
    def is_parted(self) -> bool:
        """Whether all deltas, and nothing else, are in the column for deltas."""
        return (
            all(type(record.event) is m.BlockDelta for record in decode_lines(self.words))
            and not any(type(record.event) is m.BlockDelta for record in decode_lines(self.spine))
        )


class LogFile:
    """Reads; a server may be at work on the file meanwhile."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    @property
    def size(self) -> int:
        return int(self.connection.execute("SELECT count(*) FROM sessions").fetchone()[0])

    def heads(self) -> Iterator[SessionHead]:
        """All sessions, oldest first; in pages, so that a long read does not delay a server."""
        page, after = f"{SELECT_HEADS} WHERE ordinal > ? ORDER BY ordinal LIMIT 256", 0
        while rows := self.connection.execute(page, (after,)).fetchall():
            yield from map(row_to_head, rows)
            after = rows[-1][0]

    def find(self, session_id: str) -> SessionHead | None:
        row = self.connection.execute(f"{SELECT_HEADS} WHERE session_id = ?", (session_id,)).fetchone()
        return None if row is None else row_to_head(row)

    def head(self, session_id: str) -> SessionHead:
        if (found := self.find(session_id)) is None:
            raise NotFound(f"there is no session '{session_id}'")
        return found

    def segments(self, ordinal: int) -> Iterator[Segment]:
        rows = self.connection.execute(
            "SELECT last, model, spine, words FROM segments WHERE session = ? ORDER BY last", (ordinal,))
        return (Segment(*row) for row in rows.fetchall())

    def records(self, session_id: str) -> list[m.Record]:
        """All segments of the session; none if there is no such session."""
        found = self.find(session_id)
        return [] if found is None else [r for segment in self.segments(found.ordinal) for r in segment.records()]

    def first_record(self, session_id: str) -> m.Record | None:
        """The record that created the session; None if there is no such session."""
        row = self.connection.execute(
            "SELECT last, model, spine, x'' FROM segments JOIN sessions ON ordinal = session WHERE session_id = ? "
            "ORDER BY last LIMIT 1", (session_id,)).fetchone()
        return None if row is None else Segment(*row).records()[0]

    def lookup_ids(self, ordinal: int) -> Iterator[str]:
        """The ids of turns and asks by which the session can be found."""
        return (word for (word,) in self.connection.execute("SELECT word FROM places WHERE session = ?", (ordinal,)))


@contextmanager
def open_log_file(path: Path) -> Iterator[LogFile]:
    """The file, open for reading; an error says in words why the file cannot be read."""
    connection = open_read_only(path)
    try:
        yield LogFile(connection)
    except sqlite3.Error as error:
        raise StorageUnusable(explain_error(path, error)) from None
    finally:
        connection.close()


MAX_SEGMENT_BYTES = 128 * 1024
"""A segment of this size is not merged with others, so that reading a page decodes few other records."""

SESSIONS_PER_COMMIT = 100
"""How many sessions are committed at a time."""


@dataclass
class CompactionReport:
    """How compaction has changed the file."""

    bytes_before: int
    bytes_after: int = 0
    segments_before: int = 0
    segments_after: int = 0
    leftovers: int = 0


def compact_log(path: Path, progress: Progress = lambda done, total: None) -> CompactionReport:
    """Merge small segments, and free unused pages; records stay as they are.

    Raises `StorageUnusable` while a server holds the file.
    """
    done = CompactionReport(_size(path))
    with open_exclusively(path) as connection:
        try:
            _drop_leftovers(connection, done)
            _merge_all(connection, done, progress)
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise StorageUnusable(explain_error(path, error)) from None
    done.bytes_after = _size(path)
    return done


class SqliteOwnerTraces:
    """What the file has of a user beside sessions, resources and keys: stored responses and counters.

    Every method raises `StorageUnusable` while a server holds the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    async def check_data(self) -> None:
        """Raise `NotFound` if there is no such file; nothing is written."""
        if not self._path.exists():
            raise NotFound(f"there is no file {self._path}; name the server's data folder with --data, or its "
                           "settings with --config")

    async def count_responses(self, owner: str) -> int:
        """The number of stored responses to requests of the user."""
        with open_exclusively(self._path) as connection:
            found: int = connection.execute("SELECT count(*) FROM answers WHERE owner = ?", (owner,)).fetchone()[0]
            return found

    async def erase(self, owner: str) -> bool:
        """Erase the traces of a user who has nothing else; nobody else uses the file, so they are always erased."""
        with self._changing() as connection:
            number, size = connection.execute(
                "SELECT count(*), total(length(body)) FROM answers WHERE owner = ?", (owner,)).fetchone()
            connection.execute("DELETE FROM answers WHERE owner = ?", (owner,))
            add_to_counter(connection, "answers.number", -number)
            add_to_counter(connection, "answers.bytes", -int(size))
            connection.execute(
                "DELETE FROM counters WHERE value = 0 AND substr(name, -length(:end)) = :end", {"end": f"/{owner}"})
        return True

    async def rewrite_file(self) -> bool:
        """Write the file anew, without what was deleted."""
        with self._changing() as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return True

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with open_exclusively(self._path) as connection:
            try:
                yield connection
            except sqlite3.Error as error:
                raise StorageUnusable(explain_error(self._path, error)) from None


def _size(path: Path) -> int:
    """The size of the file in bytes, with its write-ahead log."""
    return sum(part.stat().st_size for part in (path, path.with_name(f"{path.name}-wal")) if part.exists())


def _drop_leftovers(connection: sqlite3.Connection, done: CompactionReport) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for table in ("segments", "places", "lists"):
        cursor = connection.execute(
            f"DELETE FROM {table} WHERE session NOT IN (SELECT ordinal FROM sessions)")  # noqa: S608
        done.leftovers += cursor.rowcount
    connection.execute("COMMIT")


def _merge_all(connection: sqlite3.Connection, done: CompactionReport, progress: Progress) -> None:
    file = LogFile(connection)
    number, total, heads = 0, file.size, file.heads()
    while some := list(islice(heads, SESSIONS_PER_COMMIT)):
        connection.execute("BEGIN IMMEDIATE")
        for head in some:
            _merge(file, head.ordinal, done)
        connection.execute("COMMIT")
        number += len(some)
        progress(number, total)


def _merge(file: LogFile, ordinal: int, done: CompactionReport) -> None:
    segments = list(file.segments(ordinal))
    fewer = list(merge_segments(segments))
    if len(fewer) < len(segments):
        file.connection.execute("DELETE FROM segments WHERE session = ?", (ordinal,))
        file.connection.executemany(
            "INSERT INTO segments VALUES (?, ?, ?, ?, ?)", [(ordinal, *segment) for segment in fewer])
    done.segments_before += len(segments)
    done.segments_after += len(fewer)


def merge_segments(segments: list[Segment]) -> Iterator[Segment]:
    """Merge neighbouring segments of one model up to `MAX_SEGMENT_BYTES`; their records stay as they are."""
    waiting: Segment | None = None
    for segment in segments:
        if waiting is None:
            waiting = segment
        elif waiting.model != segment.model or waiting.size + segment.size > MAX_SEGMENT_BYTES:
            yield waiting
            waiting = segment
        else:
            waiting = Segment(segment.last, segment.model, waiting.spine + segment.spine, waiting.words + segment.words)
    if waiting is not None:
        yield waiting
