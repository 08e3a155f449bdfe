"""`dragoman keys` makes, lists and removes keys."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

from gateway.resources import KeyStore

Run = Callable[..., Result]


def test_a_key_is_shown_once_and_alone_on_standard_output(home: Path, dragoman: Run) -> None:
    result = dragoman("keys", "add", "laptop", "--user", "ada")
    assert result.exit_code == 0
    assert KeyStore(home / "data").verify(result.stdout.strip()) == "ada"
    assert "cannot be shown again" in result.stderr


def test_the_users_name_is_the_keys_by_default(home: Path, dragoman: Run) -> None:
    assert KeyStore(home / "data").verify(dragoman("keys", "add", "ada").stdout.strip()) == "ada"


def test_keys_are_listed_without_what_opens(dragoman: Run) -> None:
    token = dragoman("keys", "add", "laptop", "--user", "ada").stdout.strip()
    result = dragoman("keys", "list")
    assert result.stdout.split()[:2] == ["laptop", "ada"]
    assert token not in result.output


def test_no_keys_is_said(dragoman: Run) -> None:
    result = dragoman("keys", "list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "There are no keys" in result.stderr


def test_a_removed_key_is_gone(home: Path, dragoman: Run) -> None:
    token = dragoman("keys", "add", "laptop").stdout.strip()
    assert dragoman("keys", "remove", "laptop").exit_code == 0
    assert KeyStore(home / "data").verify(token) is None


def test_a_second_key_of_that_name_is_refused(dragoman: Run) -> None:
    dragoman("keys", "add", "laptop")
    result = dragoman("keys", "add", "laptop")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "there is a key 'laptop' already; remove it first, or choose another name\n"


def test_removing_what_is_not_there_is_refused(dragoman: Run) -> None:
    result = dragoman("keys", "remove", "laptop")
    assert (result.exit_code, result.stderr) == (2, "there is no key 'laptop'\n")


def test_another_data_folder_can_be_named(home: Path, real: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    result = real("keys", "add", "laptop", "--data", "elsewhere")
    assert result.returncode == 0
    assert KeyStore(home / "elsewhere").verify(result.stdout.strip()) == "laptop"
