"""`dragoman sessions` lists the sessions of a server of any dialect, and those of a data folder."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import Result

from tests.support import fork_server
from tests.support.chat.pty_terminal import program
from tests.support.dialect_tables import DIALECTS, dialect
from tests.support.server_process import Running, running

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("sessions")
    with running(folder, dialects={name: {} for name in DIALECTS}, log="sqlite") as served:
        for said in ("/title First one", "two"):
            talk(served, said)
        yield served


def data_of(server: Running) -> Path:
    return server.errors.parent / "data"


def talk(server: Running, said: str) -> "subprocess.CompletedProcess[str]":
    done = fork_server.run(program(["chat", f"{server.address}/api/v1/cloud"]), input=f"{said}\n")
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("name", DIALECTS)
def test_the_sessions_of_a_server_in_every_dialect(dragoman: Run, server: Running, name: str) -> None:
    result = dragoman("sessions", f"{server.address}{dialect(name).mount}")
    assert (result.exit_code, result.stderr) == (0, "")
    head, *rows = result.stdout.splitlines()
    assert head.split()[0] == "session"
    assert len(rows) == 2
    assert all(row.startswith("sess_") for row in rows)
    if "title" in head:
        [titled] = [row for row in rows if row.endswith("First one")]
        assert " UTC" in titled


def test_a_gateway_lists_its_sessions_without_a_dialect(dragoman: Run, server: Running) -> None:
    result = dragoman("sessions", server.address)
    assert (result.exit_code, result.stderr) == (0, "")
    head, *rows = result.stdout.splitlines()
    assert head.split() == ["session", "agent", "status", "changed", "title"]
    assert [row.split("UTC")[1].strip() for row in rows] == ["two", "First one"], "the last change first"
    some = dragoman("sessions", f"{server.address}/", "--limit", "1")
    assert len(some.stdout.splitlines()) == 2
    assert some.stderr == "There are more than these; --limit 5 lists more.\n"


@pytest.mark.parametrize("name", DIALECTS)
def test_more_than_are_listed_are_told_of(dragoman: Run, server: Running, name: str) -> None:
    result = dragoman("sessions", f"{server.address}{dialect(name).mount}", "--limit", "1")
    assert len(result.stdout.splitlines()) == 2
    assert result.stderr == "There are more than these; --limit 5 lists more.\n"


def test_the_sessions_of_a_data_folder_while_its_server_runs(dragoman: Run, server: Running) -> None:
    listed = dragoman("sessions", "--data", str(data_of(server)))
    assert (listed.exit_code, listed.stderr) == (0, "")
    head, *rows = listed.stdout.splitlines()
    assert head.split() == ["session", "agent", "status", "changed", "title"]
    assert {row.split()[0] for row in rows} == {
        row.split()[0] for row in dragoman("sessions", f"{server.address}/aap").stdout.splitlines()[1:]
    }


def test_where_there_are_none_that_is_told(dragoman: Run, home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(tmp_path_factory.mktemp("empty"), dialects={"aap": {}}, log="sqlite") as empty:
        for words in ([f"{empty.address}/aap"], ["--data", str(data_of(empty))]):
            result = dragoman("sessions", *words)
            assert (result.exit_code, result.stdout, result.stderr) == (0, "", "There are no sessions.\n")


def test_what_cannot_be_listed_is_one_line(dragoman: Run, home: Path) -> None:
    nowhere = dragoman("sessions", "http://127.0.0.1:9/aap")
    assert nowhere.exit_code == 2
    assert nowhere.stderr.endswith("; is it running, and is that its address?\n")
    missing = dragoman("sessions", "--data", "nowhere")
    assert (missing.exit_code, len(missing.stderr.splitlines())) == (2, 1)
    (home / "config.yaml").write_text("dialects: {aap: }\nagents: {demo: {backend: demo}}\nlog: memory\n")
    assert dragoman("sessions").stderr.startswith("the settings say `log: memory`: there is no file to work on")
