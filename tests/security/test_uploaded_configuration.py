"""A file that a client uploads does not become the configuration of an agent."""

from io import BytesIO
from pathlib import Path

import aiohttp
import orjson
import pytest

import gateway.model as m
from tests.support.backends.acp_turns import backend, played
from tests.support.dialects.blade.rest_server import blade


def form(name: str, content: bytes = b"x") -> aiohttp.FormData:
    made = aiohttp.FormData()
    made.add_field("files", BytesIO(content), filename="f", content_type="text/plain")
    made.add_field("paths", orjson.dumps([name]).decode())
    return made


async def test_no_way_into_a_workspace_makes_configuration(tmp_path: Path) -> None:
    async with blade(tmp_path) as client:
        session = await client.session()
        at = f"/sessions/{session}"
        for name in ("CLAUDE.md", ".mcp.json", ".claude/settings.json", ".git/hooks/pre-commit"):
            answer = await client.put(f"{at}/files/{name}", {"content": "x"})
            assert answer.status == 403, name
            assert "workspace: {trust: true}" in str(answer.body)
            uploaded = (await client.post(f"{at}/upload", form(name))).body
            assert (uploaded["uploaded"], len(uploaded["failed"])) == ([], 1)
        assert (await client.put(f"{at}/files/plain/settings.json", {"content": "x"})).status == 200
        assert (await client.post(f"{at}/rename/plain", {"new_name": ".claude"})).status == 403
        assert (await client.post(f"{at}/copy/plain", {"destination": ".claude"})).status == 403
        assert (await client.post(f"{at}/rename/plain/settings.json", {"new_name": "CLAUDE.md"})).status == 403
        assert [item["name"] for item in (await client.get(f"{at}/ls")).body] == ["plain"]


async def test_a_zip_brings_no_configuration(tmp_path: Path) -> None:
    async with blade(tmp_path, workspace={"trust": True}) as client:
        session = await client.session()
        assert (await client.put(f"/sessions/{session}/files/.mcp.json", {"content": "{}"})).status == 200
        content = (await client.get(f"/sessions/{session}/export")).body
    made = aiohttp.FormData()
    made.add_field("file", BytesIO(content), filename="s.zip", content_type="application/zip")
    (tmp_path / "other").mkdir()
    async with blade(tmp_path / "other") as client:
        answer = await client.post("/sessions/import", made)
        assert (answer.status, ".mcp.json" in str(answer.body)) == (403, True)
        assert (await client.gateway.sessions.list("", limit=10))[0] == []
        assert not list((tmp_path / "other" / "data" / "workspaces").rglob(".mcp.json"))


@pytest.mark.parametrize("trust", [False, True])
async def test_a_file_of_a_message_lands_beside_the_configuration_of_an_agent(tmp_path: Path, trust: bool) -> None:
    names = [".mcp.json", "CLAUDE.md", "x/AGENTS.md", "note.txt"]
    async with backend(tmp_path, trust_uploads=trust) as made:
        await played(made, m.SendMessage(content=tuple(m.FilePart(name=name, url="data:,x") for name in names)))
    stored = sorted(path.name for path in (tmp_path / "work" / "sess_1").iterdir())
    assert stored == sorted([".mcp.json", "CLAUDE.md", "AGENTS.md", "note.txt"] if trust else [
        "uploaded-mcp.json", "uploaded-CLAUDE.md", "uploaded-AGENTS.md", "note.txt"])
