"""`dragoman log` looks at the file, makes it smaller, and carries sessions out and in."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gateway.cli import app
from gateway.cli.log import ProgressReporter
from gateway.storage import Database, FernetSeal, load_or_create_key
from gateway.storage.log import SqliteLog
from tests.support import fork_server
from tests.support.storage.stored_sessions import SESSIONS, kept, store

Run = Callable[..., Result]
Real = Callable[..., subprocess.CompletedProcess[str]]
RECORDS = sum(map(len, SESSIONS.values()))


@pytest.fixture
async def file(home: Path) -> Path:
    await store(home / "data" / "dragoman.db")
    return home / "data" / "dragoman.db"


def test_a_sound_file_is_exit_code_zero(dragoman: Run, file: Path) -> None:
    result = dragoman("log", "verify")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{file}: 3 sessions, {RECORDS} records in ")
    assert result.stdout.endswith("0 versions of resources; 0 problems\n")
    assert result.stderr == ""


def test_problems_are_listed_and_exit_code_one(dragoman: Run, file: Path) -> None:
    import sqlite3

    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE sessions SET head = 7 WHERE session_id = 's1'")
    connection.close()
    result = dragoman("log", "verify")
    assert result.exit_code == 1
    first, last = result.stdout.splitlines()
    assert first == "s1, record 37: the list of sessions says that 7 is the last one"
    assert last.endswith("; 1 problem")


@pytest.mark.parametrize("command", ["verify", "compact", "export"])
def test_no_file_is_exit_code_two(home: Path, dragoman: Run, command: str) -> None:
    result = dragoman("log", command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"{home}/data/dragoman.db: there is no such file; is this the right data folder?\n"
    assert not (home / "data").exists()


@pytest.mark.parametrize("command", ["verify", "compact", "export", "import"])
def test_a_log_without_a_file_is_told(home: Path, dragoman: Run, command: str) -> None:
    with (home / "config.yaml").open("a") as config:
        config.write("log: memory\n")
    result = dragoman("log", command)
    assert result.exit_code == 2
    assert result.stderr == (
        "the settings say `log: memory`: there is no file to work on; these commands are for `log: sqlite`\n")


def test_another_file_and_another_folder(home: Path, dragoman: Run, file: Path) -> None:
    (home / "elsewhere").mkdir()
    file.rename(home / "elsewhere" / "mine.db")
    with (home / "config.yaml").open("a") as config:
        config.write("log: sqlite:mine.db\n")
    result = dragoman("log", "verify", "--data", "elsewhere")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{home}/elsewhere/mine.db: 3 sessions")


def test_compacting_says_what_became_of_the_file(dragoman: Run, file: Path) -> None:
    result = dragoman("log", "compact")
    assert result.exit_code == 0
    assert " became 3, 0 leftovers removed" in result.stdout
    assert kept(file) == SESSIONS


async def test_a_running_server_is_in_the_way_of_some(home: Path, file: Path) -> None:
    log = SqliteLog(Database(file))
    await log.open()
    try:
        for command, code in (("verify", 0), ("export", 0), ("compact", 2), ("import", 2)):
            result = CliRunner().invoke(app, ["log", command], input=b'{"format":"dragoman log","model":1}\n')
            assert result.exit_code == code, result.output
            if code:
                assert result.stderr.startswith(f"{file} is in use by another server; stop that one")
    finally:
        await log.close()


def test_a_round_trip_through_pipes(home: Path, real: Real, file: Path) -> None:
    done = real("log", "export")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == RECORDS + 1
    assert "the file has secrets of clients" in done.stderr
    back = fork_server.run(
        [sys.executable, "-c", "from gateway.cli import main; main()", "log", "import", "--data", "other"],
        input=done.stdout,
    )
    assert back.returncode == 0, back.stderr
    assert back.stdout == f"{home}/other/dragoman.db: imported 3 sessions, {RECORDS} records\n"
    other = home / "other" / "dragoman.db"
    assert kept(other, FernetSeal(lambda: [load_or_create_key(home / "data")])) == SESSIONS
    assert b"s3cret" not in other.read_bytes()


def test_a_file_that_only_its_writer_can_read(home: Path, dragoman: Run, file: Path) -> None:
    result = dragoman("log", "export", "s1", "--out", "out.jsonl")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "Written to out.jsonl: the file has secrets" in result.stderr
    assert (home / "out.jsonl").stat().st_mode & 0o777 == 0o600
    assert b"s3cret" not in (home / "out.jsonl").read_bytes()
    again = dragoman("log", "export", "--out", "out.jsonl")
    assert (again.exit_code, again.stderr) == (2, "out.jsonl exists already; remove it, or choose another name\n")
    refused = dragoman("log", "import", "out.jsonl")
    assert refused.exit_code == 2
    assert refused.stderr == "there is a session 's1' already; --replace puts this one in its place\n"
    replaced = dragoman("log", "import", "--replace", "out.jsonl")
    assert replaced.stdout == f"{file}: imported 1 session, 37 records, 1 of them replaced existing ones\n"
    seal = FernetSeal(lambda: [load_or_create_key(home / "data")])
    assert kept(file, seal) == {"s2": SESSIONS["s2"], "s3": SESSIONS["s3"], "s1": SESSIONS["s1"]}


def test_what_cannot_be_written_leaves_nothing_behind(home: Path, dragoman: Run, file: Path) -> None:
    result = dragoman("log", "export", "--out", "nowhere/out.jsonl")
    assert (result.exit_code, result.stderr) == (2, "nowhere/out.jsonl cannot be written: No such file or directory\n")
    nobody = dragoman("log", "export", "s1", "nobody", "--out", "out.jsonl")
    assert (nobody.exit_code, nobody.stderr) == (2, "there is no session 'nobody'\n")
    assert sorted(path.name for path in home.iterdir()) == ["config.yaml", "data"]


def test_wrong_input_is_told_with_its_line(home: Path, dragoman: Run) -> None:
    (home / "wrong.jsonl").write_bytes(b'{"format":"dragoman log","model":1}\nnonsense\n')
    result = dragoman("log", "import", "wrong.jsonl")
    assert result.exit_code == 2
    assert result.stderr.startswith("line 2: is no record: ")
    missing = dragoman("log", "import", "missing.jsonl")
    assert (missing.exit_code, missing.stderr) == (2, "missing.jsonl cannot be read: No such file or directory\n")


@pytest.mark.parametrize("command", ["verify", "compact", "export", "import"])
def test_help_has_an_example(dragoman: Run, command: str) -> None:
    result = dragoman("log", command, "--help")
    assert result.exit_code == 0
    assert f"Example: dragoman log {command}" in result.stdout


def test_long_work_says_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    pace = ProgressReporter("verified {} of {} sessions", lambda: now[0])
    for done in range(1, 5001):
        now[0] += 2**-11
        pace(done, 5000)
    pace.end()
    assert capsys.readouterr().err == "verified 2,048 of 5,000 sessions\nverified 4,096 of 5,000 sessions\n"
