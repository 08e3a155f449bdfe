"""Clients name files, pictures, repositories and MCP servers: addresses inside the server's network are refused.

Every attack is refused before anything is stored, in the words of the dialect, with the name of the field.
"""

import socket
import zipfile
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import gateway.model as m
from gateway.composition import load_components
from gateway.config import load_config
from tests.support.backends.acp_turns import backend, played
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.dialects.aap import client as aap_client
from tests.support.dialects.blade import client as blade_client
from tests.support.dialects.blade import rest_server
from tests.support.dialects.cas import client as cas_client
from tests.support.dialects.zenflux import client as zenflux_client
from tests.support.gateway_server import Served, serving

METADATA, LOOPBACK, PRIVATE = "https://169.254.169.254/latest", "https://[::ffff:127.0.0.1]/x", "https://10.0.0.1/x"
INSIDE = [METADATA, LOOPBACK, "https://2130706433/x", "https://redis/x"]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path, dialects=ALL_DIALECTS, log="memory") as made:
        yield made


async def sessions_of(served: Served) -> int:
    return len((await served.gateway.sessions.list("", limit=100))[0])


@pytest.mark.parametrize("url", INSIDE)
async def test_aap_pictures(served: Served, url: str) -> None:
    client = aap_client.Client(served)
    picture = [{"role": "user", "content": [{"type": "image", "url": url}]}]
    status, refused = await client.call("POST", "/sessions", {"agent": {"name": "demo"}, "messages": picture})
    assert (status, "messages.0.content.0.url" in str(refused)) == (400, True)
    assert await sessions_of(served) == 0
    session = await client.session()
    status, refused = await client.call("POST", f"/sessions/{session}/turns", {"messages": picture})
    assert (status, "messages.0.content.0.url" in str(refused)) == (400, True)
    assert await client.history(session) == []


@pytest.mark.parametrize("url", [*INSIDE, "http://127.0.0.1:6379/"])
async def test_cas_pictures_documents_servers_repositories_and_credentials(served: Served, url: str) -> None:
    client = cas_client.Client(served)
    server = [{"name": "m", "type": "url", "url": url}]
    repository = {"type": "github_repository", "url": url}
    message = [{"type": "user.message", "content": [{"type": "document", "source": {"type": "url", "url": url}}]}]
    new = {"environment": {"config": {"type": "cloud"}}, "agent": "agent_demo"}
    vault = (await client.ok("POST", "/vaults", {"display_name": "v"}))["id"]
    attacks = [
        ("/agents", {"name": "a", "model": "demo-1", "mcp_servers": server}, "mcp_servers.0.url"),
        ("/sessions", {**new, "agent": {"id": "agent_demo", "mcp_servers": server}}, "agent.mcp_servers.0.url"),
        ("/sessions", {**new, "resources": [repository]}, "resources.0.url"),
        ("/sessions", {**new, "initial_events": message}, "initial_events.0.content.0.source.url"),
        (f"/vaults/{vault}/credentials", {"display_name": "c", "auth": {
            "type": "static_bearer", "mcp_server_url": url, "token": "t"}}, "auth.mcp_server_url"),
    ]
    for path, body, param in attacks:
        status, refused = await client.call("POST", path, body)
        assert (status, refused["error"].get("param")) == (400, param), refused
    assert await sessions_of(served) == 0
    session = await client.session()
    for path, body, param in (
        (f"/sessions/{session}", {"agent": {"mcp_servers": server}}, "agent.mcp_servers.0.url"),
        (f"/sessions/{session}/resources", repository, "url"),
        (f"/sessions/{session}/events", {"events": message}, "events.0.content.0.source.url"),
    ):
        status, refused = await client.call("POST", path, body)
        assert (status, refused["error"].get("param")) == (400, param), refused
    assert await client.events(session) == []
    assert (await client.ok("GET", f"/vaults/{vault}/credentials"))["data"] == []


@pytest.mark.parametrize("url", [*INSIDE, "http://127.0.0.1:6379/"])
async def test_blade_pictures(served: Served, url: str) -> None:
    async with blade_client.connect(served) as talker:
        session = await talker.session()
        files = [{"type": "file", "name": "a.txt", "data": "aGVsbG8="}]
        refused = await talker.send(session, [*files, {"type": "image_url", "image_url": {"url": url}}])
        assert "message.1.image_url.url" in str(refused)
        assert await talker.messages(session) == []
    assert await served.gateway.resources.list("file", "", limit=10) == [], "nothing was stored on the way"


@pytest.mark.parametrize("url", [
    *INSIDE, "http://127.0.0.1:6379/", "file:///etc/passwd", "gopher://example.com/", "ftp://example.com/x",
])
async def test_zenflux_files(served: Served, url: str) -> None:
    client = zenflux_client.Client(served)
    files = [{"file_url": "https://example.com/a.txt"}, {"file_url": url, "file_name": "x", "file_type": "text/plain"}]
    refused = await client.call("POST", "/chat", json={"message": "hi", "files": files}, status=400)
    assert "files.1.file_url" in str(refused)
    assert await sessions_of(served) == 0
    async with client.chat() as chat:
        told = await chat.ask("chat.send", message="hi", user_id="local", files=files)
        assert (told["ok"], "files.1.file_url" in str(told)) == (False, True)
    assert await sessions_of(served) == 0


def _other(url: str) -> str:
    return url[:-1] + ("1" if url.endswith("0") else "0")


async def test_the_link_of_ones_own_upload_is_taken_and_nobody_elses(served: Served) -> None:
    client = zenflux_client.Client(served)
    form = aiohttp.FormData()
    form.add_field("file", b"hello", filename="a.txt", content_type="text/plain")
    kept = await client.call("POST", "/files/upload", data=form)
    async with client.chat() as chat:
        run = await chat.run("see", files=[{"file_url": kept["file_url"], "file_name": "a.txt"}])
        assert run.conversation_id
        elsewhere = kept["file_url"].replace(str(served.port), "6379")
        for url in (elsewhere, kept["file_url"] + "/../x", _other(kept["file_url"])):
            assert url != kept["file_url"]
            told = await chat.ask("chat.send", message="hi", user_id="local", files=[{"file_url": url}])
            assert not told["ok"], url


async def test_a_session_from_a_zip_names_no_address_inside(served: Served) -> None:
    client = rest_server.Client(served)
    for settings, part in (
        (m.Settings(mcp_servers=({"name": "m", "url": METADATA},)), "words"),
        (m.Settings(), (m.ImagePart(url=PRIVATE),)), (m.Settings(), (m.FilePart(name="x", url="file:///etc/passwd"),)),
    ):
        view = await served.gateway.sessions.create("", "demo", settings=settings)
        await served.gateway.sessions.submit("", view.session_id, [m.SendMessage(content=part)])
        content = (await client.get(f"/sessions/{view.session_id}/export")).body
        before = await sessions_of(served)
        form = aiohttp.FormData()
        form.add_field("file", BytesIO(content), filename="s.zip", content_type="application/zip")
        with zipfile.ZipFile(BytesIO(content)) as archive:
            records = archive.read("records.jsonl")
        assert any(url in records.decode() for url in (METADATA, PRIVATE, "/etc/passwd")), "the attack is in the ZIP"
        answer = await client.post("/sessions/import", form)
        assert (answer.status, "url" in str(answer.body)) == (400, True), answer.body
        assert await sessions_of(served) == before


async def test_a_public_name_that_leads_inside_is_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """As 127.0.0.1.nip.io and its like do."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *given, **named: [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))])
    url = "https://127-0-0-1.example.com/x.png"
    picture = [{"role": "user", "content": [{"type": "image", "url": url}]}]
    status, _ = await aap_client.Client(served).call("POST", "/sessions", {
        "agent": {"name": "demo"}, "messages": picture})
    assert status == 400
    client = cas_client.Client(served)
    document = [{"type": "document", "source": {"type": "url", "url": url}}]
    assert (await client.send(await client.session(), {"type": "user.message", "content": document}))[0] == 400
    refused = await zenflux_client.Client(served).call(
        "POST", "/chat", json={"message": "hi", "files": [{"file_url": url}]}, status=400)
    assert "files.0.file_url" in str(refused)
    async with blade_client.connect(served) as talker:
        session = await talker.session()
        told = await talker.send(session, [{"type": "image_url", "image_url": {"url": url}}])
        assert "message.0.image_url.url" in str(told)


async def test_what_the_operator_allows_is_taken(tmp_path: Path) -> None:
    allow = {"allow": ["10.0.0.0/8", "*.corp.example"]}
    async with serving(tmp_path, dialects=ALL_DIALECTS, log="memory", outbound=allow) as served:
        client = cas_client.Client(served)
        for url in (PRIVATE, "http://mcp.corp.example/x"):
            await client.ok("POST", "/agents", {"name": "a", "model": "demo-1", "mcp_servers": [
                {"name": "m", "type": "url", "url": url}]})
        inside = {"name": "a", "model": "demo-1", "mcp_servers": [{"name": "m", "type": "url", "url": METADATA}]}
        assert (await client.call("POST", "/agents", inside))[0] == 400
        file = tmp_path / "config.yaml"
        file.write_text(file.read_text().replace("10.0.0.0/8", "169.254.169.254"))
        served.gateway.replace_components(load_components(load_config(file), served.gateway.components))
        await client.ok("POST", "/agents", inside)


async def test_an_agent_on_this_machine_is_told_no_address_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sessions may hold such addresses from before they were refused, and names may lead elsewhere meanwhile."""
    def lookup(host: str, port: Any, **given: Any) -> list[Any]:
        address = {"rebind.example": "169.254.169.254", "example.com": "93.184.215.14"}[host]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0))]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    record = tmp_path / "heard.jsonl"
    inside = [METADATA, "http://rebind.example/x", "file:///etc/passwd", "gopher://example.com/"]
    servers = tuple({"name": str(n), "url": url} for n, url in enumerate([*inside, "https://example.com/mcp"]))
    files = [m.FilePart(name=str(n), url=url) for n, url in enumerate([*inside, "https://example.com/a"])]
    async with backend(tmp_path, f"--record={record}") as made:
        await played(made, m.SendMessage(content=tuple(files)), settings=m.Settings(mcp_servers=servers))
    heard = record.read_text()
    assert not [url for url in inside if url in heard]
    assert "https://example.com/a" in heard
