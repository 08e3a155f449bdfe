"""A log's file can be read without a server, and beside one."""

from pathlib import Path

import pytest

from gateway.errors import NotFound
from gateway.storage import Database, StorageUnusable
from gateway.storage.log import SqliteLog, open_log_file
from tests.support.storage.event_logs import put
from tests.support.storage.stored_sessions import SESSIONS, kept, session, store


async def test_everything_is_read_in_order(tmp_path: Path) -> None:
    await store(tmp_path / "a.db")
    assert kept(tmp_path / "a.db") == SESSIONS
    with open_log_file(tmp_path / "a.db") as file:
        assert file.size == 3
        assert [head.session_id for head in file.heads()] == ["s1", "s2", "s3"]
        assert [head.in_turn for head in file.heads()] == [False, False, True]
        assert file.head("s1").head == len(SESSIONS["s1"])
        assert set(file.lookup_ids(file.head("s3").ordinal)) == {"turn_s3_0", "turn_s3_asks", "ask_s3"}
        assert file.records("nobody") == []
        with pytest.raises(NotFound, match="there is no session 'nobody'"):
            file.head("nobody")


async def test_many_sessions_are_walked_in_pages(tmp_path: Path) -> None:
    many = {f"s{number}": session(f"s{number}", 0) for number in range(600)}
    log = SqliteLog(Database(tmp_path / "a.db"))
    await log.open()
    await put(log, *(records[0] for records in many.values()))
    await log.close()
    with open_log_file(tmp_path / "a.db") as file:
        assert [head.session_id for head in file.heads()] == list(many)


async def test_a_server_may_be_at_work(tmp_path: Path) -> None:
    log = SqliteLog(Database(tmp_path / "a.db"))
    await log.open()
    await put(log, *SESSIONS["s1"][:4])
    with open_log_file(tmp_path / "a.db") as file:
        assert file.records("s1") == SESSIONS["s1"][:4]
        await put(log, *SESSIONS["s1"][4:])
        assert file.records("s1") == SESSIONS["s1"]
    await log.close()


def test_no_file_is_a_message(tmp_path: Path) -> None:
    with pytest.raises(StorageUnusable, match="there is no such file"), open_log_file(tmp_path / "a.db"):
        pass
