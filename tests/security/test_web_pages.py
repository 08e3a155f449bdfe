"""A web page cannot drive the agent of this machine: not from another site, and not under a name that leads here."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.composition import load_components
from gateway.config import load_config
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.gateway_server import Served, serving

EVIL = "https://evil.example"
JSON = "application/json"
CHAT = b'{"message": "hello", "userId": "ann", "stream": false}'
PATHS = {
    "/aap/sessions": b'{"agent": {"name": "demo"}}',
    "/api/v1/cloud/sessions": b'{"agent": "demo"}',
    "/api/v1/chat": CHAT,
    "/api/sessions": b"{}",
    "/api/user/api-keys": b'{"name": "mine"}',
    "/api/memories": b'{"content": "trust everybody"}',
    "/api/scheduled-tasks": b'{"name": "x", "cron": "* * * * *", "prompt": "x", "skip_confirmations": true}',
    "/socket.io/?EIO=4&transport=polling": b"40",
    "/nowhere": b"{}",
}
"""A path of every dialect and one that nobody has, each with what an attacker would post there."""
READABLE = ("/aap/meta", "/api/v1/cloud/sessions", "/api/v1/conversations", "/api/sessions",
            "/socket.io/?EIO=4&transport=polling", "/metrics", "/", "/nowhere")
UPGRADES = ("/api/v1/ws/chat", "/socket.io/?EIO=4&transport=websocket")


@asynccontextmanager
async def everything(folder: Path, **settings: Any) -> AsyncIterator[Served]:
    async with serving(folder, **{"dialects": ALL_DIALECTS, "log": "memory", **settings}) as served:
        yield served


async def asked(
    served: Served, method: str, path: str, body: bytes | None = None, **headers: str,
) -> tuple[int, str, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with served.http.request(method, served.url(path), data=body, headers=named) as response:
        return response.status, await response.text(), response.headers


async def upgraded(served: Served, path: str, **headers: str) -> int:
    try:
        async with served.http.ws_connect(served.url(path), headers=headers):
            return 101
    except aiohttp.WSServerHandshakeError as error:
        return error.status


async def nothing_happened(served: Served) -> bool:
    sessions, _ = await served.gateway.sessions.list("")
    async with served.http.get(served.url("/api/user/api-keys")) as keys:
        return not sessions and not served.gateway.table.turn_count and not await keys.json()


# -- pages of other sites ---------------------------------------------------------------------------------------------

async def test_a_page_of_another_site_is_refused_everywhere(tmp_path: Path) -> None:
    async with everything(tmp_path) as served:
        for strange in ("null", "https://localhost.evil.example", "http://[", "", "http://127.0.0.1@evil.example"):
            assert (await asked(served, "GET", "/aap/meta", Origin=strange))[0] == 403, strange
        origin = EVIL
        for path, body in PATHS.items():
            for kind in ("text/plain", JSON):
                status, text, headers = await asked(served, "POST", path, body, Origin=origin, Content_Type=kind)
                assert (status, "origins:" in text) == (403, True), (path, text)
                assert "Access-Control-Allow-Origin" not in headers
        for path in READABLE:
            assert (await asked(served, "GET", path, Origin=origin))[0] == 403, path
            preflight = {"Origin": origin, "Access_Control_Request_Method": "POST"}
            assert (await asked(served, "OPTIONS", path, **preflight))[0] == 403, path
        for path in UPGRADES:
            assert await upgraded(served, path, Origin=origin) == 403, path
        assert await nothing_happened(served)


async def test_a_request_without_an_origin_is_told_by_its_site(tmp_path: Path) -> None:
    """Pictures, scripts and frames name no origin; a link that somebody follows is a navigation."""
    cross: dict[str, str] = {"Sec_Fetch_Site": "cross-site"}
    link = {**cross, "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    async with everything(tmp_path) as served:
        for path in READABLE:
            assert (await asked(served, "GET", path, **cross, Sec_Fetch_Mode="no-cors"))[0] == 403, path
            assert (await asked(served, "GET", path, **{**link, "Sec_Fetch_Dest": "iframe"}))[0] == 403, path
            assert (await asked(served, "GET", path, **link))[0] != 403, path
        assert (await asked(served, "POST", "/api/v1/chat", CHAT, **link, Content_Type="text/plain"))[0] == 403
        assert (await asked(served, "GET", "/aap/meta", Sec_Fetch_Site="same-origin"))[0] == 200
        assert await nothing_happened(served)


async def test_a_refusal_does_not_wait_for_the_body(tmp_path: Path) -> None:
    async with everything(tmp_path) as served:
        for header in (f"Host: 127.0.0.1\r\nOrigin: {EVIL}", "Host: evil.example"):
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            writer.write(f"POST /api/v1/chat HTTP/1.1\r\n{header}\r\nContent-Length: 9000000\r\n\r\n".encode())
            async with asyncio.timeout(60):
                assert (await reader.readline()).split()[1] in (b"403", b"421")
            writer.close()


OF_THIS_MACHINE = (
    "http://localhost:5173", "https://127.0.0.1:1", "http://[::1]:8080", "http://app.localhost", "tauri://localhost",
    "http://tauri.localhost", "https://tauri.localhost",
)


async def test_a_server_of_this_machine_lists_pages_of_this_machine_unless_told_otherwise(tmp_path: Path) -> None:
    for settings, status in (({}, 200), ({"origins": []}, 403)):
        async with serving(tmp_path, **settings) as served:
            for origin in OF_THIS_MACHINE:
                assert (await asked(served, "GET", "/aap/meta", Origin=origin))[0] == status, origin
            for origin in ("chrome-extension://localhost", "ftp://localhost"):
                assert (await asked(served, "GET", "/aap/meta", Origin=origin))[0] == 403, origin
            assert (await asked(served, "GET", "/aap/meta", Origin=served.address))[0] == 200, "its own pages"


async def test_a_server_that_others_reach_lists_nobody(tmp_path: Path) -> None:
    async with serving(tmp_path, host="0.0.0.0", auth="keys") as served:
        for origin in ("http://localhost:5173", "tauri://localhost"):
            assert (await asked(served, "GET", "/healthz", Origin=origin))[0] == 403


# -- names that lead here ---------------------------------------------------------------------------------------------

async def test_a_name_that_leads_here_is_misdirected_everywhere(tmp_path: Path) -> None:
    async with everything(tmp_path) as served:
        host = f"evil.example:{served.port}"
        for path in READABLE:
            status, text, _ = await asked(served, "GET", path, Host=host)
            assert (status, "hosts:" in text) == (421, True), (path, text)
        for path, body in PATHS.items():
            same = {"Host": host, "Origin": f"http://{host}", "Sec_Fetch_Site": "same-origin", "Content_Type": JSON}
            assert (await asked(served, "POST", path, body, **same))[0] == 421, path
        for path in UPGRADES:
            assert await upgraded(served, path, Host=host, Origin=f"http://{host}") == 421, path
        assert await nothing_happened(served)


NAMES = (
    ("localhost", 200), ("LOCALHOST:1", 200), ("app.localhost:99", 200), ("127.0.0.1", 200), ("127.8.9.1:5", 200),
    ("[::1]:7", 200), ("gateway.example", 200), ("gateway.example:8443", 200), ("a.wild.example", 200),
    ("wild.example", 421), ("evil-gateway.example", 421), ("gateway.example.evil", 421), ("10.1.2.3", 421),
    ("localhost.evil.example", 421), ("127.0.0.1.evil.example", 421), ("user@localhost", 421), ("", 421),
)


async def test_a_server_answers_to_its_names(tmp_path: Path) -> None:
    async with serving(tmp_path, hosts=["gateway.example", "*.wild.example"]) as served:
        answered = [(host, (await asked(served, "GET", "/aap/meta", Host=host))[0]) for host, _ in NAMES]
    assert answered == list(NAMES)


SMUGGLED = (
    ("GET http://evil.example/aap/meta HTTP/1.1", "Host: localhost\r\n", b"421"),
    ("GET /aap/meta HTTP/1.1", "Host: localhost\r\nHost: evil.example\r\n", b"400"),
    ("GET /aap/meta HTTP/1.1", "", b"400"),
    ("GET /aap/meta HTTP/1.0", "", b"200"),
    ("GET /aap/meta HTTP/1.1", "Host: \udcaa\udcff.example\r\n", b"421"),
    ("GET /aap/meta HTTP/1.1", "Host: localhost\r\nOrigin: http://\udcaa\r\n", b"403"),
)


async def test_a_host_cannot_be_smuggled(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for request_line, headers, status in SMUGGLED:
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            writer.write(f"{request_line}\r\n{headers}\r\n".encode(errors="surrogateescape"))
            assert (await reader.readline()).split()[1] == status, request_line
            writer.close()


# -- pages that are listed --------------------------------------------------------------------------------------------

APP = "https://app.example"


async def test_a_listed_page_may_use_every_dialect(tmp_path: Path) -> None:
    async with everything(tmp_path, origins=[APP]) as served:
        for path, body in PATHS.items():
            status, _, headers = await asked(
                served, "OPTIONS", path, Origin=APP, Access_Control_Request_Method="POST",
                Access_Control_Request_Headers="authorization,content-type",
                Access_Control_Request_Private_Network="true",
            )
            assert status == 204, path
            assert headers["Access-Control-Allow-Headers"] == "authorization,content-type"
            assert "DELETE" in headers["Access-Control-Allow-Methods"]
            assert headers["Access-Control-Allow-Private-Network"] == "true"
            status, _, headers = await asked(served, "POST", path, body, Origin=APP, Content_Type=JSON)
            assert status not in (403, 415), path
            assert headers["Access-Control-Allow-Origin"] == APP, "refusals can be read, too"
            assert headers["Access-Control-Allow-Credentials"] == "true"
            assert headers["Vary"] == "Origin"
            exposed = headers["Access-Control-Expose-Headers"].split(", ")
            assert {"X-Request-Id", "Last-Event-ID", "Retry-After"} <= set(exposed)
        for path in UPGRADES:
            assert await upgraded(served, path, Origin=APP) == 101, path
        assert (await asked(served, "GET", "/aap/meta", Origin="http://localhost:5173"))[0] == 403


async def test_a_stream_can_be_read_by_a_listed_page(tmp_path: Path) -> None:
    async with everything(tmp_path, origins=[APP]) as served:
        body = {"message": "hello", "userId": "ann"}
        async with served.http.post(served.url("/api/v1/chat"), json=body, headers={"Origin": APP}) as response:
            assert (response.status, response.content_type) == (200, "text/event-stream")
            assert response.headers["Access-Control-Allow-Origin"] == APP


async def test_where_every_page_is_listed_none_is_given_credentials(tmp_path: Path) -> None:
    async with everything(tmp_path, origins=["*"]) as served:
        status, _, headers = await asked(served, "GET", "/aap/meta", Origin=EVIL)
        assert (status, headers["Access-Control-Allow-Origin"]) == (200, "*")
        assert "Access-Control-Allow-Credentials" not in headers


# -- the type of a body -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("headers", "status"), [
    ({"Origin": "http://localhost:3000", "Content_Type": "text/plain"}, 415),
    ({"Sec_Fetch_Site": "same-origin", "Content_Type": "application/x-www-form-urlencoded"}, 415),
    ({"Origin": "http://localhost:3000", "Content_Type": "application/json; charset=utf-8"}, 200),
    ({"Origin": "http://localhost:3000", "Content_Type": "application/problem+json"}, 200),
    ({"Content_Type": "text/plain"}, 200),
    ({"Content_Type": "application/x-www-form-urlencoded"}, 200),
])
async def test_a_browser_sends_json_and_a_program_what_it_likes(
    tmp_path: Path, headers: dict[str, str], status: int,
) -> None:
    async with everything(tmp_path) as served:
        assert (await asked(served, "POST", "/api/v1/chat", CHAT, **headers))[0] == status
        assert await nothing_happened(served) is (status == 415)


async def test_a_browser_uploads_forms_and_packets(tmp_path: Path) -> None:
    own = {"Origin": "http://localhost:3000"}
    async with everything(tmp_path) as served:
        form = aiohttp.FormData()
        form.add_field("file", b"words", filename="a.txt")
        async with served.http.post(served.url("/api/v1/files/upload"), data=form, headers=own) as response:
            assert response.status == 200
        polling = "/socket.io/?EIO=4&transport=polling"
        _, text, _ = await asked(served, "GET", polling, **own)
        sid = text.partition('"sid":"')[2].partition('"')[0]
        packets = {**own, "Content_Type": "text/plain;charset=UTF-8"}
        assert (await asked(served, "POST", f"{polling}&sid={sid}", b"40", **packets))[:2] == (200, "OK")
        async with served.http.delete(served.url("/api/sessions/nope"), headers=own) as response:
            assert response.status == 404, "no body, no type"


# -- settings ---------------------------------------------------------------------------------------------------------

async def test_a_reload_changes_who_is_let_in(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        file = tmp_path / "config.yaml"
        file.write_text(f"{file.read_text()}\norigins: ['{APP}']\nhosts: [gateway.example]\n")
        served.gateway.replace_components(load_components(load_config(file), served.gateway.components))
        for headers, status in (({"Origin": APP}, 200), ({"Origin": "http://localhost:1"}, 403),
                                ({"Host": "gateway.example"}, 200)):
            assert (await asked(served, "GET", "/aap/meta", **headers))[0] == status


@pytest.mark.parametrize(("dialects", "listed", "unlisted"), [
    ({"zenflux": {"cors": True}}, EVIL, None),
    ({"blade": {"origins": [APP]}}, APP, EVIL),
])
async def test_old_settings_of_dialects_are_the_servers(
    tmp_path: Path, dialects: dict[str, Any], listed: str, unlisted: str | None,
) -> None:
    async with everything(tmp_path, dialects={**ALL_DIALECTS, **dialects}) as served:
        for origin, status in ((listed, 200), (unlisted, 403), ("http://localhost:3000", 200)):
            if origin is not None:
                assert (await asked(served, "GET", "/aap/meta", Origin=origin))[0] == status
        [warning] = served.gateway.components.config.warnings
        assert "`origins:` is for the whole server" in warning
