"""`dragoman export` makes sessions at another server, once, and refuses protocols that take no history."""

import json
import urllib.request
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
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("other"), dialects={name: {} for name in DIALECTS}) as served:
        done = fork_server.run(program(["chat", f"{served.address}/aap"]), input="/think /tool clock {}\nthank you\n")
        assert done.returncode == 0, done.stderr
        yield served


def get(url: str) -> dict[str, list[dict[str, str]]]:
    with urllib.request.urlopen(url) as response:  # our own server
        found: dict[str, list[dict[str, str]]] = json.load(response)
    return found


def test_an_exported_session_reads_as_here(dragoman: Run, other: Running, home: Path) -> None:
    url = f"{other.address}/aap"
    assert dragoman("import", "--from", "aap", url).exit_code == 0
    [here] = [session["sessionId"] for session in get(f"{url}/sessions")["sessions"]]
    assert dragoman("export", "--to", "aap", url, "--dry-run").stdout.startswith("1 to be exported\n")
    assert not (home / "export.jsonl").exists()
    done = dragoman("export", "--to", "aap", url)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("1 exported\n")
    line = json.loads((home / "export.jsonl").read_text())
    assert (line["session_id"], line["messages"]) == (here, 6)
    there = get(f"{url}/sessions/{line['their_id']}/history?type=full")
    assert there == get(f"{url}/sessions/{here}/history?type=full")
    again = dragoman("export", "--to", "aap", url)
    assert (again.exit_code, again.stdout) == (0, "There is nothing to export.\n")


@pytest.mark.parametrize("name", [name for name in DIALECTS if name != "aap"])
def test_protocols_without_histories_are_refused(dragoman: Run, home: Path, name: str) -> None:
    done = dragoman("export", "--to", name, f"http://127.0.0.1:9{dialect(name).mount}")
    assert done.exit_code == 2
    assert done.stderr.startswith(f"in {name} a session cannot be created with messages")
    assert done.stderr.endswith("it can in: aap\n")
    assert not (home / "export.jsonl").exists()


def test_a_report_of_something_else(dragoman: Run, other: Running, home: Path) -> None:
    assert dragoman("import", "--from", "aap", f"{other.address}/aap").exit_code == 0
    (home / "export.jsonl").write_text("not a report\n")
    done = dragoman("export", "--to", "aap", f"{other.address}/aap")
    assert done.exit_code == 2
    assert "is no report of an export" in done.stderr
