"""The recipes for LangGraph and CopilotKit, with the packages that others publish. It needs a network."""

import re
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mappings.language import SupportLevel
from tests.support.dialect_tables import DIALECTS, dialect, table
from tests.support.free_ports import free_port
from tests.support.server_process import PATIENCE, PROGRAM, Running, running

RECIPES = Path(__file__).parents[3] / "docs" / "recipes.md"
SERVER = Path(__file__).with_name("graph_server.py")
PACKAGES = ("langgraph", "ag-ui-langgraph", "copilotkit", "fastapi", "uvicorn")
CHAT = ["You said: hello", "You said: ask me", "? Shall I?", "  1. yes", "  2. no", "You answered: yes"]


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of both graphs."""
    folder = tmp_path_factory.mktemp("agents")
    venv.create(folder / "venv", with_pip=True)
    programs, port = folder / "venv" / "bin", free_port()
    subprocess.run([programs / "pip", "install", "-q", *PACKAGES], check=True, timeout=1200)
    with subprocess.Popen([programs / "python", SERVER, str(port)], stderr=subprocess.PIPE, text=True) as process:
        try:
            answered = subprocess.run(
                ["curl", "-s", "--retry", "60", "--retry-connrefused", "--retry-delay", "1",
                 f"http://127.0.0.1:{port}/openapi.json"], capture_output=True, text=True, check=False)
            assert "/graph" in answered.stdout, process.poll()
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def settings(agent: str, address: str) -> dict[str, Any]:
    """The settings of the recipe that has this agent."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", RECIPES.read_text(), re.MULTILINE | re.DOTALL)
    [found] = [block for block in blocks if agent in yaml.safe_load(block)["agents"]]
    read: dict[str, Any] = yaml.safe_load(found.replace("http://127.0.0.1:8000", address))
    return read


def chat(server: Running, name: str, *lines: str, options: tuple[str, ...] = ()) -> list[str]:
    """What `dragoman chat` prints: replies, and questions beside them."""
    done = subprocess.run(
        [*PROGRAM, "chat", f"{server.address}{dialect(name).mount}", "--dialect", name, *options],
        input="".join(f"{line}\n" for line in lines), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()


def test_clients_of_the_dialect_that_the_recipe_serves(agents: str, tmp_path: Path) -> None:
    recipe = settings("graph", agents)
    [name] = recipe["dialects"]
    with running(tmp_path, **recipe) as server:
        assert chat(server, name, "hello", "ask me", "yes") == CHAT


@pytest.mark.parametrize("name", DIALECTS)
def test_clients_of_an_agent_with_the_state_of_copilotkit(name: str, agents: str, tmp_path: Path) -> None:
    with running(tmp_path, **settings("copilot", agents)) as server:
        assert chat(server, name, "hello", "ask me", "yes") == CHAT
        if table(name).support["client_tools"] is SupportLevel.FULL:
            told = chat(server, name, "the weather?", "sunny", options=("--tool", "weather=The weather of a city"))
            assert told == ["? The agent asks you to run weather", "The tool says: sunny"]
