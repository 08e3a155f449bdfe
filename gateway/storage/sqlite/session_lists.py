"""The lists of sessions in SQLite: a row for each session and label; a page is found without reading the others."""

import sqlite3
from collections.abc import Sequence

import msgspec

import gateway.model as m
from gateway.ports import ListedSession, ListOrder

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(m.SessionSummary).decode
_decode_lines = msgspec.json.Decoder(m.Record).decode_lines

PLACES = "SELECT session FROM lists WHERE owner = ? AND label = ? ORDER BY"
PAGES: dict[ListOrder, str] = {
    "created": f"{PLACES} session DESC LIMIT ? OFFSET ?",
    "updated": f"{PLACES} updated_at DESC, session DESC LIMIT ? OFFSET ?",
}
CREATED = (
    "SELECT ordinal FROM sessions WHERE owner = ? AND created_at BETWEEN ? AND ? ORDER BY created_at, ordinal LIMIT ?"
)


def add_session_lists(file: sqlite3.Connection) -> None:
    """Create the tables, for the sessions that there are as well."""
    file.execute("ALTER TABLE sessions ADD COLUMN summary BLOB")
    file.execute(
        "CREATE TABLE lists (owner TEXT NOT NULL, label TEXT NOT NULL, session INTEGER NOT NULL, "
        "updated_at REAL NOT NULL, PRIMARY KEY (owner, label, session)) WITHOUT ROWID"
    )
    file.execute("CREATE INDEX lists_by_change ON lists (owner, label, updated_at, session)")
    file.execute(
        "CREATE TABLE list_sizes (owner TEXT NOT NULL, label TEXT NOT NULL, size INTEGER NOT NULL, "
        "PRIMARY KEY (owner, label)) WITHOUT ROWID"
    )
    for ordinal, owner in file.execute("SELECT ordinal, owner FROM sessions").fetchall():
        rows = file.execute("SELECT spine FROM segments WHERE session = ? ORDER BY last", (ordinal,))
        update_lists(file, ordinal, owner, [record for (spine,) in rows for record in _decode_lines(spine)])


def add_creation_times(file: sqlite3.Connection) -> None:
    """Create the index of the times at which sessions were created, for the sessions that there are as well."""
    file.execute("ALTER TABLE sessions ADD COLUMN created_at REAL")
    summaries = file.execute("SELECT ordinal, summary FROM sessions WHERE summary IS NOT NULL").fetchall()
    file.executemany(
        "UPDATE sessions SET created_at = ? WHERE ordinal = ?",
        [(_decode(summary).created_at, ordinal) for ordinal, summary in summaries])
    file.execute("CREATE INDEX sessions_by_creation ON sessions (owner, created_at)")


def update_lists(file: sqlite3.Connection, ordinal: int, owner: str, records: Sequence[m.Record]) -> None:
    """Change the summary of a session, and its places in lists, by its next records."""
    if not any(type(record.event) in m.SUMMARY_EVENTS for record in records):
        return
    old = _summary(file, ordinal)
    new = m.summarize(old, records)
    if new is None or new == old:
        return
    file.execute("UPDATE sessions SET summary = ? WHERE ordinal = ?", (_encode(new), ordinal))
    before, after = set(old.labels) if old is not None else set[str](), set(new.labels)
    for label in before - after:
        _leave(file, owner, label, ordinal)
    file.executemany(
        "INSERT INTO lists VALUES (?, ?, ?, ?)", [(owner, label, ordinal, new.updated_at) for label in after - before])
    file.executemany(
        "INSERT INTO list_sizes VALUES (?, ?, 1) ON CONFLICT (owner, label) DO UPDATE SET size = size + 1",
        [(owner, label) for label in after - before])
    if old is not None and old.updated_at != new.updated_at:
        file.executemany(
            "UPDATE lists SET updated_at = ? WHERE owner = ? AND label = ? AND session = ?",
            [(new.updated_at, owner, label, ordinal) for label in after & before])


def leave_lists(file: sqlite3.Connection, ordinal: int, owner: str, summary: bytes | None) -> None:
    """Take a session that was deleted out of all lists."""
    for label in _decode(summary).labels if summary is not None else ():
        _leave(file, owner, label, ordinal)


def _leave(file: sqlite3.Connection, owner: str, label: str, ordinal: int) -> None:
    file.execute("DELETE FROM lists WHERE owner = ? AND label = ? AND session = ?", (owner, label, ordinal))
    file.execute("UPDATE list_sizes SET size = size - 1 WHERE owner = ? AND label = ?", (owner, label))
    file.execute("DELETE FROM list_sizes WHERE owner = ? AND label = ? AND size = 0", (owner, label))


def _summary(file: sqlite3.Connection, ordinal: int) -> m.SessionSummary | None:
    row = file.execute("SELECT summary FROM sessions WHERE ordinal = ?", (ordinal,)).fetchone()
    return None if row is None or row[0] is None else _decode(row[0])


def list_page(
    file: sqlite3.Connection, owner: str, label: str, order: ListOrder, offset: int, limit: int,
) -> list[ListedSession]:
    """The sessions of an owner that have a label, newest first."""
    return rows_of_sessions(file, file.execute(PAGES[order], (owner, label, limit, offset)).fetchall())


def created_rows(file: sqlite3.Connection, owner: str, first: float, last: float, limit: int) -> list[ListedSession]:
    """So many sessions of an owner that were created from `first` to `last`, oldest first."""
    return rows_of_sessions(file, file.execute(CREATED, (owner, first, last, limit)).fetchall())


def rows_of_sessions(file: sqlite3.Connection, ordinals: Sequence[tuple[int]]) -> list[ListedSession]:
    """The rows of the sessions of these ordinals."""
    row_of = "SELECT session_id, ordinal, summary FROM sessions WHERE ordinal = ?"
    rows = [file.execute(row_of, ordinal).fetchone() for ordinal in ordinals]
    return [
        ListedSession(session_id=session_id, ordinal=ordinal, summary=_decode(summary))
        for session_id, ordinal, summary in rows
    ]


def list_size(file: sqlite3.Connection, owner: str, label: str) -> int:
    row = file.execute("SELECT size FROM list_sizes WHERE owner = ? AND label = ?", (owner, label)).fetchone()
    return 0 if row is None else int(row[0])
