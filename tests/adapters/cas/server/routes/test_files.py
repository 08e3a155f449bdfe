"""CAS's files over real HTTP: uploaded in forms, fetched by links that hold for a while, and safe to open."""

import asyncio
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.dialects.cas.catalog_server import Catalog, catalog, form
from tests.support.gateway_server import until
from tests.support.key_stores import key_store

MEGABYTE = 1024 * 1024


@pytest.fixture
async def cas(tmp_path: Path) -> AsyncIterator[Catalog]:
    async with catalog(tmp_path) as served:
        yield served


def on_disk(folder: Path) -> list[str]:
    files = folder / "data" / "files"
    return sorted(path.name for path in files.iterdir() if path.name != ".secret") if files.exists() else []


async def fetched(cas: Catalog, url: str) -> tuple[int, bytes, Any]:
    async with cas.http.get(url) as response:
        return response.status, await response.read(), response.headers


async def test_a_file_has_a_life(cas: Catalog, tmp_path: Path) -> None:
    made = await cas.made("/files", form(b"hello", "x.txt", metadata='{"a":"b"}'))
    assert made["id"].startswith("file_")
    assert made | {"id": "", "created_at": ""} == {
        "id": "", "type": "file", "filename": "x.txt", "mime_type": "text/plain", "size_bytes": 5, "status": "ready",
        "sha256": sha256(b"hello").hexdigest(), "downloadable": True, "metadata": {"a": "b"}, "expires_at": None,
        "created_at": "",
    }
    assert (await cas.get(f"/files/{made['id']}")).body == made
    assert (await cas.get("/files")).body["data"] == [made]
    link = (await cas.get(f"/files/{made['id']}/content")).body
    assert link["expires_at"] > made["created_at"]
    assert (await fetched(cas, link["url"]))[:2] == (200, b"hello")
    assert (await cas.delete(f"/files/{made['id']}")).body == {"id": made["id"], "type": "file_deleted"}
    assert (await cas.get(f"/files/{made['id']}")).status == 404
    assert (await fetched(cas, link["url"]))[0] == 404
    assert on_disk(tmp_path) == []


async def test_a_big_file_goes_straight_to_disk(tmp_path: Path) -> None:
    async with catalog(tmp_path, limits={"body_bytes": 1024}) as cas:
        content = b"x" * (8 * MEGABYTE)
        made = await cas.made("/files", form(content, "big.bin"))
        assert made["size_bytes"] == len(content)
        link = (await cas.get(f"/files/{made['id']}/content")).body
        assert (await fetched(cas, link["url"]))[1] == content


async def test_a_file_that_is_too_large_leaves_nothing_behind(tmp_path: Path) -> None:
    async with catalog(tmp_path, uploads={"max_bytes": MEGABYTE}) as cas:
        refused = await cas.post("/files", form(b"x" * (MEGABYTE + 1)))
        assert 400 <= refused.status < 500
        assert (await cas.made("/files", form(b"x" * MEGABYTE)))["size_bytes"] == MEGABYTE
        assert len(on_disk(tmp_path)) == 1


async def test_an_upload_that_breaks_off_leaves_nothing_behind(cas: Catalog, tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65536
            begun.set()
            await asyncio.sleep(0.001)

    body = aiohttp.MultipartWriter("form-data")
    body.append(endless()).set_content_disposition("form-data", name="file", filename="x")
    upload = asyncio.create_task(cas.http.post(f"{cas.base}/files", data=body))
    await begun.wait()
    await until(lambda: on_disk(tmp_path))
    upload.cancel()
    await until(lambda: not on_disk(tmp_path))
    assert (await cas.get("/files")).body["data"] == []


@pytest.mark.parametrize("fields", [
    {"metadata": "{"}, {"metadata": "[]"}, {"metadata": '{"a":1}'}, {"name": "n" * 300}, {"name": "n" * 70_000},
])
async def test_a_form_that_is_refused_leaves_nothing_behind(cas: Catalog, tmp_path: Path, fields: Any) -> None:
    assert (await cas.post("/files", form(b"x", "x", **fields))).status in (400, 413)
    assert on_disk(tmp_path) == []


async def test_what_is_no_upload_is_refused(cas: Catalog, tmp_path: Path) -> None:
    without = aiohttp.FormData({"name": "x"})
    two = form()
    two.add_field("file", b"more", filename="y")
    for body in ({"file": "x"}, without, form(b""), two):
        assert (await cas.post("/files", body)).status == 400
    multipart = {"Content_Type": "multipart/form-data; boundary=b"}
    for raw in (b"", b"nonsense", b"--b\r\n\r\n", b"--b\r\nContent-Disposition: form-data; name=file\r\n\r\nabc"):
        assert (await cas.post("/files", raw, **multipart)).status == 400
    assert (await cas.post("/files", b"x", Content_Type="multipart/form-data")).status == 400
    assert on_disk(tmp_path) == []


@pytest.mark.parametrize(("name", "kept"), [
    ("../../etc/passwd", "passwd"), ("..\\..\\boot.ini", "boot.ini"), ("..", "file"), ("/", "file"), ("a\x00b", "a_b"),
    ("bild ü.png", "bild ü.png"), ('a"b\r\nX: y', "a_b__X_ y"), ("x" * 300 + ".txt", "x" * 251 + ".txt"),
])
async def test_a_name_is_never_a_path(cas: Catalog, tmp_path: Path, name: str, kept: str) -> None:
    sent = form(b"x", "plain", name=name) if len(name) <= 256 else form(b"x", name)
    made = await cas.made("/files", sent)
    assert made["filename"] == kept
    assert on_disk(tmp_path) == [made["id"]]
    link = (await cas.get(f"/files/{made['id']}/content")).body
    status, _, headers = await fetched(cas, link["url"])
    assert (status, headers["Content-Disposition"].startswith("attachment; ")) == (200, True)


@pytest.mark.parametrize(("media_type", "served"), [
    ("text/html", "application/octet-stream"), ("image/svg+xml", "application/octet-stream"),
    ("application/xhtml+xml", "application/octet-stream"), ("text/javascript", "application/octet-stream"),
    ("text/plain", "text/plain"), ("image/png", "image/png"),
])
async def test_no_browser_runs_what_is_served(cas: Catalog, media_type: str, served: str) -> None:
    made = await cas.made("/files", form(b"<script>", "x", media_type))
    assert made["mime_type"] == media_type
    link = (await cas.get(f"/files/{made['id']}/content")).body
    _, _, headers = await fetched(cas, link["url"])
    assert headers["Content-Type"] == served
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"].startswith("sandbox")
    assert headers["Content-Disposition"].startswith("attachment")


async def test_a_client_that_wants_bytes_gets_bytes(cas: Catalog) -> None:
    made = await cas.made("/files", form(b"hello"))
    answer = await cas.get(f"/v1/files/{made['id']}/content", Accept="application/binary")
    assert (answer.status, answer.body) == (200, b"hello")


async def test_types_are_limited_by_a_setting(tmp_path: Path) -> None:
    async with catalog(tmp_path, uploads={"types": ["image/*", "text/plain"]}) as cas:
        assert (await cas.post("/files", form(b"x", "x.png", "image/png"))).status == 201
        assert (await cas.post("/files", form(b"x", "x.txt"))).status == 201
        refused = await cas.post("/files", form(b"x", "x.exe", "application/x-msdownload"))
        assert refused.status == 400
        assert "application/x-msdownload" in refused.body["error"]["message"]


async def test_a_link_needs_no_key_and_a_list_does(tmp_path: Path) -> None:
    keys = key_store(tmp_path / "data")
    ada, bob = keys.add("ada"), keys.add("bob")
    async with catalog(tmp_path, auth="keys") as cas:
        made = await cas.known_as(ada).made("/files", form())
        link = (await cas.known_as(ada).get(f"/files/{made['id']}/content")).body
        assert (await fetched(cas, link["url"]))[1] == b"hello"
        for path in (f"/files/{made['id']}", f"/files/{made['id']}/content"):
            assert (await cas.known_as(bob).get(path)).status == 404
            assert (await cas.get(path)).status == 401
        assert (await cas.known_as(bob).delete(f"/files/{made['id']}")).status == 404
        assert (await cas.known_as(bob).get("/files")).body["data"] == []
        assert (await fetched(cas, link["url"]))[0] == 200


async def test_a_link_that_was_touched_leads_nowhere(cas: Catalog) -> None:
    made = await cas.made("/files", form())
    url: str = (await cas.get(f"/files/{made['id']}/content")).body["url"]
    for broken in (f"{url}x", url[:-2], url.rsplit(".", 1)[0], url.replace("file-links/", "file-links/x")):
        assert (await fetched(cas, broken))[0] == 404
    assert (await cas.get("/file-links/..%2f..%2fsecret.x")).status == 404


async def test_a_list_of_files_is_narrowed(cas: Catalog) -> None:
    made = [await cas.made("/files", form(b"x", f"{number}.txt")) for number in range(3)]
    assert (await cas.get("/files?name=1.txt")).body["data"] == [made[1]]
    assert (await cas.get(f"/files?ids[]={made[0]['id']}&ids[]={made[2]['id']}")).body["data"] == [made[2], made[0]]
