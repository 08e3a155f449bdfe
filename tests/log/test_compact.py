"""Compacting changes nothing that can be read, and leaves less behind."""

import sqlite3
from pathlib import Path

import pytest

from gateway.log import SqliteLog, log_file
from gateway.log.compact import FULL_BYTES, compact, merged
from gateway.log.file import Segment
from gateway.log.verify import verify
from gateway.storage import Database, Unusable
from tests.support.log.stored_sessions import SESSIONS, kept, segments, session, store


async def test_nothing_readable_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    sessions = {**SESSIONS, "long": session("long", 100)}
    await store(path, sessions, group=1)
    before = kept(path)
    assert before == sessions
    with log_file(path) as file:
        heads, pieces = list(file.heads()), segments(file)
    told: list[tuple[int, int]] = []
    done = compact(path, lambda number, total: told.append((number, total)))
    assert kept(path) == before
    with log_file(path) as file:
        assert list(file.heads()) == heads
        assert (done.segments_before, done.segments_after) == (pieces, segments(file))
    assert done.segments_after < 20 < pieces
    assert done.bytes_after < done.bytes_before
    assert told[-1] == (4, 4)
    assert verify(path).problems == []
    again = compact(path)
    assert (again.segments_before, again.segments_after) == (done.segments_after, done.segments_after)


async def test_a_server_reads_and_goes_on_after_it(tmp_path: Path) -> None:
    await store(tmp_path / "a.db", group=1)
    compact(tmp_path / "a.db")
    log = SqliteLog(Database(tmp_path / "a.db"))
    await log.open()
    for name, records in SESSIONS.items():
        for after in range(len(records) + 1):
            assert list(await log.read(name, after, 3)) == records[after:after + 3]
    assert await log.place_of("ask_s3") == "s3"
    await log.close()


async def test_what_is_left_of_nobody_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await store(path)
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO places VALUES ('x', 77)")
        connection.execute("INSERT INTO segments VALUES (77, 1, 1, '', '')")
    connection.close()
    assert compact(path).leftovers == 2
    assert kept(path) == SESSIONS
    assert verify(path).problems == []


async def test_it_waits_for_no_server(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db")
    await database.open()
    with pytest.raises(Unusable, match="is in use by another server"):
        compact(tmp_path / "a.db")
    await database.close()
    compact(tmp_path / "a.db")


def test_no_file_is_a_message(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="there is no such file"):
        compact(tmp_path / "a.db")


def test_segments_of_different_models_stay_apart_and_none_grows_too_large() -> None:
    small = [Segment(seq, 1, b"a\n", b"b\n") for seq in range(1, 4)]
    assert list(merged(small)) == [Segment(3, 1, b"a\n" * 3, b"b\n" * 3)]
    assert list(merged([*small, Segment(4, 2, b"c\n", b"")])) == [
        Segment(3, 1, b"a\n" * 3, b"b\n" * 3), Segment(4, 2, b"c\n", b"")]
    large = [Segment(seq, 1, b"x" * (FULL_BYTES // 2 + 1), b"") for seq in range(1, 4)]
    assert list(merged(large)) == large
    assert list(merged([])) == []
