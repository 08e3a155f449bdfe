"""The file of a SQLite log, read without a server: its sessions, and the segments of each one."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import gateway.model as m
from gateway.errors import NotFound
from gateway.ports import SessionHead
from gateway.storage.sqlite import StorageUnusable, explain_error, open_read_only

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
        """All sessions, oldest first; in pages, so that nobody is held up by a long look."""
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
        """All that the session has; none if nobody knows it."""
        found = self.find(session_id)
        return [] if found is None else [r for segment in self.segments(found.ordinal) for r in segment.records()]

    def words(self, ordinal: int) -> Iterator[str]:
        """The ids of turns and asks by which the session can be found."""
        return (word for (word,) in self.connection.execute("SELECT word FROM places WHERE session = ?", (ordinal,)))


@contextmanager
def open_log_file(path: Path) -> Iterator[LogFile]:
    """The file, to be read; what is wrong with it is told in words."""
    connection = open_read_only(path)
    try:
        yield LogFile(connection)
    except sqlite3.Error as error:
        raise StorageUnusable(explain_error(path, error)) from None
    finally:
        connection.close()
