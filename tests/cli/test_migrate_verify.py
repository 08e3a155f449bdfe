"""`dragoman migrate verify` compares the sessions here with those of the server that is their agent."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import Result

from tests.support import fork_server
from tests.support.chat.pty_terminal import program
from tests.support.dialect_parts import each
from tests.support.dialect_tables import DIALECTS, dialect
from tests.support.server_process import Running, running

Run = Callable[..., Result]


@pytest.fixture
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("old"), dialects={name: {} for name in DIALECTS}) as served:
        talk(served, "hello there")
        yield served


def talk(old: Running, said: str) -> None:
    done = fork_server.run(program(["chat", f"{old.address}/aap"]), input=f"{said}\n")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", each("read_back"))
def test_what_was_imported_is_equal_until_somebody_speaks_there(
    dragoman: Run, old: Running, home: Path, name: str,
) -> None:
    url = f"{old.address}{dialect(name).mount}"
    remote = f"{{backend: remote, settings: {{dialect: {name}, url: '{url}'}}}}"
    (home / "config.yaml").write_text(f"dialects: {{aap: {{}}}}\nagents: {{demo: {remote}}}\n")
    assert dragoman("import", "--from", name, url).exit_code == 0
    done = dragoman("migrate", "verify")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == f"1 sessions and 1 turns compared with {url}: 6 words here, 6 there; 0 differences\n"
    talk(old, "beside the gateway")
    done = dragoman("migrate", "verify")
    assert done.exit_code == 1
    assert "only the server has it; `dragoman import` brings it here" in done.stdout
    assert done.stdout.endswith("1 differences\n")


@pytest.mark.parametrize(("words", "reason"), [
    ((), "no agent of the settings is of the kind remote"),
    (("--agent", "demo"), "'demo' is no agent of the kind remote; there are: none"),
])
def test_settings_without_such_an_agent(dragoman: Run, words: tuple[str, ...], reason: str) -> None:
    done = dragoman("migrate", "verify", *words)
    assert done.exit_code == 2
    assert reason in done.stderr
