"""A file that cannot be used is refused at the start, unharmed, with its name and what to do."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.storage import SCHEMA_VERSION, Database, StorageUnusable, lock_database, open_read_only
from gateway.storage.sqlite.connection import check_pages, explain_error, is_task_error
from tests.support.fork_server import Popen, run

NOBODY = 65534
SERVE = "from gateway.cli import main; main()"


def strange(path: Path) -> str:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (a)")
    other.close()
    return "is a database, but not one of ours; name another file in `log:`"


def newer(path: Path) -> str:
    make(path)
    with sqlite3.connect(path) as ours:
        ours.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    ours.close()
    return f"was written by a newer Dragoman (version {SCHEMA_VERSION + 1} of the tables"


def no_database(path: Path) -> str:
    path.write_text("a letter to my aunt " * 100)
    return "file is not a database; name another file in `log:`"


def torn(path: Path) -> str:
    make(path)
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * 8192 + content[12288:])
    return "look at it with `dragoman log verify`; put a copy in its place"


def cut_short(path: Path) -> str:
    make(path)
    path.write_bytes(path.read_bytes()[:5000])
    return "look at it with `dragoman log verify`; put a copy in its place"


def folder(path: Path) -> str:
    path.mkdir()
    return "unable to open database file; make it and its folder writable for this user"


def under_a_file(path: Path) -> str:
    path.parent.rmdir()
    path.parent.write_text("no folder")
    return "cannot be made: File exists; name another folder in `data:` or with --data"


def make(path: Path) -> None:
    """One of ours, with something in it."""
    import asyncio

    async def go() -> None:
        database = Database(path)
        await database.open()
        await database.write(lambda file: file.executemany(
            "INSERT INTO counters VALUES (?, 1)", [(f"a rather long name {n}" * 9,) for n in range(300)]) and None)
        await database.close()

    asyncio.run(go())


WRONG = [strange, newer, no_database, torn, cut_short, folder, under_a_file]


@pytest.mark.parametrize("spoil", WRONG)
def test_a_file_that_cannot_be_used_is_refused_unharmed(tmp_path: Path, spoil: Callable[[Path], str]) -> None:
    data = tmp_path / "data"
    data.mkdir()
    path = data / "dragoman.db"
    words = spoil(path)
    before = path.read_bytes() if path.is_file() else None
    done = serve(tmp_path)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert str(path if data.is_dir() else data) in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    if before is not None:
        assert path.read_bytes() == before, "what cannot be used is left as it was"


def serve(folder: Path) -> subprocess.CompletedProcess[str]:
    """The real program, which is expected to give up."""
    file = folder / "config.yaml"
    file.write_text("dialects: {aap: }\nagents: {demo: {backend: demo}}\nport: 0\n")
    return run([sys.executable, "-c", SERVE, "serve", "--config", str(file)])


def test_a_second_server_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    lock = lock_database(tmp_path / "data" / "dragoman.db")
    done = serve(tmp_path)
    lock.close()
    assert done.returncode == 2
    assert re.fullmatch(r"\S+dragoman\.db is in use by another server; stop that one, or .*\n", done.stderr)


AS_NOBODY = f"""
import asyncio, fcntl, os, sys, sqlite3
from pathlib import Path
from gateway.storage import Database, StorageUnusable
os.chdir(sys.argv[1])
if os.geteuid() == 0:
    os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY})
try:
    asyncio.run(Database(Path("dragoman.db")).open())
except StorageUnusable as error:
    print(error.message)
"""


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_this_user_may_not_write_is_refused(tmp_path: Path, what: str) -> None:
    """As another user, because nothing is forbidden to root."""
    data = tmp_path / "data"
    data.mkdir()
    make(data / "dragoman.db")
    if os.geteuid() == 0:
        for path in (data, *data.iterdir()):
            os.chown(path, NOBODY, NOBODY)
    (data / "dragoman.db").chmod(0o444)
    if what == "folder":
        (data / "dragoman.db.lock").unlink()
        data.chmod(0o555)
    done = run([sys.executable, "-c", AS_NOBODY, str(data)])
    data.chmod(0o755)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("dragoman.db: ")
    assert "make it and its folder writable for this user" in done.stdout


def test_a_look_at_a_large_file_takes_no_longer_than_it_may(tmp_path: Path) -> None:
    torn(tmp_path / "a.db")
    with sqlite3.connect(tmp_path / "a.db") as connection, pytest.raises((StorageUnusable, sqlite3.DatabaseError)):
        check_pages(connection, tmp_path / "a.db")
    connection.close()
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t AS WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n LIMIT 100000) "
                       "SELECT i, hex(randomblob(50)) AS x FROM n")
    check_pages(connection, tmp_path / "a.db", seconds=-1)
    connection.close()


# -- reading ----------------------------------------------------------------------------------------------------------

async def test_a_reader_sees_what_a_server_writes_and_cannot_write_itself(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db")
    await database.open()
    await database.write(lambda file: file.execute("INSERT INTO counters VALUES ('a', 1)") and None)
    reader = open_read_only(tmp_path / "a.db")
    assert reader.execute("SELECT name FROM counters").fetchall() == [("a",)]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("DELETE FROM counters")
    reader.close()
    await database.close()


@pytest.mark.parametrize("spoil", [strange, newer, no_database])
def test_a_reader_refuses_what_is_not_ours(tmp_path: Path, spoil: Callable[[Path], str]) -> None:
    words = spoil(tmp_path / "a.db")
    with pytest.raises(StorageUnusable, match=re.escape(words)):
        open_read_only(tmp_path / "a.db")


def test_a_reader_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(StorageUnusable, match="there is no such file"):
        open_read_only(tmp_path / "a.db")
    assert list(tmp_path.iterdir()) == []


# -- words ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("error", "words"), [
    (sqlite3.OperationalError("database or disk is full"), "x.db: database or disk is full; free some space"),
    (OSError(28, "No space left on device"), "x.db: No space left on device; free some space"),
    (sqlite3.OperationalError("disk I/O error"), "x.db: disk I/O error; look at the disk"),
    (PermissionError(13, "Permission denied"), "x.db: Permission denied; make it and its folder writable"),
    (sqlite3.OperationalError("database is locked"), "x.db: database is locked; another program holds it"),
    (sqlite3.OperationalError("something\nnew"), "x.db: something new"),
])
def test_trouble_is_told_with_a_way_out(error: Exception, words: str) -> None:
    assert explain_error(Path("x.db"), error).startswith(words)


def test_whose_fault_an_error_is() -> None:
    assert is_task_error(ValueError("x"))
    assert not is_task_error(OSError(28, "x"))
    full = sqlite3.OperationalError("full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    assert not is_task_error(full)
    twice = sqlite3.IntegrityError("twice")
    twice.sqlite_errorcode = sqlite3.SQLITE_CONSTRAINT_UNIQUE
    assert is_task_error(twice)


DYING = """
import asyncio, os, sys
from pathlib import Path
from gateway.storage import Database
async def go():
    database = Database(Path(sys.argv[1]))
    await database.open()
    for number in range(6):
        await database.write(lambda file: file.execute(
            "INSERT OR REPLACE INTO answers VALUES ('', '', '', '', 0, '', 0, '', zeroblob(1000000))") and None)
    os.kill(os.getpid(), 9)
asyncio.run(go())
"""


def test_what_servers_that_died_left_behind_does_not_pile_up(tmp_path: Path) -> None:
    path, sizes = tmp_path / "a.db", list[int]()
    for _ in range(4):
        died = run([sys.executable, "-c", DYING, str(path)])
        assert died.returncode == -signal.SIGKILL
        sizes.append(path.with_name("a.db-wal").stat().st_size)
    assert sizes[0] > 5_000_000
    assert max(sizes) < 1.5 * sizes[0], sizes


def test_a_server_that_was_killed_leaves_no_lock_behind(tmp_path: Path) -> None:
    script = (
        "import signal, sys; from pathlib import Path; from gateway.storage import lock_database\n"
        "lock = lock_database(Path(sys.argv[1])); print('mine', flush=True); signal.pause()"
    )
    process = Popen(
        [sys.executable, "-c", script, str(tmp_path / "a.db")], stdout=subprocess.PIPE, text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "mine\n"
    with pytest.raises(StorageUnusable):
        lock_database(tmp_path / "a.db")
    process.send_signal(signal.SIGKILL)
    process.wait(300)
    process.stdout.close()
    lock_database(tmp_path / "a.db").close()


async def test_nobody_else_may_read_a_file_that_we_make(tmp_path: Path) -> None:
    database = Database(tmp_path / "log.db")
    await database.open()
    await database.write(lambda file: file.execute("INSERT INTO counters VALUES ('x', 1)"))
    modes = _modes(tmp_path)
    await database.close()
    assert set(modes) == {"log.db", "log.db-wal", "log.db-shm"}
    assert set(modes.values()) == {0o600}


def _modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.glob("*.db*") if path.suffix != ".lock"}
