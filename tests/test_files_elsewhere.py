"""A gateway whose files are in a bucket: every way in and out, what is deleted with a session, and a bad store."""

import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.dialect_tables import DIALECTS
from tests.support.gateway_server import Served, serving, until
from tests.support.s3.server import S3Server, s3_server

CLOUD, STUDIO, DESK = "/api/v1/cloud", "/api", "/api/v1"


@asynccontextmanager
async def served_from(
    folder: Path, server: S3Server, patch: pytest.MonkeyPatch, options: str = "",
) -> AsyncIterator[Served]:
    for name, value in server.environ.items():
        patch.setenv(name, value)
    patch.setenv("HOME", str(folder))
    dialects, files = {name: {} for name in DIALECTS}, f"s3://agents/site{options}"
    async with serving(folder, dialects=dialects, files=files, secrets_key="k" * 32) as served:
        yield served
    left = [str(one.relative_to(folder / "data")) for one in (folder / "data").rglob("*")]
    assert set(left) <= {"audit.jsonl", "dragoman.db", "dragoman.db-wal", "dragoman.db-shm"}, "no file is on the disk"


def form(name: str, content: bytes, field: str = "file") -> aiohttp.FormData:
    made = aiohttp.FormData()
    made.add_field(field, content, filename=name, content_type="text/plain")
    return made


async def answer(served: Served, method: str, path: str, status: int = 200, **given: Any) -> Any:
    async with served.http.request(method, served.url(path), **given) as response:
        body = await response.read()
        assert response.status == status, body
        return await response.json() if response.content_type == "application/json" else body


async def upload(served: Served, content: bytes) -> str:
    made = await answer(served, "POST", f"{CLOUD}/files", 201, data=form("n.txt", content))
    return str(made["id"])


async def test_an_upload_is_read_by_id_by_link_and_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_server() as server:
        async with served_from(tmp_path, server, monkeypatch) as served:
            content = bytes(range(256)) * 4096
            file_id = await upload(served, content)
            assert server.objects() == {f"site/files/{file_id}": content}
            raw = {"Accept": "application/octet-stream"}
            at = f"{CLOUD}/files/{file_id}/content"
            assert await answer(served, "GET", at, headers=raw) == content
            assert await answer(served, "GET", at, 206, headers={**raw, "Range": "bytes=5-9"}) == content[5:10]
            assert await answer(served, "GET", at, 206, headers={**raw, "Range": "bytes=-3"}) == content[-3:]
            assert await answer(served, "GET", at, 416, headers={**raw, "Range": f"bytes={len(content)}-"}) == b""
            async with served.http.get((await answer(served, "GET", at))["url"]) as linked:
                assert await linked.read() == content
                assert linked.headers["Content-Disposition"].startswith("attachment")
                assert linked.headers["X-Content-Type-Options"] == "nosniff"
            await answer(served, "DELETE", f"{CLOUD}/files/{file_id}")
            assert server.objects() == {}


async def test_what_belongs_to_a_session_is_in_the_bucket_and_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    with s3_server() as server:
        async with served_from(tmp_path, server, monkeypatch) as served:
            session = (await answer(served, "POST", f"{STUDIO}/sessions", json={}))["session_id"]
            at = f"{STUDIO}/sessions/{session}"
            await answer(served, "PUT", f"{at}/files/src/a.txt", json={"content": "hello"})
            await answer(served, "POST", f"{at}/upload/src", data=form("b.txt", b"there", "files"))
            assert [one["name"] for one in await answer(served, "GET", f"{at}/ls/src")] == ["a.txt", "b.txt"]
            assert await answer(served, "GET", f"{at}/files/src/a.txt") == b"hello"
            assert sorted(server.objects()) == [f"site/workspaces/{session}/src/{name}.txt" for name in "ab"]
            packed = await answer(served, "GET", f"{at}/download-dir/src")
            assert zipfile.ZipFile(BytesIO(packed)).namelist() == ["a.txt", "b.txt"]
            await until(lambda: len(server.objects()) == 2)  # what was packed goes when it was read
            exported = await answer(served, "GET", f"{at}/export")
            other = (await answer(served, "POST", f"{STUDIO}/sessions/import", data=form("s.zip", exported)))
            again = f"{STUDIO}/sessions/{other['session_id']}"
            assert await answer(served, "GET", f"{again}/files/src/b.txt") == b"there"
            await answer(served, "DELETE", at)
            assert sorted(server.objects()) == [
                f"site/workspaces/{other['session_id']}/src/{name}.txt" for name in "ab"]


async def test_a_store_that_refuses_is_a_clear_error_in_the_shape_of_each_dialect_and_nothing_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    with s3_server() as server:
        async with served_from(tmp_path, server, monkeypatch) as served:
            file_id = await upload(served, b"kept")
            session = (await answer(served, "POST", f"{STUDIO}/sessions", json={}))["session_id"]
            server.refuse = lambda method, path: "403 AccessDenied"
            said = "files cannot be stored or removed just now: the file store refuses or cannot be reached"
            refused = await answer(served, "POST", f"{CLOUD}/files", 503, data=form("n.txt", b"x"))
            assert refused["error"]["message"] == said
            assert said in str(await answer(served, "POST", f"{DESK}/files/upload", 503, data=form("n.txt", b"x")))
            at = f"{STUDIO}/sessions/{session}/files/a.txt"
            assert said in str(await answer(served, "PUT", at, 503, json={"content": "x"}))
            raw = {"Accept": "application/octet-stream"}
            read = await answer(served, "GET", f"{CLOUD}/files/{file_id}/content", 503, headers=raw)
            assert "cannot be read just now" in read["error"]["message"]
            server.refuse = lambda method, path: None
            assert await answer(served, "GET", f"{CLOUD}/files/{file_id}/content", headers=raw) == b"kept"
            listed = await answer(served, "GET", f"{CLOUD}/files")
            assert [one["id"] for one in listed["data"]] == [file_id]
            assert list(server.objects()) == [f"site/files/{file_id}"]
            assert await answer(served, "GET", f"{STUDIO}/sessions/{session}/ls") == []


async def test_a_link_leads_to_the_store_where_the_setting_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    with s3_server() as server:
        async with served_from(tmp_path, server, monkeypatch, "?links=direct") as served:
            file_id = await upload(served, b"<b>hello</b>")
            made = await answer(served, "GET", f"{CLOUD}/files/{file_id}/content")
            assert made["url"].startswith(f"{server.url}/agents/site/files/{file_id}?")
            async with served.http.get(made["url"]) as linked:
                assert await linked.read() == b"<b>hello</b>"
                assert linked.headers["Content-Disposition"].startswith("attachment")
