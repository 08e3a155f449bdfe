"""The store in the database: it is in the file when the caller is told so, and a page costs what is on it."""

import sqlite3
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.errors import Invalid, Overloaded
from gateway.ports import Resource
from gateway.storage import Database, add_to_counter
from gateway.storage.resources.sqlite import KEPT, ORDINAL, REMOVE, SELECT, SqliteResources, page

MANY = 100_000
INDEXES = {
    (False, True): "resources_by_owner", (True, True): "resources_by_parent", (False, False): "resources_in_use",
    (True, False): "resources_in_use_by_parent",
}
"""By whether a parent is named, and whether archived ones are wanted."""


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = Database(tmp_path / "dragoman.db", window=0.0)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def store(database: Database) -> SqliteResources:
    return SqliteResources(database, lambda: 1.0)


def looked_up(path: Path, query: str, given: list[object]) -> list[str]:
    """How another reader of the file would find it."""
    with sqlite3.connect(path) as file:
        return [row[3] for row in file.execute(f"EXPLAIN QUERY PLAN {query}", given)]


async def test_whoever_is_told_finds_it_in_the_file(database: Database, store: SqliteResources) -> None:
    made = await store.create("agent", "ann", {"n": 1}, secrets={"token": "hush"})
    with sqlite3.connect(database.path) as file:
        (record,) = file.execute("SELECT record FROM resources").fetchone()
        assert msgspec.json.decode(record, type=Resource) == made
    await store.delete("agent", "ann", made.resource_id)
    with sqlite3.connect(database.path) as file:
        assert file.execute("SELECT count(*) FROM resources").fetchone() == (0,)


@pytest.mark.parametrize(("parent", "archived", "oldest_first", "ends"), [*product(
    (None, "", "p"), (True, False), (True, False), ({}, {"before": 9}, {"after": 9}, {"before": 9, "after": 3}))])
async def test_no_page_is_sorted_or_searched_through(
    database: Database, parent: str | None, archived: bool, oldest_first: bool, ends: dict[str, int],
) -> None:
    query, given = page("agent", "ann", parent=parent, archived=archived, oldest_first=oldest_first, **ends)
    (plan,) = looked_up(database.path, f"{SELECT} {query}", given)
    assert plan.startswith(f"SEARCH resources USING INDEX {INDEXES[parent is not None, archived]} (")
    assert "kind=? AND owner=?" in plan
    assert ("ordinal" in plan) is bool(ends)


async def test_what_goes_with_a_resource_is_found_by_its_parent(database: Database) -> None:
    plans = looked_up(database.path, REMOVE, ["vault", "v"])
    assert [plan for plan in plans if plan.startswith(("SCAN resources", "SCAN below"))] == []
    assert any("resources_by_parent (parent=?)" in plan for plan in plans)
    assert any("PRIMARY KEY (kind=? AND resource_id=?)" in plan for plan in plans)


async def test_a_page_of_many_reads_what_is_on_it(database: Database, store: SqliteResources) -> None:
    """Counted in steps of SQLite's machine: a page among a hundred thousand costs as much as one among a hundred."""
    await _fill(database, 100)
    few = await _steps(database, 100)
    await _fill(database, MANY)
    assert await _steps(database, MANY) <= few * 2
    newest = await store.list("file", "ann", limit=2)
    assert [one.ordinal for one in newest] == [MANY, MANY - 1]
    last = await store.list("file", "ann", before=51, limit=100)
    assert [one.ordinal for one in last] == list(range(50, 0, -1))


async def _fill(database: Database, number: int) -> None:
    def row(ordinal: int) -> tuple[Any, ...]:
        one = Resource(
            kind="file", resource_id=f"f{ordinal}", owner="ann", ordinal=ordinal, version=1, created_at=0.0,
            updated_at=0.0, body={"n": ordinal}, parent="",
        )
        archived = 1.0 if 100 < ordinal < MANY - 60 else None
        return "file", one.resource_id, 1, ordinal, "ann", "", 1, archived, msgspec.json.encode(one)

    def fill(file: sqlite3.Connection) -> None:
        rows = map(row, range(1, number + 1))
        file.executemany("INSERT OR IGNORE INTO resources VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        add_to_counter(file, KEPT, number - add_to_counter(file, KEPT))
        add_to_counter(file, ORDINAL, number - add_to_counter(file, ORDINAL))

    await database.write(fill)


async def _steps(database: Database, number: int) -> int:
    """How much work it is to list one page of those in use, with a stretch of archived ones in it, and one of all."""
    def count(file: sqlite3.Connection) -> int:
        steps = [0]
        file.set_progress_handler(lambda: steps.__setitem__(0, steps[0] + 1), 10)
        for archived in (True, False):
            query, given = page("file", "ann", before=number - 50, limit=20, archived=archived)
            assert len(file.execute(f"{SELECT} {query}", given).fetchall()) == 20
        file.set_progress_handler(None, 0)
        return steps[0]

    return await database.read(count)


async def test_a_change_that_is_refused_leaves_no_trace(database: Database) -> None:
    store = SqliteResources(database, lambda: 1.0, lambda: 1)
    await store.create("agent", "ann", {})
    for _ in range(3):
        with pytest.raises(Overloaded):
            await store.create("agent", "ann", {})
    assert await database.read(lambda file: (add_to_counter(file, KEPT), add_to_counter(file, ORDINAL))) == (1, 1)


async def test_what_is_no_text_cannot_be_kept(store: SqliteResources) -> None:
    with pytest.raises(Invalid, match="cannot be stored"):
        await store.create("agent", "ann", {"name": "\udcff"})
    assert await store.list("agent", "ann") == []
