"""The schema of the database as a list of migrations, and the counters in it."""

import sqlite3
from collections.abc import Callable, Sequence

from .session_lists import add_creation_times, add_session_lists
from .session_texts import add_session_texts
from .terms import add_terms_table


def _add_session_index(file: sqlite3.Connection) -> None:
    """Create what sessions are listed and found by."""
    add_session_lists(file)
    add_session_texts(file)


Migration = str | Callable[[sqlite3.Connection], None]
"""SQL statements, or a function for what SQL cannot do, such as to convert records of an older model."""
MIGRATIONS: tuple[Migration, ...] = (
    """
    CREATE TABLE sessions (
        ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL UNIQUE,
        owner TEXT NOT NULL,
        head INTEGER NOT NULL,
        in_turn INTEGER NOT NULL
    );
    CREATE INDEX sessions_by_owner ON sessions (owner, ordinal);
    CREATE INDEX sessions_in_turn ON sessions (ordinal) WHERE in_turn;
    CREATE TABLE segments (
        session INTEGER NOT NULL,
        last INTEGER NOT NULL,
        model INTEGER NOT NULL,
        spine BLOB NOT NULL,
        words BLOB NOT NULL
    );
    CREATE UNIQUE INDEX segments_by_session ON segments (session, last);
    CREATE TABLE places (
        word TEXT PRIMARY KEY,
        session INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX places_by_session ON places (session);
    CREATE TABLE resources (
        kind TEXT NOT NULL,
        resource_id TEXT NOT NULL,
        version INTEGER NOT NULL,
        ordinal INTEGER NOT NULL,
        owner TEXT NOT NULL,
        parent TEXT NOT NULL,
        newest INTEGER NOT NULL,
        archived_at REAL,
        record BLOB NOT NULL,
        PRIMARY KEY (kind, resource_id, version)
    ) WITHOUT ROWID;
    CREATE INDEX resources_by_owner ON resources (kind, owner, ordinal) WHERE newest;
    CREATE INDEX resources_by_parent ON resources (parent, kind, owner, ordinal) WHERE newest;
    CREATE INDEX resources_in_use ON resources (kind, owner, ordinal) WHERE newest AND archived_at IS NULL;
    CREATE INDEX resources_in_use_by_parent ON resources (parent, kind, owner, ordinal)
        WHERE newest AND archived_at IS NULL;
    CREATE TABLE answers (
        owner TEXT NOT NULL,
        method TEXT NOT NULL,
        path TEXT NOT NULL,
        key TEXT NOT NULL,
        at REAL NOT NULL,
        digest TEXT NOT NULL,
        status INTEGER NOT NULL,
        content_type TEXT NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (owner, method, path, key)
    ) WITHOUT ROWID;
    CREATE INDEX answers_by_age ON answers (at);
    CREATE TABLE counters (
        name TEXT PRIMARY KEY,
        value INTEGER NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE keys (
        hash TEXT PRIMARY KEY,
        record BLOB NOT NULL,
        used_at REAL,
        used_from TEXT
    ) WITHOUT ROWID;
    """,
    add_terms_table,
    _add_session_index,
    add_creation_times,
)
"""Each migration is one released version; it is never changed, only followed by another."""
SCHEMA_VERSION = len(MIGRATIONS)
APPLICATION = 0x44726167
"""The application id in the file: "Drag"."""


def version_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def is_our_file(connection: sqlite3.Connection) -> bool:
    """Whether the file is ours, or empty."""
    mark = connection.execute("PRAGMA application_id").fetchone()[0]
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    return bool(mark == APPLICATION or empty)


def migrate(connection: sqlite3.Connection, steps: Sequence[Migration] = MIGRATIONS) -> None:
    """Apply the migrations that are missing: all of them, or none if one fails."""
    if version_of(connection) >= len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in steps[version_of(connection):]:  # another process may have applied some meanwhile
            _apply(connection, step)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _apply(connection: sqlite3.Connection, step: Migration) -> None:
    if callable(step):
        step(connection)
        return
    statement = ""
    for piece in step.split(";")[:-1]:
        statement += f"{piece};"
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def add_to_counter(file: sqlite3.Connection, name: str, change: int = 0) -> int:
    """Change a counter, which begins at zero; return its value."""
    if change == 0:
        row = file.execute("SELECT value FROM counters WHERE name = ?", (name,)).fetchone()
    else:
        row = file.execute(
            "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value "
            "RETURNING value",
            (name, change),
        ).fetchone()
    return 0 if row is None else int(row[0])
