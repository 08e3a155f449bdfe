"""Compaction of a SQLite log: leftovers are dropped, small segments are merged, and the file is made smaller."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from gateway.storage.sqlite import StorageUnusable, explain_error, open_exclusively

from .log_file import LogFile, Progress, Segment

MAX_SEGMENT_BYTES = 128 * 1024
"""A segment of this size is not merged with others, so that reading a page decodes few other records."""

SESSIONS_PER_COMMIT = 100
"""How many sessions are committed at a time."""


@dataclass
class CompactionReport:
    """What was done to the file."""

    bytes_before: int
    bytes_after: int = 0
    segments_before: int = 0
    segments_after: int = 0
    leftovers: int = 0


def compact_log(path: Path, progress: Progress = lambda done, total: None) -> CompactionReport:
    """Nothing that can be read changes. Raises `StorageUnusable` while a server holds the file."""
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


def _size(path: Path) -> int:
    """With what waits to be carried over."""
    return sum(part.stat().st_size for part in (path, path.with_name(f"{path.name}-wal")) if part.exists())


def _drop_leftovers(connection: sqlite3.Connection, done: CompactionReport) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for table in ("segments", "places"):
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
    """Neighbours of one model put together, up to a size; their lines stay as they are."""
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
