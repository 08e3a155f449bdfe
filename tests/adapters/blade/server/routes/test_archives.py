"""A session is exported, and imported as somebody's own."""

import zipfile
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

import gateway.model as m
from tests.support.dialects.blade.rest_server import Client, blade, say
from tests.support.key_stores import key_store


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with blade(tmp_path) as client:
        yield client


def form(content: bytes, **fields: str) -> aiohttp.FormData:
    made = aiohttp.FormData()
    for name, text in fields.items():
        made.add_field(name, text)
    made.add_field("file", BytesIO(content), filename="session.zip", content_type="application/zip")
    return made


async def exported(client: Client, owner: str = "") -> tuple[str, bytes]:
    session = await client.session(owner, "my talk")
    for text in ("one", "/think /tool clock two"):
        await say(client, session, text, owner=owner)
    await client.put(f"/sessions/{session}/files/a/b.txt", {"content": "hello"})
    answer = await client.get(f"/sessions/{session}/export")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/zip")
    return session, answer.body


async def test_a_session_comes_back_whole(client: Client) -> None:
    session, content = await exported(client)
    answer = await client.post("/sessions/import", form(content, name="again"))
    again = answer.body["session_id"]
    assert again != session
    sessions = client.gateway.sessions
    old, new = await sessions.records("", session), await sessions.records("", again)
    assert [m.encode_record(one.event) for one in old] == [m.encode_record(one.event) for one in new[:-1]]
    assert [one.at for one in old] == [one.at for one in new[:-1]]
    assert (await sessions.get("", again)).title == "again"
    assert (await client.get(f"/sessions/{again}/files/a/b.txt")).body == b"hello"
    await say(client, again, "go on")
    assert len((await sessions.get("", again)).entries) == len((await sessions.get("", session)).entries) + 2


async def test_a_preview_tells_what_is_in_it_and_imports_nothing(client: Client) -> None:
    session, content = await exported(client)
    preview = (await client.post("/sessions/preview-import", form(content))).body
    assert (preview["session_id"], preview["intent"], preview["files"]) == (session, "my talk", ["a/b.txt"])
    assert preview["message_count"] == len((await client.get(f"/sessions/{session}/messages")).body)
    assert client.gateway.runtime.log.session_count == 1


async def test_an_imported_session_is_the_importers(tmp_path: Path) -> None:
    async with blade(tmp_path, auth="keys") as nobody:
        keys = key_store(tmp_path / "data")
        ada, bob = nobody.known_as(keys.add("ada")), nobody.known_as(keys.add("bob"))
        session, content = await exported(ada, "ada")
        assert (await bob.get(f"/sessions/{session}/export")).status == 404
        again = (await bob.post("/sessions/import", form(content))).body["session_id"]
        assert (await ada.get(f"/sessions/{again}/checkpoints")).status == 404
        assert len((await bob.get(f"/sessions/{again}/checkpoints")).body) == 3
        assert (await nobody.post("/sessions/import", form(content))).status == 401


def altered(content: bytes, **changes: Any) -> bytes:
    """The same ZIP, with some entries changed, added or left out."""
    made = BytesIO()
    with zipfile.ZipFile(BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        entries = {name: old.read(name) for name in old.namelist()} | changes
        for name, text in entries.items():
            if text is not None:
                new.writestr(name, text)
    return made.getvalue()


async def test_what_somebody_made_up_is_refused_and_leaves_nothing(client: Client) -> None:
    session, content = await exported(client)
    records = zipfile.ZipFile(BytesIO(content)).read("records.jsonl")
    manifest = msgspec.json.decode(zipfile.ZipFile(BytesIO(content)).read("manifest.json"))
    fewer = msgspec.json.encode({**manifest, "records": manifest["records"] - 1})
    for hostile in (
        b"nonsense", altered(content, **{"manifest.json": None}), altered(content, **{"evil.sh": b"x"}),
        altered(content, **{"workspace/../../evil": b"x"}), altered(content, **{"workspace/a/b.txt/c": b"x"}),
        altered(content, **{"records.jsonl": records.replace(session.encode(), b"sess_other", 1)}),
        altered(content, **{"records.jsonl": records.split(b"\n", 1)[1], "manifest.json": fewer}),
        altered(content, **{"records.jsonl": records.replace(b'"agent":"demo"', b'"agent":"root"', 1)}),
    ):
        answer = await client.post("/sessions/import", form(hostile))
        assert answer.status in (400, 409), answer
        assert list(answer.body) == ["detail"]
    assert client.gateway.runtime.log.session_count == 1
    data = client.gateway.components.config.data
    assert sorted(path.name for path in (data / "workspaces").iterdir()) == [".drafts", session]
    assert [path for path in (data / "files").iterdir() if path.name.startswith("file_")] == []


async def test_a_form_without_a_file_is_refused(client: Client) -> None:
    assert (await client.post("/sessions/import", {"file": "x"})).status == 400
