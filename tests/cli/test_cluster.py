"""`dragoman cluster`: a real server is shown, and drained."""

import json
import secrets
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from tests.cli.conftest import CONFIG
from tests.cli.test_serve import address_of
from tests.support.free_ports import free_port
from tests.support.redis_server import redis_of_this_run

Run = Callable[..., Result]
Start = Callable[..., subprocess.Popen[str]]


def test_a_server_is_shown_and_drained(home: Path, dragoman: Run, started: Start) -> None:
    log, port = f"{redis_of_this_run().url}?prefix={secrets.token_hex(4)}", free_port()
    (home / "config.yaml").write_text(f"{CONFIG}log: {log}\nport: {port}\nlimits: {{lease_seconds: 1.5}}\n")
    server = started()
    address_of(server)
    [shown] = json.loads(dragoman("cluster", "status", "--json").stdout)["replicas"]
    name = shown["report"]["name"]
    assert (name.endswith(f":{port}"), shown["leads"], shown["report"]["is_draining"]) == (True, True, False)
    assert 0 < shown["lease_ms"] <= 1500
    listed = dragoman("cluster", "status").stdout
    assert shown["id"] in listed and name in listed and "0 sessions, 0 of them in a turn" in listed
    drained = dragoman("cluster", "drain", name)
    assert (drained.exit_code, drained.stderr.startswith(f"{shown['id']} ({name}) drains")) == (0, True), drained.stderr
    assert server.wait(60) == 0
    assert json.loads(dragoman("cluster", "status", "--json").stdout)["replicas"] == []
    assert '"event":"replica.drained"' in (home / "data" / "audit.jsonl").read_text().replace('": "', '":"')


@pytest.mark.parametrize("words", [("status",), ("drain", "x")])
def test_a_log_of_one_server_has_no_cluster(dragoman: Run, words: tuple[str, ...]) -> None:
    told = dragoman("cluster", *words)
    assert told.exit_code == 2
    assert "`log: sqlite`, which one server uses alone: a cluster shares a Redis" in told.stderr


def test_nobody_is_drained_by_a_wrong_name(home: Path, dragoman: Run) -> None:
    log = f"{redis_of_this_run().url}?prefix={secrets.token_hex(4)}"
    (home / "config.yaml").write_text(f"{CONFIG}log: {log}\n")
    told = dragoman("cluster", "drain", "x")
    assert told.exit_code == 2 and "has no data of Dragoman under the prefix" in told.stderr
