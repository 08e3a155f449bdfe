"""What the page and the example say of remote agents works as it is written."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import gateway.model as m
from tests.support.dialect_tables import DIALECTS
from tests.support.gateway_server import serving, until

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "backends.md").read_text()


def on_the_page() -> dict[str, Any]:
    section = PAGE.split("\n## `remote`\n")[1].split("\n## ")[0]
    return yaml.safe_load(re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)[0])  # type: ignore[no-any-return]


def in_the_example() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "examples" / "remote" / "config.yaml").read_text())  # type: ignore[no-any-return]


@pytest.mark.parametrize("written", [on_the_page, in_the_example], ids=lambda written: written.__name__)
async def test_it_answers(written: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLD_KEY", "nobody asks for it")
    for folder in ("far", "near"):
        (tmp_path / folder).mkdir()
    async with serving(tmp_path / "far", dialects={name: {} for name in DIALECTS}) as far:
        agents = written()["agents"]
        settings = agents["old"]["settings"]
        assert settings["url"].startswith("http://127.0.0.1:18900/"), "where `make run` serves"
        settings["url"] = settings["url"].replace("http://127.0.0.1:18900", far.address)
        async with serving(tmp_path / "near", agents=agents) as near:
            view = await near.gateway.sessions.create("ann", "old")
            await near.gateway.sessions.submit("ann", view.session_id, [m.SendMessage(content="hello")])
            await until(lambda: view.status is m.SessionStatus.IDLE)
            assert m.text_of(view.entries[-1].content) == "You said: hello"
