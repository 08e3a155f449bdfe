"""The file made smaller: what nothing needs is dropped, many small segments become few, and the rest moves together."""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from gateway.storage import Unusable, alone, trouble_of

from .file import LogFile, Segment

Progress = Callable[[int, int], None]
FULL_BYTES = 128 * 1024
"""A segment of this size takes no more in: what is read in pages should not have to be unpacked in loaves."""

TOGETHER = 100
"""How many sessions are committed at a time."""


@dataclass
class Compacted:
    """What became of the file."""

    bytes_before: int
    bytes_after: int = 0
    segments_before: int = 0
    segments_after: int = 0
    leftovers: int = 0


def compact(path: Path, progress: Progress = lambda done, total: None) -> Compacted:
    """Nothing that can be read changes. Raises `Unusable` while a server holds the file, or if it cannot be done."""
    done = Compacted(_size(path))
    with alone(path) as connection:
        try:
            _drop_leftovers(connection, done)
            _merge_all(connection, done, progress)
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise Unusable(trouble_of(path, error)) from None
    done.bytes_after = _size(path)
    return done


def _size(path: Path) -> int:
    """With what waits to be carried over."""
    return sum(part.stat().st_size for part in (path, path.with_name(f"{path.name}-wal")) if part.exists())


def _drop_leftovers(connection: sqlite3.Connection, done: Compacted) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for table in ("segments", "places"):
        cursor = connection.execute(
            f"DELETE FROM {table} WHERE session NOT IN (SELECT ordinal FROM sessions)")  # noqa: S608
        done.leftovers += cursor.rowcount
    connection.execute("COMMIT")


def _merge_all(connection: sqlite3.Connection, done: Compacted, progress: Progress) -> None:
    file = LogFile(connection)
    number, total, heads = 0, file.size, file.heads()
    while some := list(islice(heads, TOGETHER)):
        connection.execute("BEGIN IMMEDIATE")
        for head in some:
            _merge(file, head.ordinal, done)
        connection.execute("COMMIT")
        number += len(some)
        progress(number, total)


def _merge(file: LogFile, ordinal: int, done: Compacted) -> None:
    segments = list(file.segments(ordinal))
    fewer = list(merged(segments))
    if len(fewer) < len(segments):
        file.connection.execute("DELETE FROM segments WHERE session = ?", (ordinal,))
        file.connection.executemany(
            "INSERT INTO segments VALUES (?, ?, ?, ?, ?)", [(ordinal, *segment) for segment in fewer])
    done.segments_before += len(segments)
    done.segments_after += len(fewer)


def merged(segments: list[Segment]) -> Iterator[Segment]:
    """Neighbours of one model put together, up to a size; their lines stay as they are."""
    waiting: Segment | None = None
    for segment in segments:
        if waiting is None:
            waiting = segment
        elif waiting.model != segment.model or waiting.size + segment.size > FULL_BYTES:
            yield waiting
            waiting = segment
        else:
            waiting = Segment(segment.last, segment.model, waiting.spine + segment.spine, waiting.words + segment.words)
    if waiting is not None:
        yield waiting
