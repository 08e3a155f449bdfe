"""Whatever is sent, the answer is a refusal that says what is wrong: a 500 is a mistake of the server."""

import asyncio
import errno
import gzip
import io
import os
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import WSMsgType
from structlog.testing import capture_logs

from gateway.resources import WorkspaceFolder, workspaces
from gateway.storage.resources import key_tables
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.gateway_server import Served, serving

BODIES = ("POST", "PUT", "PATCH")
IN_ONE_LOOP = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path, log="sqlite", dialects=ALL_DIALECTS) as served:
        yield served


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """One server for all tests that do not mind what others leave on it."""
    async with serving(tmp_path_factory.mktemp("shared"), log="sqlite", dialects=ALL_DIALECTS) as served:
        yield served


async def session(served: Served) -> str:
    async with served.http.post(served.url("/aap/sessions"), json={"agent": {"name": "demo"}}) as response:
        return str((await response.json())["sessionId"])


def full(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


class FullFile(io.BytesIO):
    write = full


open_file = Path.open


def open_on_full_disk(path: Path, mode: str = "r", *more: Any, **named: Any) -> Any:
    return FullFile() if "w" in mode else open_file(path, mode, *more, **named)


def full_database(*_: Any) -> Any:
    raise sqlite3.OperationalError("database or disk is full")


# -- bodies that are not what they say --------------------------------------------------------------------------------

async def test_a_body_that_is_not_gzip_is_refused_at_every_route(served: Served) -> None:
    routes = {(route.method, route.resource.canonical) for route in served.gateway.web.router.routes()
              if route.resource is not None and route.method in BODIES}
    assert len(routes) > 100
    for method, path in sorted(routes):
        for said, body in (("gzip", b'{"a":1}'), ("deflate", b"{}"), ("br", b"x"), ("gzip", gzip.compress(b"{}")[:-9])):
            headers = {"Content-Encoding": said, "Content-Type": "application/json"}
            at = served.url(path.replace("{", "").replace("}", ""))
            async with served.http.request(method, at, data=body, headers=headers) as response:
                assert response.status != 500, (method, path, said)


@IN_ONE_LOOP
async def test_what_a_content_encoding_should_have_been_is_said(shared: Served) -> None:
    at = shared.url("/aap/sessions")
    async with shared.http.post(at, data=b"{}", headers={"Content-Encoding": "gzip"}) as response:
        assert response.status == 400
        assert "the body is not gzip, as its Content-Encoding says" in await response.text()
    async with shared.http.post(at, data=b"{}", headers={"Content-Encoding": "br"}) as response:
        assert response.status == 415
        assert "'br' is not supported; gzip and deflate is" in await response.text()


@pytest.mark.parametrize("body", [b"zz\r\n", b"5\r\nab\r\n0\r\n\r\n", b"-1\r\n\r\n"])
@IN_ONE_LOOP
async def test_chunks_that_are_none_are_refused(shared: Served, body: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", shared.port)
    head = f"POST /aap/sessions HTTP/1.1\r\nHost: 127.0.0.1:{shared.port}\r\nTransfer-Encoding: chunked\r\n\r\n"
    with capture_logs() as journal:
        writer.write(head.encode() + body)
        assert (await reader.read())[9:12] == b"400"
    writer.close()
    assert not any("exc_info" in entry for entry in journal)


# -- numbers and times ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("path", [
    "/api/sessions?offset=", "/api/sessions?limit=", "/api/memories?offset=", "/api/v1/conversations?offset=",
    "/api/v1/cloud/sessions?limit=", "/api/v1/cloud/agents/demo?version=", "/api/v1/cloud/sessions?page=",
    "/aap/sessions?after=", "/api/memories/",
])
@IN_ONE_LOOP
async def test_a_number_of_five_thousand_digits_is_refused(shared: Served, path: str) -> None:
    async with shared.http.get(shared.url(path + "9" * 5000)) as response:
        assert response.status in (200, 400, 404), await response.text()


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/New_York"])
@pytest.mark.parametrize("moment", [
    "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59",
])
@IN_ONE_LOOP
async def test_a_calendar_ends_where_time_does(shared: Served, zone: str, moment: str) -> None:
    task = {"title": "t", "prompt": "p", "cron": "0 9 * * *", "timezone": zone, "expires_at": None}
    async with shared.http.post(shared.url("/api/scheduled-tasks"), json=task) as response:
        assert response.status == 201, await response.text()
    async with shared.http.get(shared.url(f"/api/scheduled-tasks/calendar?from={quote(moment)}")) as response:
        assert response.status in (200, 400), await response.text()
    async with shared.http.post(
        shared.url("/api/scheduled-tasks"), json={**task, "enabled": False, "expires_at": moment},
    ) as response:
        assert response.status in (201, 400), await response.text()


@IN_ONE_LOOP
async def test_a_task_is_changed_by_a_client_that_says_it_is_not_anonymous(shared: Served) -> None:
    at, task = shared.url("/api/scheduled-tasks"), {"title": "t", "prompt": "p", "cron": "0 9 * * *"}
    async with shared.http.post(at, json=task) as response:
        made = await response.json()
    async with shared.http.patch(f"{at}/{made['id']}", json={"title": "u", "anonymous": False}) as response:
        assert (response.status, (await response.json())["title"]) == (200, "u")


@IN_ONE_LOOP
async def test_the_owner_that_a_memory_tells_of_can_be_changed(shared: Served) -> None:
    at = shared.url("/api/memories")
    async with shared.http.post(at, json={"content": "c"}) as response:
        made = await response.json()
    async with shared.http.put(f"{at}/{made['id']}", json={"owner": "somebody"}) as response:
        assert (response.status, (await response.json())["owner"]) == (200, "somebody")


# -- sockets ----------------------------------------------------------------------------------------------------------

async def polling(served: Served) -> str:
    at = served.url("/socket.io/?EIO=4&transport=polling")
    async with served.http.get(at) as response:
        sid = (await response.text()).partition('"sid":"')[2].partition('"')[0]
    async with served.http.post(f"{at}&sid={sid}", data="40") as response:
        assert response.status == 200
    return f"{at}&sid={sid}"


@pytest.mark.parametrize("body", [
    b"\x1e", b"4", b"4\x1e", b"d=", b"x", b"7", b"9", b"\xff", b"6", b"2probe", b"\x1e".join([b"4"] * 40), b"b!!", b"0",
])
@IN_ONE_LOOP
async def test_nonsense_of_a_client_that_polls_is_refused_without_a_traceback(shared: Served, body: bytes) -> None:
    with capture_logs() as journal:
        async with shared.http.post(await polling(shared), data=body) as response:
            assert response.status in (200, 400)
    assert not [entry for entry in journal if entry["log_level"] == "error" or "exc_info" in entry]


@pytest.mark.parametrize("packet", [
    "", "4", "7", "9", "6", "b!!", '42["connect"]', '42["connect",{},{"token":"x"}]', '42["disconnect"]', '42["*",1]',
    '42[{}]', '42[[]]', "42[null]", '42{"0":1}', '451-["a",{"_placeholder":true,"num":0}]', "44", "49", "²",
])
@IN_ONE_LOOP
async def test_nonsense_on_a_socket_of_socketio_costs_no_traceback(shared: Served, packet: str) -> None:
    with capture_logs() as journal:
        async with shared.http.ws_connect(shared.url("/socket.io/?EIO=4&transport=websocket")) as ws:
            await ws.send_str("40")
            await ws.receive()
            await ws.receive()
            await ws.send_str(packet)
            await ws.send_str('427["chat:stop",{}]')
            while (message := await ws.receive()).type is WSMsgType.TEXT and not message.data.startswith("437"):
                pass
    assert not [entry for entry in journal if entry["log_level"] == "error" or "exc_info" in entry]


@pytest.mark.parametrize("path", ["/api/v1/ws/chat", "/socket.io/?EIO=4&transport=websocket"])
@pytest.mark.parametrize("header", ["Upgrade: websocket", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="])
@IN_ONE_LOOP
async def test_a_handshake_that_is_not_ascii_is_refused(shared: Served, path: str, header: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", shared.port)
    head = (f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{shared.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n").encode()
    writer.write(head.replace(header.encode(), header.encode() + b"\x98\xff"))
    assert (await reader.read(200))[9:12] == b"400"
    writer.close()


# -- a full disk ------------------------------------------------------------------------------------------------------

def form(name: str = "file") -> aiohttp.FormData:
    made = aiohttp.FormData()
    made.add_field(name, b"words", filename="a.txt", content_type="text/plain")
    return made


def left(folder: Path) -> list[str]:
    """Files that are neither the database nor a key nor a setting."""
    known = ("dragoman.db", "config.yaml", ".secret", "keys.json")
    return [str(file) for file in folder.rglob("*") if file.is_file() and not file.name.startswith(known)]


async def test_an_upload_to_a_full_disk_is_refused_and_leaves_nothing(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "fsync", full)
    for path in ("/api/v1/cloud/files", "/api/v1/files/upload"):
        async with served.http.post(served.url(path), data=form()) as response:
            assert response.status == 503 and response.headers["Retry-After"]
            assert "the disk is full" in await response.text()
    assert left(tmp_path) == []


async def test_a_file_of_a_workspace_on_a_full_disk_is_refused_and_leaves_nothing(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = served.url(f"/api/sessions/{await session(served)}")
    async with served.http.put(f"{at}/files/a.txt", json={"content": "words"}) as response:
        assert response.status == 200
    kept = left(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        patch.setattr(workspaces.shutil, "copyfile", full)
        patch.setattr(Path, "open", open_on_full_disk)
        for asked in (
            served.http.put(f"{at}/files/b.txt", json={"content": "words"}), served.http.post(f"{at}/copy/a.txt"),
            served.http.get(f"{at}/download-dir"), served.http.get(f"{at}/export"),
        ):
            async with asked as response:
                assert response.status == 503, asked
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        async with served.http.post(f"{at}/upload", data=form("files")) as response:
            assert (await response.json())["failed"][0]["error"] == "nothing can be stored just now: the disk is full"
    assert left(tmp_path) == kept


async def test_an_import_to_a_full_disk_leaves_no_session(
    served: Served, monkeypatch: pytest.MonkeyPatch,
) -> None:
    at, first = served.url("/api/sessions"), await session(served)
    async with served.http.put(f"{at}/{first}/files/a.txt", json={"content": "words"}):
        pass
    async with served.http.get(f"{at}/{first}/export") as response:
        packed = aiohttp.FormData()
        packed.add_field("file", await response.read(), filename="s.zip", content_type="application/zip")
    with monkeypatch.context() as patch:
        patch.setattr(WorkspaceFolder, "take", full)
        async with served.http.post(f"{at}/import", data=packed) as response:
            assert response.status == 503
    async with served.http.get(at) as response:
        assert (await response.json())["total"] == 1


async def test_a_key_that_cannot_be_stored_is_not_made(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    at = served.url("/api/user/api-keys")
    with monkeypatch.context() as patch:
        patch.setattr(key_tables, "encode_key", full_database)
        async with served.http.post(at, json={"name": "mine"}) as response:
            assert response.status == 503
    async with served.http.get(at) as response:
        assert await response.json() == []
