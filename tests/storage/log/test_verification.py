"""A sound file is found sound, and each kind of damage is told with its session and record."""

import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

import gateway.model as m
from gateway.storage import Database
from gateway.storage.log import SqliteLog
from gateway.storage.log.sqlite import encode_lines
from gateway.storage.log.verification import verify_log
from tests.support.storage.event_logs import put
from tests.support.storage.stored_sessions import SESSIONS, store


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    await store(tmp_path / "a.db")
    return tmp_path / "a.db"


def change(path: Path, statement: str, *given: object) -> None:
    connection = sqlite3.connect(path)
    with connection:
        assert connection.execute(statement, given).rowcount == 1, "the test changes something"
    connection.close()


def problems(path: Path) -> list[str]:
    return [str(problem) for problem in verify_log(path).problems]


def test_a_sound_file(path: Path) -> None:
    told: list[tuple[int, int]] = []
    verdict = verify_log(path, lambda done, total: told.append((done, total)))
    assert verdict.problems == []
    assert (verdict.sessions, verdict.records) == (3, sum(map(len, SESSIONS.values())))
    assert verdict.segments > 3
    assert told == [(1, 3), (2, 3), (3, 3)]


async def test_while_a_server_writes(tmp_path: Path) -> None:
    log = SqliteLog(Database(tmp_path / "a.db"))
    await log.open()
    for record in SESSIONS["s1"]:
        await put(log, record)
        assert problems(tmp_path / "a.db") == []
    await log.close()


def test_pages_that_are_damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-4096:-3000] = b"\xff" * 1096
    path.write_bytes(content)
    assert any("damaged: " in problem or "cannot be read" in problem for problem in problems(path))


WHICH = "WHERE session = (SELECT ordinal FROM sessions WHERE session_id = 's1') AND last = ?"


@pytest.mark.parametrize(("statement", "given", "told"), [
    (f"DELETE FROM segments {WHICH}", (4,), ["s1, record 5: follows record 2", None]),
    (f"UPDATE segments SET spine = CAST('{{' AS BLOB) {WHICH}", (4,), ["s1, record 4: the segment that ends here"]),
    (f"UPDATE segments SET model = {m.MODEL_VERSION + 1} {WHICH}", (4,), ["s1, record 4: written by a newer"]),
    (f"UPDATE segments SET last = 99 {WHICH}", (37,), ["s1, record 37: the segment is filed under 99"]),
    ("UPDATE sessions SET head = 7 WHERE session_id = ?", ("s1",), ["s1, record 37: the list of sessions says that 7"]),
    ("UPDATE sessions SET in_turn = 0 WHERE session_id = ?", ("s3",), ["s3, record 16: the list of sessions is wrong"]),
    ("UPDATE sessions SET owner = 'eve' WHERE session_id = ?", ("s2",), ["s2, record 1: the owner is 'ann'"]),
    ("DELETE FROM places WHERE word = ?", ("ask_s3",), ["s3, record 15: 'ask_s3' cannot be found by its id"]),
    ("INSERT INTO places VALUES (?, 77)", ("x",), ["the file: 1 ids belong to no session; `dragoman log compact`"]),
    ("INSERT INTO segments VALUES (77, ?, 1, '', '')", (1,), ["the file: 1 records belong to no session"]),
    ("INSERT INTO resources VALUES ('agent', 'a', ?, 1, '', '', 1, NULL, 'x')", (1,), ["the file: version 1 of agent"]),
])
def test_each_kind_of_damage_is_named(path: Path, statement: str, given: tuple[object, ...], told: list[str]) -> None:
    change(path, statement, *given)
    found = problems(path)
    assert len(found) == len(told), found
    for problem, words in zip(found, told, strict=True):
        assert problem.startswith(words or "s1")


@pytest.mark.parametrize(("spoilt", "words"), [
    (lambda r: replace(r, session_id="else"), "belongs to session 'else'"),
    (lambda r: replace(r, at=0.5), "is earlier than the one before it"),
    (lambda r: replace(r, event=SESSIONS["s1"][-2].event), "message.ended"),
])
def test_records_out_of_place_are_named(path: Path, spoilt: object, words: str) -> None:
    record = SESSIONS["s1"][2]
    lines = encode_lines([spoilt(record), SESSIONS["s1"][3]])  # type: ignore[operator]
    change(path, f"UPDATE segments SET spine = ? {WHICH}", lines, 4)
    found = problems(path)
    assert found[0].startswith("s1, record 3: ")
    assert words in found[0]
    if words != "message.ended":
        assert len(found) == 1


def test_words_among_the_events_are_named(path: Path) -> None:
    change(path, f"UPDATE segments SET words = spine, spine = words {WHICH}", 4)
    assert problems(path) == ["s1, record 4: words and events are in each other's place"]
