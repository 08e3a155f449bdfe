"""`dragoman keys` makes, lists and removes keys."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from typer.testing import Result

from gateway.ports.keys import KeyUse
from gateway.resources.keys import issue_key
from gateway.storage.resources.key_tables import SqliteKeyTable
from tests.support.key_stores import key_store
from tests.support.redis_server import redis_of_this_run

Run = Callable[..., Result]


def test_a_key_is_shown_once_and_alone_on_standard_output(home: Path, dragoman: Run) -> None:
    result = dragoman("keys", "add", "laptop", "--user", "ada")
    assert result.exit_code == 0
    assert key_store(home / "data").verify(result.stdout.strip()) == "ada"
    assert "cannot be shown again" in result.stderr


def test_the_users_name_is_the_keys_by_default(home: Path, dragoman: Run) -> None:
    assert key_store(home / "data").verify(dragoman("keys", "add", "ada").stdout.strip()) == "ada"


def test_keys_are_listed_without_what_opens(dragoman: Run) -> None:
    token = dragoman("keys", "add", "laptop", "--user", "ada").stdout.strip()
    result = dragoman("keys", "list")
    assert result.stdout.split()[:2] == ["laptop", "ada"]
    assert token not in result.output


def test_the_list_shows_last_use_and_which_key_made_which(home: Path, dragoman: Run) -> None:
    dragoman("keys", "add", "laptop", "--user", "ada")
    table = SqliteKeyTable(home / "data" / "dragoman.db")
    version, [laptop] = table.load()
    for rule in (issue_key("ada", "spare", parent=laptop.hash), issue_key("", "nobody's")):
        version, keys = table.load()
        table.change(version, rule(keys)[0])
    table.touch({laptop.hash: KeyUse(86400.0, "192.0.2.7")})
    table.close()
    first, second, third = dragoman("keys", "list").stdout.splitlines()
    assert "used 1970-01-02 00:00 UTC from 192.0.2.7" in first
    assert second.endswith("never used                                made by laptop")
    assert "opens nothing" in third


def test_keys_that_were_made_with_a_key_are_removed_with_it_and_both_are_in_the_audit_log(
    home: Path, dragoman: Run,
) -> None:
    dragoman("keys", "add", "laptop", "--user", "ada")
    table = SqliteKeyTable(home / "data" / "dragoman.db")
    version, [laptop] = table.load()
    change, (made, _) = issue_key("ada", "spare", parent=laptop.hash)([laptop])
    table.change(version, change)
    table.close()
    assert made.name in dragoman("keys", "remove", "laptop").stderr
    assert "There are no keys" in dragoman("keys", "list").stderr
    lines = [json.loads(line) for line in (home / "data" / "audit.jsonl").read_text().splitlines()]
    assert [(line["event"], line["target"]) for line in lines] == [
        ("key.created", "laptop of ada"), ("key.revoked", "laptop"), ("key.revoked", f"{made.name}, made by laptop"),
    ]
    assert {line["address"] for line in lines} == {"command line"}


def test_the_keys_of_servers_that_share_a_redis_are_there(home: Path, dragoman: Run) -> None:
    log = f"{redis_of_this_run().url}?prefix={quote(str(home))}"
    with (home / "config.yaml").open("a") as file:
        file.write(f"log: '{log}'\n")
    token = dragoman("keys", "add", "laptop", "--user", "ada").stdout.strip()
    assert token.startswith("dgm_")
    assert dragoman("keys", "list").stdout.split()[:2] == ["laptop", "ada"]
    assert not (home / "data" / "dragoman.db").exists()
    assert dragoman("keys", "remove", "laptop").exit_code == 0
    assert dragoman("keys", "remove", "laptop").exit_code == 2


def test_no_keys_is_said(dragoman: Run) -> None:
    result = dragoman("keys", "list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "There are no keys" in result.stderr


def test_a_removed_key_is_gone(home: Path, dragoman: Run) -> None:
    token = dragoman("keys", "add", "laptop").stdout.strip()
    assert dragoman("keys", "remove", "laptop").exit_code == 0
    assert key_store(home / "data").verify(token) is None


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
    assert key_store(home / "elsewhere").verify(result.stdout.strip()) == "laptop"
