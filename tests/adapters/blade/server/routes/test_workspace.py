"""A session's files over HTTP."""

import zipfile
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import aiohttp
import orjson
import pytest

import gateway.model as m
from tests.support.dialects.blade.rest_server import Client, blade
from tests.support.gateway_server import until
from tests.support.key_stores import key_store


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with blade(tmp_path) as client:
        yield client


@pytest.fixture
async def at(client: Client) -> str:
    return f"/sessions/{await client.session()}"


def form(*files: tuple[str, bytes], paths: object = None) -> aiohttp.FormData:
    made = aiohttp.FormData()
    for name, content in files:
        made.add_field("files", BytesIO(content), filename=name)
    if paths is not None:
        made.add_field("paths", orjson.dumps(paths).decode() if not isinstance(paths, str) else paths)
    return made


async def changes(client: Client, at: str) -> list[object]:
    records = await client.gateway.sessions.records("", at.rpartition("/")[2])
    return [record.event.payload["file_path"] for record in records if isinstance(record.event, m.CustomEvent)
            and record.event.topic == "workspace.files_changed"]


async def test_a_file_is_written_listed_read_and_deleted(client: Client, at: str) -> None:
    answer = await client.put(f"{at}/files/src/main.py", {"content": "print('嗨')"})
    assert (answer.status, answer.body["success"]) == (200, True)
    for root in ("/ls/%2E", "/ls/", "/ls", "/ls/."):
        [folder] = (await client.get(f"{at}{root}")).body
        assert folder.pop("created_at") > 0
        assert folder == {"name": "src", "type": "directory", "is_dir": True, "path": "src", "tags": []}
    [file] = (await client.get(f"{at}/ls/src")).body
    assert file.pop("created_at") > 0
    assert file == {"name": "main.py", "type": "file", "size": 12, "is_dir": False, "path": "src/main.py", "tags": []}
    assert (await client.get(f"{at}/files/src/main.py")).body == "print('嗨')".encode()
    assert (await client.delete(f"{at}/files/src%2Fmain.py")).body == {"deleted": True}
    assert (await client.get(f"{at}/files/src/main.py")).status == 404
    assert await changes(client, at) == ["src/main.py", "src/main.py"]


async def test_a_download_is_saved_and_never_run(client: Client, at: str) -> None:
    await client.put(f"{at}/files/page.html", {"content": "<script>alert(1)</script>"})
    headers = (await client.get(f"{at}/files/page.html")).headers
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Disposition"].startswith('attachment; filename="page.html"')


@pytest.mark.parametrize("path", [
    "%2E%2E%2F%2E%2E%2Fkeys.json", "a%2F..%2F..%2Fx", "%2Fetc%2Fpasswd", "%2e%2e/x", "a%00b", "..%5Cx", "a%0Ab",
])
async def test_no_path_leads_out(client: Client, at: str, path: str) -> None:
    for answer in (
        await client.get(f"{at}/files/{path}"), await client.put(f"{at}/files/{path}", {"content": "x"}),
        await client.delete(f"{at}/files/{path}"), await client.get(f"{at}/ls/{path}"),
        await client.get(f"{at}/download-dir/{path}"), await client.post(f"{at}/copy/{path}"),
        await client.post(f"{at}/rename/{path}", {"new_name": "x"}),
    ):
        assert answer.status in (400, 404), answer
    assert await changes(client, at) == []


async def test_many_files_are_uploaded_and_each_is_told_of(client: Client, at: str) -> None:
    sent = form(("a.txt", b"A"), ("b.txt", b"B"), ("c", b"C"), paths=["x/a.txt", "../b.txt", "/etc/c"])
    answer = await client.post(f"{at}/upload/docs", sent)
    assert answer.status == 200
    assert answer.body["uploaded"] == ["docs/x/a.txt"]
    assert [failed["path"] for failed in answer.body["failed"]] == ["../b.txt", "/etc/c"]
    assert (await client.get(f"{at}/files/docs/x/a.txt")).body == b"A"
    assert await changes(client, at) == ["docs/x/a.txt"]


async def test_without_paths_files_go_by_their_names(client: Client, at: str) -> None:
    answer = await client.post(f"{at}/upload/%2E", form(("a.txt", b"A"), ("b.txt", b"B")))
    assert answer.body == {"uploaded": ["a.txt", "b.txt"], "failed": []}


@pytest.mark.parametrize("paths", [["one"], "{", "5", [1, 2], ["a", ""]])
async def test_paths_that_do_not_fit_are_refused(client: Client, at: str, paths: object) -> None:
    assert (await client.post(f"{at}/upload/", form(("a", b""), ("b", b""), paths=paths))).status == 400
    assert (await client.get(f"{at}/ls/")).body == []
    assert (await client.post(f"{at}/upload/", {"files": []})).status == 400


async def test_an_upload_that_breaks_off_leaves_nothing(client: Client, at: str) -> None:
    broken = aiohttp.FormData()
    broken.add_field("files", BytesIO(b"A"), filename="a")
    broken.add_field("paths", BytesIO(b"\xff"), filename="paths")
    assert (await client.post(f"{at}/upload/", broken)).status == 400
    drafts = client.gateway.components.config.data / "workspaces" / ".drafts"
    assert list(drafts.iterdir()) == []


async def test_files_are_renamed_copied_and_packed(client: Client, at: str) -> None:
    await client.put(f"{at}/files/a.txt", {"content": "A"})
    assert (await client.post(f"{at}/rename/a.txt", {"new_name": "b.txt"})).body == {"path": "b.txt"}
    assert (await client.post(f"{at}/copy/b.txt")).body == {"path": "b copy.txt"}
    assert (await client.post(f"{at}/copy/b.txt", {"destination": "c/d.txt"})).body == {"path": "c/d.txt"}
    assert (await client.post(f"{at}/copy/b.txt", {"destination": "c/d.txt"})).status == 409
    answer = await client.get(f"{at}/download-dir/%2E")
    assert answer.headers["Content-Type"] == "application/zip"
    with zipfile.ZipFile(BytesIO(answer.body)) as archive:
        assert sorted(archive.namelist()) == ["b copy.txt", "b.txt", "c/d.txt"]
    drafts = client.gateway.components.config.data / "workspaces" / ".drafts"
    await until(lambda: not list(drafts.iterdir()))


async def test_a_closed_session_keeps_its_files_as_they_are(client: Client, at: str) -> None:
    await client.put(f"{at}/files/a.txt", {"content": "A"})
    await client.gateway.sessions.close("", at.rpartition("/")[2], m.CloseReason.ARCHIVED)
    assert (await client.put(f"{at}/files/a.txt", {"content": "B"})).status == 409
    assert (await client.get(f"{at}/files/a.txt")).body == b"A"


async def test_files_go_with_their_session(client: Client, at: str) -> None:
    await client.put(f"{at}/files/a.txt", {"content": "A"})
    await client.delete(at)
    assert list((client.gateway.components.config.data / "workspaces").glob("sess_*")) == []


async def test_other_peoples_files_are_not_found(tmp_path: Path) -> None:
    async with blade(tmp_path, auth="keys") as nobody:
        keys = key_store(tmp_path / "data")
        ada, bob = nobody.known_as(keys.add("ada")), nobody.known_as(keys.add("bob"))
        at = f"/sessions/{await ada.session('ada')}"
        await ada.put(f"{at}/files/a.txt", {"content": "A"})
        for answer in (
            await bob.get(f"{at}/files/a.txt"), await bob.get(f"{at}/ls/"), await bob.delete(f"{at}/files/a.txt"),
            await bob.post(f"{at}/upload/", form(("a", b""))), await bob.get("/sessions/sess_none/ls/"),
        ):
            assert answer.status == 404
