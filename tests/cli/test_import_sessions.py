"""`dragoman import` brings the conversations of a server of any dialect here, once, and says what became of each."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest
from typer.testing import Result

from gateway.cli.import_sessions import read_since
from gateway.storage.log import open_log_file
from tests.support import fork_server
from tests.support.chat.pty_terminal import program
from tests.support.dialect_parts import each
from tests.support.dialect_tables import DIALECTS, dialect
from tests.support.redis_server import redis_of_this_run
from tests.support.server_process import Running, running

Run = Callable[..., Result]
PAGE = (Path(__file__).parents[2] / "docs" / "import.md").read_text()


def complaints(stderr: str) -> str:
    """What a command says beside its progress, which it tells once a second: a busy machine takes longer."""
    return re.sub(r"^[0-9]+ things looked at\n", "", stderr, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("old"), dialects={name: {} for name in DIALECTS}) as served:
        for said in ("/title First one", "two"):
            done = fork_server.run(program(["chat", f"{served.address}/aap"]), input=f"{said}\n")
            assert done.returncode == 0, done.stderr
        yield served


def url(old: Running, name: str) -> str:
    return f"{old.address}{dialect(name).mount}"


@pytest.mark.parametrize("name", each("read_back"))
def test_the_sessions_of_a_server_in_every_dialect(dragoman: Run, old: Running, home: Path, name: str) -> None:
    words = ("import", "--from", name, url(old, name), "--report", "report.jsonl")
    tried = dragoman(*words, "--dry-run")
    assert (tried.exit_code, complaints(tried.stderr)) == (0, "")
    assert tried.stdout.startswith("2 to be imported\n")
    done = dragoman(*words)
    assert (done.exit_code, complaints(done.stderr)) == (0, "")
    assert done.stdout.startswith("2 imported\n")
    with open_log_file(home / "data" / "dragoman.db") as file:
        stored = {head.session_id for head in file.heads()}
    sessions = [line for line in lines(home) if "session_id" in line]
    assert stored == {line["session_id"] for line in sessions}
    assert [line["outcome"] for line in sessions[:4]] == ["imported"] * 4, "a dry run and an import"
    again = dragoman(*words)
    assert (again.exit_code, again.stdout.splitlines()[0]) == (0, "2 imported before")
    assert (home / "report.jsonl").stat().st_mode & 0o777 == 0o600


def lines(home: Path) -> list[dict[str, str]]:
    return [orjson.loads(line) for line in (home / "report.jsonl").read_bytes().splitlines()]


def test_a_server_that_is_not_there(dragoman: Run) -> None:
    done = dragoman("import", "--from", "aap", "http://127.0.0.1:9/aap", "--timeout", "1")
    assert done.exit_code == 2
    assert "is it running, and is that its address?" in done.stderr


@pytest.mark.parametrize(("words", "reason"), [
    (("--from", "nova", "http://127.0.0.1:9/x"), "there is no dialect 'nova'"),
    (("--from", "aap", "127.0.0.1:9/aap"), "is not an http or https address"),
    (("--from", "aap", "http://127.0.0.1:9/aap", "--agent", "nobody"), "there is no agent 'nobody' in the settings"),
    (("--from", "aap", "http://127.0.0.1:9/aap", "--since", "soon"), "--since: must be an age such as 7d"),
])
def test_mistakes_are_explained(dragoman: Run, words: tuple[str, ...], reason: str) -> None:
    done = dragoman("import", *words)
    assert done.exit_code == 2
    assert reason in done.stderr


def test_parts_are_chosen(dragoman: Run, old: Running) -> None:
    words = ("import", "--from", "cas", url(old, "cas"))
    assert dragoman(*words, "--only", "agents").stdout.startswith("agents: 1 here already\n")
    assert dragoman(*words, "--without", "agents", "--without", "files").stdout.startswith("2 imported\nnot seen")
    wrong = dragoman(*words, "--only", "toys")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "'toys' cannot be imported; there are: sessions, agents, memories, files, schedules" in wrong.stderr


def test_since_is_an_age_or_a_date() -> None:
    assert read_since("7d", 1_000_000.0) == 1_000_000.0 - 7 * 86400
    assert read_since("12h", 1_000_000.0) == 1_000_000.0 - 12 * 3600
    assert read_since("1970-01-02", 0.0) == 86400
    assert read_since("1970-01-02T00:00:00+01:00", 0.0) == 86400 - 3600


def test_a_running_gateway_is_named(dragoman: Run, old: Running, home: Path) -> None:
    words = ("import", "--from", "aap", url(old, "aap"), "--report", "report.jsonl")
    with running(home, dialects={"aap": {}}, log="sqlite") as new:
        refused = dragoman(*words)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "name the running gateway with --into" in refused.stderr
        (home / "report.jsonl").unlink()
        done = dragoman(*words, "--into", new.address)
        assert (done.exit_code, complaints(done.stderr)) == (0, "")
        assert done.stdout.startswith("2 imported\n")
        assert [line["outcome"] for line in lines(home)[:2]] == ["imported"] * 2
        again = dragoman(*words, "--into", new.address)
        assert (again.exit_code, again.stdout.splitlines()[0]) == (0, "2 imported before")
        wrong = dragoman(*words, "--into", new.address, "--agent", "nobody")
        assert (wrong.exit_code, wrong.stdout) == (2, "")
        assert "there is no agent 'nobody'" in wrong.stderr


def test_servers_that_share_a_redis(dragoman: Run, old: Running, home: Path) -> None:
    redis = redis_of_this_run()
    redis.forget()
    shared = {"dialects": {"aap": {}}, "log": f"{redis.url}?prefix={home.name}"}
    words = ("import", "--from", "aap", url(old, "aap"))
    with running(home, **shared) as new:
        done = dragoman(*words)
        assert (done.exit_code, complaints(done.stderr)) == (0, "")
        assert done.stdout.startswith("2 imported\n")
        listed = dragoman("sessions", new.address)
        assert "First one" in listed.stdout
        [session_id] = [line.split()[0] for line in listed.stdout.splitlines() if "First one" in line]
        talk = fork_server.run(program(["chat", f"{new.address}/aap", "--session", session_id]), input="three\n")
        assert "three" in talk.stdout, talk.stderr
        assert dragoman(*words).stdout.startswith("2 imported before\n")
    assert dragoman(*words).stdout.startswith("2 imported before\n"), "nobody runs any more"


def test_the_page_shows_what_is_printed(dragoman: Run, old: Running) -> None:
    [shown] = re.findall(r"```sh\n\.venv/bin/(dragoman import [^\n]*)\n```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    words = shown[0].replace("http://127.0.0.1:18900", old.address).split()[1:]
    assert dragoman(*words).stdout == shown[1]
