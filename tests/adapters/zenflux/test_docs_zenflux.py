"""What docs/zenflux.md shows is what happens: the Python program is run, the calls are there."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.dialects.zenflux.client import talking
from tests.test_docs import ROOT, blocks

PAGE = ROOT / "docs/zenflux.md"


async def test_the_program_talks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [code] = blocks(PAGE, "python")
    program: dict[str, Any] = {"__name__": "shown"}
    exec(code, program)
    async with talking(tmp_path) as client:
        await program["main"](client.served.address)
    told = [line for line in capsys.readouterr().out.splitlines() if "[info" not in line]
    assert told[0].startswith("conversation sess_")
    assert told[-2:] == ["You said: hello", "completed"]


async def test_every_call_is_there(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        served = {route.resource.canonical for route in client.served.gateway.web.router.routes() if route.resource}
    for call in re.findall(r"`(?:[A-Z`, ]+ )?(/[a-z][\w/{}-]*)", PAGE.read_text()):
        assert call in served or f"/api/v1{call}" in served or call == "/api/v1", call
