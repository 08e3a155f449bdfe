"""The move of one team in docs/migration.md is made: each command prints what the page says that it prints."""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import yaml
from typer.testing import CliRunner

from gateway.cli import app
from gateway.config import load_config
from tests.support.doc_pages import ROOT
from tests.support.server_process import running

STORY = (ROOT / "docs" / "migration.md").read_text("utf-8").partition("## One team's move\n")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", STORY, re.MULTILINE | re.DOTALL)
SHOWN = [part.partition("\n")[::2] for language, block in BLOCKS if not language
         for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
CONFIG, ROUTE = (yaml.safe_load(block) for language, block in BLOCKS if language == "yaml")
OLD, NEW = "http://127.0.0.1:18900", "http://127.0.0.1:18901"
MINUTE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")
PROGRESS = re.compile(r"^\d+ things looked at\n", re.MULTILINE)
MONTH = 30 * 86_400


def commands(*beginnings: str) -> Iterator[tuple[str, str]]:
    return ((command, printed) for command, printed in SHOWN if command.startswith(beginnings))


def printed_by(command: str, old: str, new: str) -> str:
    command = command.replace(OLD, old).replace(NEW, new)
    if command.startswith("dragoman "):
        return PROGRESS.sub("", CliRunner().invoke(app, command.split()[1:]).output)
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300, check=True).stdout


def check(command: str, printed: str, old: str, new: str = "") -> None:
    assert MINUTE.sub("…", printed_by(command, old, new)).strip() == MINUTE.sub("…", printed).strip(), command


def with_addresses(settings: Any, old: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(settings).replace(OLD, old))
    return found


@pytest.mark.timeout(600)
def test_the_team_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old").mkdir()
    team = tmp_path / "team"
    team.mkdir()
    monkeypatch.chdir(team)
    with running(tmp_path / "old", dialects={"zenflux": {}}) as old:
        for number in range(100):
            body = json.dumps({"message": f"question {number}", "userId": "ann", "stream": False}).encode()
            asked = Request(f"{old.address}/api/v1/chat", body, {"Content-Type": "application/json"})
            with urlopen(asked) as answer:
                assert b'"completed"' in answer.read()
        settings = with_addresses(CONFIG, old.address) | {"port": 0}
        (team / "config.yaml").write_text(yaml.safe_dump(settings))
        for command, printed in commands("dragoman import"):
            check(command, printed, old.address)
        with running(team, **settings) as new:
            for command, printed in SHOWN:
                if NEW in command:
                    check(command, printed, old.address, new.address)
        monkeypatch.setattr(time, "time", lambda now=time.time: now() + MONTH)
        [(command, printed)] = [shown for shown in commands("dragoman migrate") if NEW not in shown[0]]
        check(command, printed, old.address)


def test_every_command_of_the_story_is_run() -> None:
    run = [*commands("dragoman import"), *(shown for shown in SHOWN if NEW in shown[0])]
    assert len(run) == len(SHOWN) - 1 == 7, "the last one is run a month later"


def test_the_route_of_the_story_is_a_right_setting(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(CONFIG | ROUTE))
    [rule] = load_config(tmp_path / "config.yaml").route
    assert (rule.to, rule.share) == ("new", 0.1)
