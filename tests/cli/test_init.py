"""Without a config.yaml the demo is served, and says so; `dragoman init` writes one to edit, never over another."""

import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest
from typer.testing import Result

from gateway.config import TEMPLATE

Run = Callable[..., Result]
Started = Callable[..., subprocess.Popen[str]]
Real = Callable[..., subprocess.CompletedProcess[str]]
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def empty(home: Path) -> Path:
    (home / "config.yaml").unlink()
    return home


def test_the_demo_is_served_in_all_dialects_and_keeps_its_data_here(empty: Path, started: Started) -> None:
    server = started("--port", "0")
    assert server.stdout is not None
    first = server.stdout.readline()
    assert first == "There is no config.yaml here: the demo agent is served. `dragoman init` writes one to edit.\n"
    found = re.search(r"http://[\d.]+:\d+", server.stdout.readline())
    assert found
    for path in ("/aap/meta", "/api/v1/cloud/agents", "/api/sessions", "/api/v1/conversations"):
        with urlopen(found[0] + path, timeout=60) as answer:
            assert answer.status == 200, path
    server.send_signal(signal.SIGINT)
    server.communicate(timeout=300)
    assert server.returncode == 0
    assert (empty / "data").is_dir()


def test_a_file_that_was_named_must_be_there(real: Real) -> None:
    done = real("serve", "--config", "config.yaml")
    assert done.returncode == 2
    assert "there is no such file" in done.stderr


@pytest.mark.parametrize("words", [("check", "--matrix"), ("keys", "list"), ("check",)])
def test_other_commands_need_no_config(dragoman: Run, words: tuple[str, ...]) -> None:
    done = dragoman(*words)
    assert done.exit_code == 0, done.output


def test_keys_are_kept_where_the_user_stands(empty: Path, dragoman: Run) -> None:
    assert dragoman("keys", "add", "me").exit_code == 0
    assert (empty / "data").is_dir()


def test_init_writes_what_explains_every_setting(empty: Path, dragoman: Run) -> None:
    done = dragoman("init")
    assert (done.exit_code, done.output) == (0, "config.yaml is written; edit it, then: dragoman serve\n")
    assert (empty / "config.yaml").read_text() == (ROOT / "config.yaml").read_text()
    assert dragoman("check").exit_code == 0


def test_init_never_writes_over_a_file(empty: Path, dragoman: Run) -> None:
    (empty / "config.yaml").write_text("mine")
    done = dragoman("init")
    assert done.exit_code == 2
    assert "config.yaml exists and was left as it is" in done.output
    assert (empty / "config.yaml").read_text() == "mine"


def test_init_tells_what_keeps_it_from_writing(empty: Path, dragoman: Run) -> None:
    done = dragoman("init", os.path.join("nowhere", "my.yaml"))  # noqa: PTH118
    assert done.exit_code == 2
    assert "cannot be written: No such file or directory" in done.output


def test_the_config_of_the_project_is_the_one_that_init_writes() -> None:
    assert TEMPLATE.read_text() == (ROOT / "config.yaml").read_text(), "cp config.yaml gateway/config/template.yaml"
