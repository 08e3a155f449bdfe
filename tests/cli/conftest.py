"""A folder with settings in it, the command line run inside, and the real program."""

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
from typer.testing import CliRunner, Result

from gateway.cli import app
from tests.support import fork_server

CONFIG = "dialects: {aap: {mount: /aap}}\nagents: {demo: {backend: demo}}\n"

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the user stands; the journal is as before when they have gone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "config.yaml").write_text(CONFIG)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield tmp_path
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def dragoman() -> Run:
    """Run a command in this process."""
    return lambda *words: CliRunner().invoke(app, list(words))


def program(*words: str) -> list[str]:
    return [sys.executable, "-c", "from gateway.cli import main; main()", *words]


@pytest.fixture
def real() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command as users do."""
    return lambda *words: fork_server.run(program(*words))


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a server; it does not outlive the test."""
    running: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        running.append(fork_server.Popen(program("serve", *words), stdout=pipe, stderr=pipe, text=True))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate(timeout=300)
