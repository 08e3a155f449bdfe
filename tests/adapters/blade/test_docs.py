"""The sessions that docs/blade.md shows are sessions that can be had."""

import asyncio
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from adapters.blade.wire import BladeSettings
from tests.adapters.blade.talking import blade
from tests.served import Served

PAGE = (Path(__file__).parents[3] / "docs/blade.md").read_text()
OURS = "http://127.0.0.1:18900"


def block(language: str) -> str:
    [found] = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with blade(tmp_path) as served:
        yield served


async def run(*command: str, cwd: Path) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(40):
        printed, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, printed.decode()


async def test_the_session_in_python(served: Served, tmp_path: Path) -> None:
    (tmp_path / "shown.py").write_text(block("python").replace(OURS, served.address))
    code, printed = await run(sys.executable, "shown.py", cwd=tmp_path)
    assert code == 0, printed
    assert printed == block("text")


async def test_the_session_in_javascript(served: Served, tmp_path: Path) -> None:
    npm, node = shutil.which("npm"), shutil.which("node")
    if (npm is None or node is None) and "CI" not in os.environ:
        pytest.skip("there is no node here; `make test` installs it where it may")
    assert npm, "there is no npm"
    assert node, "there is no node"
    code, printed = await run(npm, "install", "--no-audit", "--no-fund", "socket.io-client@4", cwd=tmp_path)
    assert code == 0, printed
    (tmp_path / "shown.js").write_text(block("javascript").replace(OURS, served.address))
    code, printed = await run(node, "shown.js", cwd=tmp_path)
    assert (code, printed.splitlines()) == (0, ["user: hello", "assistant: You said: hello", "completed"])


def test_the_settings_shown_are_the_defaults() -> None:
    shown = yaml.safe_load(block("yaml"))["dialects"]["blade"]
    assert {**shown, "agent": None} == {"mount": "/api", **BladeSettings().model_dump()}
