"""Compacting changes nothing that can be read, and leaves less behind."""

import sqlite3
from pathlib import Path

import pytest

from gateway.storage import Database, StorageUnusable
from gateway.storage.log import SqliteLog, open_log_file
from gateway.storage.log.log_file import MAX_SEGMENT_BYTES, Segment, compact_log, merge_segments
from gateway.storage.log.verification import verify_log
from tests.support.storage.stored_sessions import SESSIONS, kept, segments, session, store


async def test_nothing_readable_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    sessions = {**SESSIONS, "long": session("long", 100)}
    await store(path, sessions, group=1)
    before = kept(path)
    assert before == sessions
    with open_log_file(path) as file:
        heads, pieces = list(file.heads()), segments(file)
    told: list[tuple[int, int]] = []
    done = compact_log(path, lambda number, total: told.append((number, total)))
    assert kept(path) == before
    with open_log_file(path) as file:
        assert list(file.heads()) == heads
        assert (done.segments_before, done.segments_after) == (pieces, segments(file))
    assert done.segments_after < 20 < pieces
    assert done.bytes_after < done.bytes_before
    assert told[-1] == (4, 4)
    assert verify_log(path).problems == []
    again = compact_log(path)
    assert (again.segments_before, again.segments_after) == (done.segments_after, done.segments_after)


async def test_a_server_reads_and_goes_on_after_it(tmp_path: Path) -> None:
    await store(tmp_path / "a.db", group=1)
    compact_log(tmp_path / "a.db")
    log = SqliteLog(Database(tmp_path / "a.db"))
    await log.open()
    for name, records in SESSIONS.items():
        for after in range(len(records) + 1):
            assert list(await log.read(name, after, 3)) == records[after:after + 3]
    assert await log.session_of("ask_s3") == "s3"
    await log.close()


async def test_what_is_left_of_nobody_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await store(path)
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO places VALUES ('x', 77)")
        connection.execute("INSERT INTO segments VALUES (77, 1, 1, '', '')")
    connection.close()
    assert compact_log(path).leftovers == 2
    assert kept(path) == SESSIONS
    assert verify_log(path).problems == []


async def test_it_waits_for_no_server(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db")
    await database.open()
    with pytest.raises(StorageUnusable, match="is in use by another server"):
        compact_log(tmp_path / "a.db")
    await database.close()
    compact_log(tmp_path / "a.db")


def test_no_file_is_a_message(tmp_path: Path) -> None:
    with pytest.raises(StorageUnusable, match="there is no such file"):
        compact_log(tmp_path / "a.db")


def test_segments_of_different_models_stay_apart_and_none_grows_too_large() -> None:
    small = [Segment(seq, 1, b"a\n", b"b\n") for seq in range(1, 4)]
    assert list(merge_segments(small)) == [Segment(3, 1, b"a\n" * 3, b"b\n" * 3)]
    assert list(merge_segments([*small, Segment(4, 2, b"c\n", b"")])) == [
        Segment(3, 1, b"a\n" * 3, b"b\n" * 3), Segment(4, 2, b"c\n", b"")]
    large = [Segment(seq, 1, b"x" * (MAX_SEGMENT_BYTES // 2 + 1), b"") for seq in range(1, 4)]
    assert list(merge_segments(large)) == large
    assert list(merge_segments([])) == []
