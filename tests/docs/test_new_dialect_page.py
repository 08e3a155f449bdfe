"""The commands of docs/new-dialect.md are run in their order, and print what the page says that they print."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from mappings.language import routes
from tests.support.doc_pages import ROOT, Page
from tests.support.fork_server import for_shells
from tests.support.server_process import running

PAGE = ROOT / "docs" / "new-dialect.md"
TEXT = PAGE.read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
OURS = "http://127.0.0.1:18900"
VARYING = re.compile(r"\b(?:sess|turn)_[0-9a-z]+|\d{4}-\d\d-\d\dT[\d:.]+Z|https?://[\d.]+:\d+")


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Each command with what it prints."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield command, printed.rstrip("\n")


SHOWN = [shown for language, block in BLOCKS if not language for shown in commands(block)]


def run(command: str, folder: Path) -> str:
    given = {**os.environ, "COLUMNS": "100", "PYTHONPATH": str(ROOT)}
    command = command.replace("dragoman ", f"{for_shells()} -m gateway ", 1)
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, cwd=folder, env=given)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(600)
def test_the_page_can_be_followed_from_its_first_command_to_its_last(tmp_path: Path) -> None:
    local = [(command, printed) for command, printed in SHOWN if not command.startswith("curl")]
    settings = yaml.safe_load(next(block for language, block in BLOCKS if language == "yaml"))
    for command, printed in local:
        assert run(command, tmp_path).rstrip() == printed, command
        if command.startswith("dragoman new-dialect"):
            (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))
    with running(tmp_path, **settings) as served:
        known: dict[str, str] = {}
        for command, printed in [shown for shown in SHOWN if shown[0].startswith("curl")]:
            asked = re.sub(r"sess_1\b", lambda _: known["session"], command).replace(OURS, served.address)
            had = run(asked, tmp_path).rstrip("\n")
            assert VARYING.sub("…", had) == VARYING.sub("…", printed), command
            if '"title"' in command:
                known["session"] = json.loads(had)["id"]
        [examined] = [block for language, block in BLOCKS if language == "sh" and "conform" in block]
        assert "conforms: Nova" in run(examined.strip().replace(OURS, served.address), tmp_path)


def test_every_key_of_a_route_and_every_name_is_explained() -> None:
    rows = {cells[1].strip(): cells[2].strip() for line in TEXT.splitlines() if line.startswith("| ")
            and len(cells := re.split(r"(?<!\\)\|", line)) > 3}
    told = " ".join(rows)
    assert [key for key in routes.RouteShape.model_fields if f"`{key}`" not in told] == []
    for row, names in {
        "a session": routes.SESSION_NAMES, "a list of sessions": routes.PAGE_NAMES,
        r"a message (`$messages \| each message`)": routes.MESSAGE_NAMES,
        r"an agent (`$agents \| each agent`)": routes.AGENT_NAMES, r"a tool (`$tools \| each tool`)": routes.TOOL_NAMES,
    }.items():
        assert rows[row] == ", ".join(f"`{name}`" for name in names)


def test_the_page_is_in_the_index() -> None:
    assert any(link.target == PAGE.name for link in Page(ROOT / "docs" / "README.md").links)
