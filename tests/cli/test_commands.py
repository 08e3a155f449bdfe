"""Every command explains itself; those of other packages are fetched when they are asked for."""

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from itertools import pairwise

import pytest
from typer.testing import Result

from adapters import known_dialects
from gateway import cli
from gateway.model import MODEL_VERSION
from gateway.storage import SCHEMA_VERSION
from tests.support.dialect_tables import table

Run = Callable[..., Result]
COMMANDS = [
    "serve", "check", "doctor", "replay", "sessions", "purge", "version", "keys", "keys add", "keys list",
    "keys remove", "conform", "usage", "plan", "migrate plan", "migrate shadow",
]


def test_the_help_names_every_command(dragoman: Run) -> None:
    result = dragoman("--help")
    assert result.exit_code == 0
    assert all(command in result.stdout for command in ("serve", "check", "replay", "keys", "conform"))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example(dragoman: Run, command: str) -> None:
    result = dragoman(*command.split(), "--help")
    assert result.exit_code == 0
    assert "Example: " in result.stdout


@pytest.mark.parametrize("command", [*COMMANDS, "chat", "translate", "log verify", "log export", "record"])
def test_help_flows_to_the_edge_of_the_terminal(
    dragoman: Run, command: str, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A line ends where the next word has no room; it does not end where a line of the source does."""
    monkeypatch.setenv("COLUMNS", "80")
    said = dragoman(*command.split(), "--help").stdout.partition("╭")[0]
    lines = [line.strip() for line in said.splitlines()]
    broken = [line for line, after in pairwise(lines) if line and after and len(f"{line} {after.split()[0]}") <= 78]
    assert broken == []


ALL = [
    "", "serve", "init", "check", "doctor", "chat", "sessions", "usage", "migrate",
    "migrate plan", "migrate verify", "import", "export", "purge", "plan", "translate", "replay", "openapi",
    "asyncapi", "version", "log", "log verify",
    "log compact", "log export", "log import", "keys", "keys add", "keys list", "keys remove", "cluster",
    "cluster status", "cluster drain", "conform", "record",
]


@pytest.mark.parametrize("command", ALL)
def test_help_speaks_of_values_and_not_of_types(dragoman: Run, command: str) -> None:
    """What an option takes is named by a word; no type of Python, and nothing for a flag."""
    said = dragoman(*command.split(), "--help").stdout
    assert re.findall(r"<[a-z]|list\[|\bTEXT\.\.\.|BOOLEAN", said) == []


def test_help_names_what_an_option_takes(dragoman: Run) -> None:
    said = " ".join(dragoman("chat", "--help").stdout.split())
    for words in ("--dialect -d NAME", "--session ID Continue", "--tool NAME Offer", "--timeout SECONDS [x>=0.1] Sec"):
        assert words in said
    assert re.search(r"--watch +Read settings", dragoman("serve", "--help").stdout)


def test_every_command_is_looked_at_here(dragoman: Run) -> None:
    listed = re.findall(r"^│ (\w+) +\S", dragoman("--help").stdout.partition("Commands")[2], re.MULTILINE)
    assert {name for name in ALL if name and " " not in name} == set(listed)


@pytest.mark.parametrize("word", ["--version", "version"])
def test_it_knows_its_version(dragoman: Run, word: str) -> None:
    result = dragoman(word)
    assert result.exit_code == 0
    first, stores, tables = result.stdout.splitlines()
    assert first == f"dragoman {version('dragoman')}"
    assert stores == f"stores   database {SCHEMA_VERSION}, records {MODEL_VERSION}"
    assert tables == "tables   " + ", ".join(f"{name} {table(name).spec}" for name in known_dialects())


def test_a_wrong_word_is_exit_code_two(dragoman: Run) -> None:
    assert dragoman("srve").exit_code == 2
    assert dragoman("serve", "--prot", "1").exit_code == 2


def test_a_command_of_a_package_that_is_not_there_is_not_there(dragoman: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cli.EXTERNAL_COMMANDS, "conform", ("nowhere.command", "conform"))
    assert "conform " not in dragoman("--help").stdout
    assert dragoman("conform").exit_code == 2


PRESSING = """
import builtins, signal
from gateway.__main__ import main

fetch = builtins.__import__

def pressing(name, *words):
    if name == "MODULE":
        signal.raise_signal(signal.SIGINT)
    return fetch(name, *words)

builtins.__import__ = pressing
main()
"""


@pytest.mark.parametrize("module", ["gateway.cli", "gateway.chat"])
def test_ctrl_c_before_a_chat_has_begun_is_no_traceback(module: str) -> None:
    """Neither while the commands are imported, nor while the chat imports what it needs."""
    program = [sys.executable, "-c", PRESSING.replace("MODULE", module), "chat", "http://127.0.0.1:9/aap"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_command_line_itself_imports_little() -> None:
    """Each of these takes longer to import than the whole command line."""
    heavy = ("aiohttp", "pydantic", "structlog", "prometheus_client", "watchfiles", "conformance", "rich.console")
    code = f"import sys, gateway.cli; print([name for name in {heavy!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert found.stdout.strip() == "[]"
