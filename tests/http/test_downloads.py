"""Files go out as attachments, to whoever holds a link."""

from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer, make_mocked_request

from gateway.http import absolute_url, attachment, signed_link_handler
from gateway.ports import FileContent, FileLink
from gateway.resources import content_of


class OneFile:
    """A store with one file and one link to it."""

    def __init__(self, path: Path) -> None:
        self.at = path

    def read_link(self, word: str) -> FileLink:
        return FileLink(file_id="f", name="grün.txt", media_type="text/plain", expires=0.0)

    async def open(self, file_id: str) -> FileContent:
        return content_of(self.at)


@pytest.mark.parametrize(("media_type", "served"), [
    ("text/plain", "text/plain"), ("image/png", "image/png"), ("application/pdf", "application/pdf"),
    ("video/mp4", "video/mp4"), ("application/vnd.ms-excel", "application/vnd.ms-excel"),
    ("text/html", "application/octet-stream"), ("image/svg+xml", "application/octet-stream"),
    ("application/vnd.x+xml", "application/octet-stream"), ("text/css", "application/octet-stream"),
    ("text/plain\r\nX: y", "application/octet-stream"), ("", "application/octet-stream"),
])
async def test_only_what_no_browser_runs_keeps_its_type(tmp_path: Path, media_type: str, served: str) -> None:
    (tmp_path / "x").touch()
    response = await attachment(make_mocked_request("GET", "/"), content_of(tmp_path / "x"), "x", media_type)
    assert response.headers["Content-Type"] == served
    assert response.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("name", ['a"b', "a\r\nX: y", "grün", "a;b", "../x"])
async def test_a_name_cannot_break_out_of_its_header(tmp_path: Path, name: str) -> None:
    (tmp_path / "x").touch()
    response = await attachment(make_mocked_request("GET", "/"), content_of(tmp_path / "x"), name, "text/plain")
    said = response.headers["Content-Disposition"]
    assert said.startswith('attachment; filename="')
    assert said.isascii()
    assert said.count('"') == 2
    assert not {"\r", "\n", "/"} & set(said)


async def test_a_link_serves_the_bytes_and_parts_of_them(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"hello")
    app = web.Application()
    app.add_routes([web.get("/l/{link}", signed_link_handler(OneFile(tmp_path / "f")))])  # type: ignore[arg-type]
    async with TestClient(TestServer(app)) as client:
        async with client.get("/l/x") as response:
            assert await response.read() == b"hello"
            assert "filename*=UTF-8''gr%C3%BCn.txt" in response.headers["Content-Disposition"]
        async with client.get("/l/x", headers={"Range": "bytes=1-2"}) as response:
            assert (response.status, await response.read()) == (206, b"el")


def test_an_address_is_the_one_the_client_used() -> None:
    request = make_mocked_request("GET", "/a", headers={"Host": "h.example:8080"}, app=web.Application())
    assert absolute_url(request, "/b") == "http://h.example:8080/b"
