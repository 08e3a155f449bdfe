"""Steps are taken together or not at all, and a file says what it is."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.storage.sqlite.schema import APPLICATION, MIGRATIONS, SCHEMA_VERSION, is_our_file, migrate, version_of


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    yield connection
    connection.close()


def tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_an_empty_file_becomes_ours(connection: sqlite3.Connection) -> None:
    assert is_our_file(connection)
    migrate(connection)
    assert version_of(connection) == SCHEMA_VERSION == len(MIGRATIONS)
    assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
    assert {"sessions", "segments", "places", "resources", "answers", "counters"} <= tables(connection)
    assert is_our_file(connection)


def test_a_file_that_has_all_steps_is_not_touched(connection: sqlite3.Connection) -> None:
    migrate(connection)
    before = connection.total_changes, connection.execute("PRAGMA data_version").fetchone()
    migrate(connection)
    assert (connection.total_changes, connection.execute("PRAGMA data_version").fetchone()) == before


def note(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO notes SELECT name || '; said' FROM counters")


NEXT = "CREATE TABLE notes (words); CREATE TRIGGER t AFTER INSERT ON notes BEGIN DELETE FROM places; SELECT 1; END;"


def test_an_older_file_takes_the_steps_it_lacks(connection: sqlite3.Connection) -> None:
    migrate(connection)
    connection.execute("INSERT INTO counters VALUES ('kept', 1)")
    migrate(connection, (*MIGRATIONS, NEXT, note))
    assert version_of(connection) == SCHEMA_VERSION + 2
    assert connection.execute("SELECT words FROM notes").fetchall() == [("kept; said",)]
    assert connection.execute("SELECT name FROM counters").fetchall() == [("kept",)]


def fail(connection: sqlite3.Connection) -> None:
    raise sqlite3.OperationalError("in the middle")


@pytest.mark.parametrize("wrong", ["SELECT nothing FROM nowhere;", fail])
def test_steps_are_taken_together_or_not_at_all(connection: sqlite3.Connection, wrong: object) -> None:
    migrate(connection)
    before = tables(connection)
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, (*MIGRATIONS, NEXT, note, wrong))  # type: ignore[arg-type]
    assert (version_of(connection), tables(connection)) == (SCHEMA_VERSION, before)
    migrate(connection, (*MIGRATIONS, NEXT, note))
    assert version_of(connection) == SCHEMA_VERSION + 2


def test_somebody_elses_file_is_recognized(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE theirs (a)")
    assert not is_our_file(connection)
