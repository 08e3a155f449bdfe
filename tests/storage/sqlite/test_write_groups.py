"""One group: each piece by itself where it refuses, and nothing at all where the file does."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator

import pytest

from gateway.errors import NotFound
from gateway.storage.sqlite.database import Work, WriteTask, write_group


@pytest.fixture
async def file() -> AsyncIterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE names (name TEXT)")
    yield connection
    connection.close()


def put(name: str) -> Work[str]:
    def work(file: sqlite3.Connection) -> str:
        file.execute("INSERT INTO names VALUES (?)", (name,))
        return name
    return work


def refuse(file: sqlite3.Connection) -> None:
    put("half")(file)
    raise NotFound("no")


def task(work: Work[object]) -> WriteTask:
    return WriteTask(work, asyncio.get_running_loop().create_future())


def names(file: sqlite3.Connection) -> list[str]:
    return [name for (name,) in file.execute("SELECT name FROM names")]


async def test_a_piece_that_refuses_leaves_the_others_alone(file: sqlite3.Connection) -> None:
    results = write_group(file, put("batch"), [task(put("a")), task(refuse), task(put("b"))])
    assert names(file) == ["batch", "a", "b"]
    assert [result.value for result in results] == ["a", None, "b"]
    assert [type(result.error) for result in results] == [type(None), NotFound, type(None)]


async def test_a_file_that_does_not_take_it_has_nothing_of_it(file: sqlite3.Connection) -> None:
    file.execute("PRAGMA query_only = ON")
    with pytest.raises(sqlite3.Error):
        write_group(file, put("batch"), [task(put("a"))])
    assert not file.in_transaction
    file.execute("PRAGMA query_only = OFF")
    assert names(file) == []


async def test_with_nothing_to_write_the_file_is_tried(file: sqlite3.Connection) -> None:
    assert write_group(file, None, []) == []
    file.execute("PRAGMA query_only = ON")
    with pytest.raises(sqlite3.Error):
        write_group(file, None, [])
