"""The Python sessions of docs/cas.md and docs/recipes.md are run as they stand there."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.gateway_server import reachable_from_outside, serving

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("page", ["cas.md", "recipes.md"])
async def test_the_session_with_a_published_client_works(
    page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    [code] = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    session: dict[str, Any] = {"__name__": "docs"}
    exec(compile(code, page, "exec"), session)
    async with serving(tmp_path) as served, reachable_from_outside(served) as address, asyncio.timeout(60):
        await asyncio.to_thread(session["main"], address)
    assert "You said: hello" in capsys.readouterr().out
