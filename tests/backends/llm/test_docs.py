"""The pages about models keep their word: every setting is on them, every example loads, and answers."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError
from structlog.testing import capture_logs

from gateway.backends.kinds import BackendContext, kind_of
from gateway.backends.llm.anthropic import AnthropicSettings
from gateway.backends.llm.openai import OpenaiSettings
from gateway.backends.mcp import McpServerSettings
from gateway.composition import component_problems
from gateway.config import load_config
from tests.support.backends.messages_api import message, text
from tests.support.backends.model_services import says
from tests.support.client.byte_server import serving
from tests.support.dialects.aap.reader import read
from tests.support.gateway_server import serving as gateway

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "backends.md").read_text("utf-8")
SECTIONS = {
    "openai": PAGE.partition("\n## `openai`\n")[2].partition("\n## ")[0],
    "anthropic": PAGE.partition("\n## `anthropic`\n")[2].partition("\n## ")[0],
}
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "WIKI_KEY")
ANSWERS = {"openai": says("Good day."), "anthropic": message(text(0, "Good day."))}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in KEYS:
        monkeypatch.setenv(key, f"the-value-of-{key.lower()}")


def example(kind: str) -> dict[str, Any]:
    [block] = re.findall(r"```yaml\n(.*?)```", SECTIONS[kind], re.DOTALL)
    loaded: dict[str, Any] = yaml.safe_load(block)
    return loaded


def shipped(kind: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "examples" / kind / "config.yaml").read_text("utf-8"))
    return loaded


def test_every_setting_is_on_the_page() -> None:
    for settings in (OpenaiSettings, AnthropicSettings, McpServerSettings):
        assert [name for name in settings.model_fields if f"`{name}`" not in SECTIONS["openai"]] == []


def test_the_defaults_are_as_the_page_says() -> None:
    settings = OpenaiSettings()
    assert (settings.max_steps, settings.attempts, settings.first_byte_seconds, settings.idle_seconds,
            settings.total_seconds) == (16, 3, 120, 120, 1800)
    assert AnthropicSettings().max_tokens == 8192 and "8192" in SECTIONS["anthropic"]
    assert str(settings.url) == "https://api.openai.com/v1"
    assert str(AnthropicSettings().url) == "https://api.anthropic.com/"
    assert McpServerSettings(command="x").permission == "ask"


def test_the_old_setting_of_attempts_works_alone() -> None:
    with capture_logs() as logged:
        assert OpenaiSettings(attempts=5).patience.attempts == 5
        assert OpenaiSettings(retries=0).patience.attempts == 1
    assert [(entry["event"], entry["use"]) for entry in logged] == [("setting_deprecated", "attempts: 1")]
    with pytest.raises(ValidationError, match="remove 'retries'"):
        OpenaiSettings(retries=1, attempts=2)


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_the_settings_shown_make_an_agent(kind: str) -> None:
    [agent] = example(kind)["agents"].values()
    backend = kind_of(agent["backend"], ROOT).make(agent["settings"], BackendContext(ROOT)).backend
    await backend.close()


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_the_example_has_no_mistakes(kind: str) -> None:
    assert component_problems(load_config(ROOT / "examples" / kind / "config.yaml")) == []


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize("source", [example, shipped], ids=["page", "example"])
async def test_the_example_answers(kind: str, source: Any, tmp_path: Path) -> None:
    async with serving(ANSWERS[kind]) as server:
        agents = source(kind)["agents"]
        [(name, agent)] = agents.items()
        agent["settings"] |= {"url": server.url}
        agent["settings"].pop("mcp", None)
        async with gateway(tmp_path, agents=agents) as served:
            async with served.http.post(served.url("/aap/sessions"), json={"agent": {"name": name}}) as response:
                session = (await response.json())["sessionId"]
            async with served.http.post(served.url(f"/aap/sessions/{session}/turns"), json={
                "messages": [{"role": "user", "content": "Hello"}],
            }) as response:
                assert read(await response.json()).text == "Good day."
    assert server.asked[0].json["model"] == agent["settings"]["model"]


def test_a_missing_key_is_a_problem_with_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    [problem] = component_problems(load_config(ROOT / "examples" / "openai" / "config.yaml"))
    assert "the environment has no variable OPENAI_API_KEY" in str(problem) and "config.yaml:7" in str(problem)
