"""The sessions that docs/blade.md shows are sessions that can be had."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters.blade.wire import BladeSettings
from tests.support.dialects.blade.client import blade

PAGE = (Path(__file__).parents[3] / "docs/blade.md").read_text()
OURS = "http://127.0.0.1:18900"


def block(language: str) -> str:
    [found] = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


async def test_the_session_in_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with blade(tmp_path) as served:
        shown = block("python").replace(OURS, served.address)
        begun = "asyncio.run(main())"
        assert begun in shown
        session: dict[str, Any] = {"__name__": "docs"}
        exec(compile(shown.replace(begun, ""), "docs/blade.md", "exec"), session)
        await session["main"]()
    assert capsys.readouterr().out == block("text")


def test_the_settings_shown_are_the_defaults() -> None:
    shown = yaml.safe_load(block("yaml"))["dialects"]["blade"]
    assert {**shown, "agent": None} == {"mount": "/api", **BladeSettings().model_dump()}
