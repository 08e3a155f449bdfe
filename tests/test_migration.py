"""The page on moving clients is walked, from an old server with old clients to a new agent with new ones."""

import asyncio
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import orjson
import yaml

from tests.support.dialect_tables import DIALECTS
from tests.support.gateway_server import reachable_from_outside, serving, until

PAGE = (Path(__file__).parents[1] / "docs" / "migration.md").read_text()
AGENT = '''
async def reply(text):
    yield "Quite another thing."
'''


def block(language: str, beginning: str) -> str:
    found = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return next(one for one in found if one.startswith(beginning))  # type: ignore[no-any-return]


def run(script: str, **words: str) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], env={**os.environ, **words}, capture_output=True, text=True,
        timeout=300, check=True,
    )
    return done.stdout


async def test_the_walk(tmp_path: Path) -> None:
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
    (tmp_path / "new" / "new_agent.py").write_text(AGENT)
    settings: dict[str, Any] = yaml.safe_load(block("yaml", "port:")) | yaml.safe_load(block("yaml", "shadow:"))
    async with serving(tmp_path / "old", log="sqlite", dialects={name: {} for name in DIALECTS}) as old:
        settings["agents"]["old"]["settings"]["url"] = old.url("/api")
        settings["dialects"] = {name: {} for name in settings["dialects"]}
        del settings["port"]
        async with serving(tmp_path / "new", log="sqlite", **settings) as new, reachable_from_outside(new) as address:
            script = block("sh", "GATEWAY=").replace("GATEWAY=http://127.0.0.1:18901", f"GATEWAY={address}")
            told = await asyncio.to_thread(run, script)
            report = tmp_path / "new" / "data" / "shadow.jsonl"
            await until(lambda: report.exists() and report.read_bytes().count(b"\n") == 2)
            lines = [orjson.loads(line) for line in report.read_bytes().splitlines()]
    assert "You said: said in Blade" in told and 'data: {"text":"You said: said in AAP"}' in told
    history = orjson.loads(told.splitlines()[-1])["history"]["full"]
    assert [message["content"] for message in history if message["role"] == "user"] == ["said in Blade", "said in AAP"]
    shown = orjson.loads(block("json", "{"))
    assert [line.keys() - {"differences"} for line in lines] == [shown.keys() - {"differences"}] * 2
    assert {line["verdict"] for line in lines} == {"same"}, "both only talk"
