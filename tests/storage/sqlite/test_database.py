"""Writes go in groups, in order, each undone alone; trouble is told, ends with its cause, and harms nothing."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.errors import Conflict, GatewayError, Overloaded
from gateway.storage import Database, StorageUnusable
from gateway.storage.sqlite.database import FEW, MAX_WAL_BYTES
from tests.support.gateway_server import until

Work = Callable[[sqlite3.Connection], None]


@asynccontextmanager
async def opened(path: Path, *, window: float = 0.002, fsync: bool = False) -> AsyncIterator[Database]:
    database = Database(path, again=0.01, window=window, fsync=fsync)
    await database.open()
    yield database
    await database.close()


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with opened(tmp_path / "a.db") as database:
        yield database


def put(name: str, value: int = 0) -> Work:
    return lambda file: file.execute("INSERT INTO counters VALUES (?, ?)", (name, value)) and None


def names(file: sqlite3.Connection) -> list[str]:
    return [name for (name,) in file.execute("SELECT name FROM counters ORDER BY value")]


def fill_up(database: Database) -> None:
    """From now on the file may not grow."""
    database._connections["write"].execute("PRAGMA max_page_count = 1")


def make_room(database: Database) -> None:
    database._connections["write"].execute("PRAGMA max_page_count = 1000000")


def protect(database: Database) -> None:
    """From now on nothing may be written."""
    database._connections["write"].execute("PRAGMA query_only = ON")


def unprotect(database: Database) -> None:
    database._connections["write"].execute("PRAGMA query_only = OFF")


def large(name: str) -> Work:
    return lambda file: file.execute(
        "INSERT INTO answers VALUES (?, '', '', '', 0, '', 0, '', zeroblob(200000))", (name,)) and None


class Telling:
    """A source with some work, which remembers what it was told."""

    def __init__(self, *works: Work) -> None:
        self.works = list(works)
        self.offered = 0
        self.told: list[str] = []

    def gather(self) -> Work | None:
        self.offered = len(self.works)
        works = list(self.works)
        return (lambda file: [work(file) for work in works] and None) if works else None

    def committed(self) -> None:
        self.told.append("committed")
        del self.works[:self.offered]

    def failed(self, why: GatewayError) -> None:
        self.told.append("failed")


# -- groups -----------------------------------------------------------------------------------------------------------

async def test_what_was_written_can_be_read_at_once(database: Database) -> None:
    await database.write(put("a"))
    assert await database.read(names) == ["a"]
    assert await database.write(lambda file: file.execute("SELECT 7").fetchone()[0]) == 7


async def test_writes_that_come_together_are_committed_together(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db", window=0.05) as database:
        seen: list[int] = []

        def work(number: int) -> Work:
            def write(file: sqlite3.Connection) -> None:
                put(str(number), number)(file)
                with sqlite3.connect(tmp_path / "a.db") as other:
                    seen.append(len(names(other)))
                other.close()
            return write

        await asyncio.gather(*(database.write(work(number)) for number in range(5)))
        assert seen == [0] * 5, "nobody else saw any of them before the last was written"
        assert await database.read(names) == ["0", "1", "2", "3", "4"]


async def test_a_write_waits_for_others_only_after_a_group_of_many(tmp_path: Path) -> None:
    clock, hour = asyncio.get_running_loop().time, 3600.0
    async with opened(tmp_path / "a.db", window=hour) as database:
        began = clock()
        await database.write(put("alone"))
        assert clock() < began + hour
        await asyncio.gather(*(database.write(put(str(number))) for number in range(FEW)))
        assert clock() < began + hour
        await database.write(put("waits"))
        assert clock() >= began + hour
        await database.write(put("alone again"))
        assert clock() < began + 2 * hour


async def test_work_is_done_in_the_order_it_was_given(database: Database) -> None:
    done: list[int] = []
    await asyncio.gather(*(database.write(lambda file, number=number: done.append(number)) for number in range(200)))
    assert done == list(range(200))


@pytest.mark.parametrize("mistake", [
    Conflict("no"), ValueError("no"), sqlite3.IntegrityError("no"),
])
async def test_a_piece_that_refuses_is_undone_alone(database: Database, mistake: Exception) -> None:
    def refuse(file: sqlite3.Connection) -> None:
        put("half done")(file)
        raise mistake

    results = await asyncio.gather(
        database.write(put("before", 1)), database.write(refuse), database.write(put("after", 2)),
        return_exceptions=True,
    )
    assert results == [None, mistake, None]
    assert await database.read(names) == ["before", "after"]
    assert database.trouble is None


@pytest.mark.parametrize("statement", ["INSERT INTO counters VALUES ('twice', 1)", "SELECT * FROM nowhere"])
async def test_a_wrong_statement_is_no_trouble_of_the_file(database: Database, statement: str) -> None:
    await database.write(put("twice"))
    with pytest.raises(sqlite3.Error):
        await database.write(lambda file: file.execute(statement) and None)
    assert database.trouble is None
    await database.write(put("then"))


async def test_a_source_is_asked_whenever_a_group_leaves(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db")
    source = Telling(put("of the source", 1))
    database.attach(source)
    await database.open()
    await database.write(put("of a task", 2))
    assert await database.read(names) == ["of the source", "of a task"]
    assert source.told == ["committed"]
    source.works.append(put("left when it closed", 3))
    database.schedule_write()
    await database.close()
    assert source.told == ["committed"] * 2


async def test_closing_writes_what_there_is_and_then_nothing_more_is_taken(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db", window=0.05) as database:
        writing = asyncio.gather(*(database.write(put(str(number), number)) for number in range(9)))
        await asyncio.sleep(0)
    await writing
    with pytest.raises(StorageUnusable, match="closed"):
        await database.write(put("late"))
    with pytest.raises(StorageUnusable, match="closed"):
        await database.read(names)
    async with opened(tmp_path / "a.db") as again:
        assert len(await again.read(names)) == 9


@pytest.mark.parametrize(("fsync", "pragma"), [(True, 2), (False, 1)])
async def test_durability_decides_whether_each_group_is_forced_to_the_disk(
    tmp_path: Path, fsync: bool, pragma: int,
) -> None:
    async with opened(tmp_path / "a.db", fsync=fsync) as database:
        assert await database.write(lambda file: file.execute("PRAGMA synchronous").fetchone()[0]) == pragma
        assert await database.write(lambda file: file.execute("PRAGMA journal_mode").fetchone()[0]) == "wal"


async def test_the_write_ahead_log_does_not_grow_without_end(database: Database) -> None:
    def churn(file: sqlite3.Connection) -> None:
        file.execute("INSERT OR REPLACE INTO answers VALUES ('', '', '', '', 0, '', 0, '', zeroblob(1000000))")

    written, sizes = 0, list[int]()
    while written < 8 * MAX_WAL_BYTES:
        await database.write(churn)
        written += 1_000_000
        sizes.append(database._wal.stat().st_size)
        await until(lambda: not database._tidies)  # the checkpoint that this write began, however slow the disk is
    assert max(sizes) < written / 2, "it was written from its beginning again"


# -- trouble ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("spoil", "mend", "words"), [
    (fill_up, make_room, "database or disk is full; free some space"),
    (protect, unprotect, "attempt to write a readonly database; make it and its folder writable"),
])
async def test_trouble_is_told_and_forgotten_once_it_is_over(
    database: Database, spoil: Callable[[Database], None], mend: Callable[[Database], None], words: str,
) -> None:
    await database.write(put("a"))
    spoil(database)
    with pytest.raises(Overloaded, match=words):
        await database.write(large("b"))
    assert database.trouble is not None
    with pytest.raises(Overloaded, match="nothing can be stored just now"):
        await database.write(put("refused at once"))
    assert await database.read(names) == ["a"], "reading goes on"
    mend(database)
    await until(lambda: database.trouble is None)
    await database.write(put("c", 1))
    assert await database.read(names) == ["a", "c"]


async def test_what_a_source_could_not_store_is_offered_again(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db", again=0.01)
    source = Telling()
    database.attach(source)
    await database.open()
    fill_up(database)
    source.works.append(large("first"))
    database.schedule_write()
    await until(lambda: source.told.count("failed") > 2)
    source.works.append(put("second"))
    make_room(database)
    await until(lambda: not source.works)
    assert await database.read(names) == ["second"]
    assert await database.read(lambda file: file.execute("SELECT owner FROM answers").fetchall()) == [("first",)]
    await database.close()


async def test_what_cannot_even_be_tried_is_trouble_and_nobody_waits_for_ever(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db", again=0.01)
    wrong = [True]

    def work(file: sqlite3.Connection) -> None:
        if wrong:
            raise ValueError("cannot be written")

    source = Telling(work)
    database.attach(source)
    await database.open()
    with pytest.raises(Overloaded, match="cannot be written"):
        await database.write(put("a"))
    wrong.clear()
    await until(lambda: database.trouble is None)
    await database.close()


@pytest.mark.parametrize("there_is_room", [True, False])
async def test_closing_in_trouble_tries_once_more(tmp_path: Path, there_is_room: bool) -> None:
    database = Database(tmp_path / "a.db", again=60)
    source = Telling()
    database.attach(source)
    await database.open()
    fill_up(database)
    source.works.append(large("x"))
    database.schedule_write()
    await until(lambda: database.trouble is not None)
    if there_is_room:
        make_room(database)
    async with asyncio.timeout(30):
        await database.close()
    async with opened(tmp_path / "a.db") as again:
        rows = await again.read(lambda file: file.execute("SELECT count(*) FROM answers").fetchone()[0])
        assert rows == there_is_room


# -- opening ----------------------------------------------------------------------------------------------------------

async def test_a_second_server_is_refused(database: Database) -> None:
    with pytest.raises(StorageUnusable, match=r"a\.db is in use by another server; stop that one, or name another"):
        await Database(database.path).open()
    await database.write(put("unharmed"))


async def test_the_file_is_free_again_after_a_server_has_gone(tmp_path: Path) -> None:
    for _ in range(2):
        async with opened(tmp_path / "a.db"):
            pass


async def test_who_has_more_to_write_because_of_the_trouble_does_not_hurry_the_next_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Troubled(Telling):
        def failed(self, why: GatewayError) -> None:
            super().failed(why)
            database.schedule_write()

    database = Database(tmp_path / "a.db", again=60)
    source = Troubled()
    database.attach(source)
    await database.open()
    fill_up(database)
    source.works.append(large("x"))
    database.schedule_write()
    later = list[float]()
    with monkeypatch.context() as patch:
        await asyncio.sleep(0)
        patch.setattr(database._loop, "call_later", lambda seconds, act: later.append(seconds))
        await until(lambda: source.told)
    assert later == [60]
    await database.close()


async def test_the_statements_of_one_query_see_the_same_file_whatever_is_written_between_them(
    database: Database,
) -> None:
    began, written = threading.Event(), threading.Event()
    await database.write(put("a"))

    def twice(file: sqlite3.Connection) -> list[list[str]]:
        first = names(file)
        began.set()
        assert written.wait(60)
        return [first, names(file)]

    reading = asyncio.create_task(database.read(twice))
    await asyncio.to_thread(began.wait)
    await database.write(put("b", 1))
    written.set()
    assert await reading == [["a"], ["a"]]
    assert await database.read(names) == ["a", "b"]
