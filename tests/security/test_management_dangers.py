"""Each danger of ZenFlux's management surface, tried over HTTP: the attack is refused, and nothing has happened."""

import asyncio
import json
import os
import socket
import sys
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import structlog
from aiohttp import web
from yarl import URL

from gateway.ports import AgentDefinition
from gateway.resources import AgentService, ScheduledTask, Schedules
from gateway.resources.agents import MAX_AGENTS
from tests.support.backends.mcp_over_http import mcp_over_http
from tests.support.backends.model_services import says
from tests.support.client.byte_server import serving as model_serving
from tests.support.dialects.zenflux.client import API, Client, keyed, talking, talking_reloadable
from tests.support.skill_zips import FILES, zipped

SECRET = "the-server's-own-secret"
TUTOR = {"agent_id": "tutor", "name": "Tutor", "prompt": "You teach."}
OBJECT = {"type": "object"}


@asynccontextmanager
async def canary() -> AsyncIterator[tuple[int, list[str]]]:
    """A server of the inner network: its port, and what it was asked."""
    asked = list[str]()

    async def note(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.path} {request.headers.get('Authorization', '')}")
        return web.Response(text="inner words")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", note)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield runner.addresses[0][1], asked
    finally:
        await runner.cleanup()


@asynccontextmanager
async def troublesome(folder: Path) -> AsyncIterator[Client]:
    """A server whose operator lists tools of an MCP server that hang, and that say too much."""
    async with mcp_over_http(with_trouble=True) as house:
        servers = {"house": {"url": house.url, "permission": "allow", "permissions": {"clock": "ask"}}}
        agents = {"llm": {"backend": "openai", "settings": {"url": "http://127.0.0.1:9", "model": "m", "mcp": servers}}}
        listed = ["calc", "house:hang", "house:chatter", "house:clock", "house:add"]
        async with talking(folder, agents=agents, management={"execute": listed}) as client:
            yield client


async def raw(client: Client, method: str, path: str, **options: Any) -> tuple[int, Any]:
    """The status and body of a request whose path is sent as it is written."""
    url = URL(client.served.url(f"{API}{path}"), encoded=True)
    headers = {**client.headers, **options.pop("headers", {})}
    async with client.served.http.request(method, url, headers=headers, **options) as answer:
        return answer.status, await answer.text()


async def state(client: Client) -> Any:
    """All that the calls can change."""
    paths = ("/agents?include_inactive=true", "/tools", "/tools/mcp?include_inactive=true", "/skills/global",
             "/skills/instance/demo", "/settings", "/mem0/user/local", "/tasks")
    return [await client.call("GET", path) for path in paths]


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def bytes_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def server_secret(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A variable of the server's environment, which nobody may be sent."""
    monkeypatch.setenv("HOUSE_SECRET", SECRET)
    yield


# -- D1: tools outside of a conversation ------------------------------------------------------------------------------

async def test_d1_only_listed_tools_without_permission_run(tmp_path: Path) -> None:
    async with troublesome(tmp_path) as client:
        await client.call("POST", "/tools/register", json={"name": "own", "description": "x", "input_schema": OBJECT})
        for name, input, status in (
            ("house:clock", {}, 403), ("clock", {}, 403), ("own", {}, 403), ("house:add", {"a": "x", "b": 1}, 400),
            ("calc", {}, 400), ("nothing", {}, 404), ("house:nothing", {}, 404), ("os:system", {}, 404),
        ):
            for body in ({"tool_name": name, "input": input}, {"tool_name": name, "input": input, "stream": True}):
                await client.call("POST", "/tools/execute", json=body, status=status)
            await client.call("POST", f"/tools/{name}/invoke", json=input, status=status)
            shown = await raw(client, "GET", f"/tools/{name}")
            assert status == 404 or '"total_invocations":0' in shown[1]


async def test_d1_a_tool_has_thirty_seconds_and_a_mebibyte(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    async with troublesome(tmp_path) as client:
        began = loop.time()
        done = await client.call("POST", "/tools/execute", json={"tool_name": "house:hang", "timeout": 3600})
        assert (done["status"], done["output"], done["error_code"]) == ("timeout", None, "TIMEOUT")
        assert 30 <= loop.time() - began < 31
        done = await client.call("POST", "/tools/execute", json={"tool_name": "house:chatter"})
        assert (done["status"], done["output"]) == ("failed", None)
        assert "1048576 bytes" in done["error"]
        status, streamed = await raw(client, "POST", "/tools/house:chatter/invoke?stream=true")
        assert (status, len(streamed) < 10_000) == (200, True)
        kinds = [json.loads(line[6:])["chunk_type"] for line in streamed.splitlines() if line.startswith("data: ")]
        assert kinds[-2:] == ["error", "done"]


async def test_d1_runs_are_counted_per_user_and_few_at_a_time(tmp_path: Path) -> None:
    async with troublesome(tmp_path) as client:
        hang = {"tool_name": "house:hang", "timeout": 20}
        running = [asyncio.create_task(client.call("POST", "/tools/execute", json=hang)) for _ in range(4)]
        await asyncio.sleep(5)
        for stream in (False, True):
            said = await client.call("POST", "/tools/execute", json={**hang, "stream": stream}, status=429)
            assert "at once" in said
        await asyncio.gather(*running)
        statistics = (await client.call("GET", "/tools/house:hang"))["statistics"]
        assert (statistics["total_invocations"], statistics["failure_count"]) == (4, 4)
        assert (await client.call("POST", "/tools/calc/invoke", json={"expression": "1"}))["output"] == "1"


async def test_d1_the_journal_has_no_input(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        with structlog.testing.capture_logs() as lines:
            await client.call("POST", "/tools/calc/invoke", json={"expression": "4242 + 1"})
        [line] = [line for line in lines if line["event"] == "tool_run"]
        assert (line["tool"], line["succeeded"]) == ("calc", True)
        assert "4242" not in repr(lines)


# -- D2: code that a client names -------------------------------------------------------------------------------------

async def test_d2_a_clients_code_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evil_tool.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    async with talking(tmp_path) as client:
        before = await state(client)
        for implementation in ({"module": "evil_tool", "class": "Evil"}, {"module": "evil_tool"}, {"class": "Evil"},
                               "evil_tool:Evil", ["evil_tool", "Evil"]):
            definition = {"name": "evil", "description": "x", "input_schema": OBJECT, "implementation": implementation}
            for body in ({"definition": definition}, definition):
                await client.call("POST", "/tools/register", json=body, status=403)
        large = {"name": "evil", "description": "x", "input_schema": {**OBJECT, "description": "x" * 66_000}}
        await client.call("POST", "/tools/register", json=large, status=413)
        assert "evil_tool" not in sys.modules
        assert await state(client) == before


async def test_d2_a_user_has_so_many_tools(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        for number in range(128):
            tool = {"name": f"t{number}", "description": "x", "input_schema": OBJECT}
            await client.call("POST", "/tools/register", json=tool)
        await client.call("POST", "/tools/register", json={**tool, "name": "more"}, status=409)
        await client.call("GET", "/tools/more", status=404)


# -- D3, D4: MCP servers ----------------------------------------------------------------------------------------------

async def test_d3_a_clients_command_is_not_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    command = {"command": "touch", "args": [str(mark)]}
    async with talking(tmp_path) as client:
        await client.call("POST", "/tools/mcp/register", json={
            "server_name": "fine", "server_url": "https://mcp.example.com/"})
        before = await client.call("GET", "/tools/mcp")
        for url in ({}, {"server_url": "https://x.example.com"}, {"server_url": "stdio:touch"}):
            status, _ = await raw(client, "POST", "/tools/mcp/register", json={"server_name": "x", **url, **command})
            assert status in (400, 403)
        await client.call("PUT", "/tools/mcp/fine", json=command, status=403)
        local = {"server_name": "x", "server_url": f"file://{mark}"}
        await client.call("POST", "/tools/mcp/register", json=local, status=400)
        assert await client.call("GET", "/tools/mcp") == before
        assert not mark.exists()


@pytest.mark.parametrize("host", [
    "127.0.0.1", "127.1", "2130706433", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]", "localhost", "inner.localhost",
    "0.0.0.0", "169.254.169.254", "10.0.0.1", "metadata.google.internal",
])
async def test_d3_inner_addresses_cannot_be_registered(tmp_path: Path, host: str) -> None:
    async with canary() as (port, asked), talking(tmp_path) as client:
        server = {"server_name": "inner", "server_url": f"http://{host}:{port}/mcp"}
        status, _ = await raw(client, "POST", "/tools/mcp/register", json=server)
        assert status in (400, 403)
        await client.call("POST", "/tools/mcp/register", json={**server, "server_url": "https://mcp.example.com/"})
        status, _ = await raw(client, "PUT", "/tools/mcp/inner", json={"server_url": server["server_url"]})
        assert status in (400, 403)
        for path in ("/tools", "/tools/mcp", "/tools/mcp/inner"):
            await client.call("GET", path)
        assert asked == []
        assert (await client.call("GET", "/tools/mcp/inner"))["server_url"] == "https://mcp.example.com/"


async def test_d3_a_name_that_leads_inside_is_not_connected_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The name is public when it is registered; what counts is the address at the moment of the connection."""
    known = socket.getaddrinfo

    def find(host: Any, port: Any = None, *further: Any, **options: Any) -> Any:
        return known("127.0.0.1" if host == "rebound.example.com" else host, port, *further, **options)

    monkeypatch.setattr(socket, "getaddrinfo", find)
    async with canary() as (port, asked), model_serving(says("Well.")) as model:
        agents = {"demo": {"backend": "openai", "settings": {"url": model.url, "model": "m"}}}
        async with talking(tmp_path, agents=agents) as client:
            server = {"server_name": "rebound", "server_url": f"http://rebound.example.com:{port}/mcp",
                      "auth_type": "bearer", "auth_config": {"token": "t0ken"}}
            await client.call("POST", "/tools/mcp/register", json=server)
            await client.call("POST", "/agents/demo/mcp/rebound")
            for path in ("/tools", "/tools/mcp", "/tools/rebound:x"):
                await raw(client, "GET", path)
            assert (await client.call("GET", "/tools/mcp/rebound"))["is_connected"] is False
            async with client.chat() as chat:
                await chat.run("hello")
        assert asked == []


async def test_d3_a_redirect_is_not_followed_inside(tmp_path: Path) -> None:
    async with canary() as (port, asked):
        async def redirect(request: web.Request) -> web.Response:
            raise web.HTTPTemporaryRedirect(f"http://127.0.0.2:{port}/mcp")

        app = web.Application()
        app.router.add_route("*", "/mcp", redirect)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            async with talking(tmp_path, outbound={"allow": ["127.0.0.1"]}) as client:
                url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
                await client.call("POST", "/tools/mcp/register", json={"server_name": "sly", "server_url": url})
                assert (await client.call("GET", "/tools/mcp/sly"))["is_connected"] is False
        finally:
            await runner.cleanup()
        assert asked == []


async def test_d3_d4_the_environment_of_the_server_is_sent_to_nobody(tmp_path: Path, server_secret: None) -> None:
    async with canary() as (port, asked), talking(tmp_path, outbound={"allow": ["127.0.0.1"]}) as client:
        server = {"server_name": "mine", "server_url": f"http://127.0.0.1:{port}/mcp", "auth_type": "bearer"}
        for auth in ({"auth_env": "HOUSE_SECRET"}, {"auth_config": {"token_env": "HOUSE_SECRET"}},
                     {"auth_config": {"api_key_env": "HOUSE_SECRET"}}):
            await client.call("POST", "/tools/mcp/register", json={**server, **auth}, status=400)
        for token in ("${HOUSE_SECRET}", "$HOUSE_SECRET"):
            await client.call("POST", "/tools/mcp/register", json={**server, "auth_config": {"token": token}})
            await client.call("GET", "/tools/mcp/mine")
            await client.call("DELETE", "/tools/mcp/mine")
        await client.call("POST", "/tools/mcp/register", json=server)
        await client.call("PUT", "/tools/mcp/mine", json={"auth_env": "HOUSE_SECRET"}, status=400)
        await client.call("POST", "/agents/demo/mcp/mine", json={"auth_env": "HOUSE_SECRET"}, status=400)
        await client.call("POST", "/agents/demo/mcp/mine")
        await client.call("PUT", "/agents/demo/mcp/mine", json={"auth_env": "HOUSE_SECRET"}, status=400)
        await client.call("GET", "/tools")
        assert asked, "the server of the user was asked"
        assert SECRET not in repr(asked)


async def test_d3_tokens_are_not_shown_and_tools_of_strangers_ask(tmp_path: Path) -> None:
    async with mcp_over_http() as mine, talking(tmp_path, outbound={"allow": ["127.0.0.1"]}) as client:
        await client.call("POST", "/tools/mcp/register", json={
            "server_name": "mine", "server_url": mine.url, "auth_type": "bearer",
            "auth_config": {"token": "t0ken-t0ken"}})
        await client.call("POST", "/agents/demo/mcp/mine")
        paths = ("/tools", "/tools/schemas", "/tools/mcp", "/tools/mcp/mine", "/agents/demo", "/agents/demo/mcp",
                 "/agents/demo/mcp/mine", "/agents/demo/mcp/available", "/settings", "/settings/status")
        for path in paths:
            assert "t0ken-t0ken" not in (await raw(client, "GET", path))[1]
        tools = [one for one in (await client.call("GET", "/tools"))["tools"] if one["tool_type"] == "mcp"]
        assert [one["requires_confirmation"] for one in tools] == [True, True]
    assert b"t0ken-t0ken" not in bytes_below(tmp_path)


# -- D5: agents -------------------------------------------------------------------------------------------------------

async def test_d5_an_agent_is_no_path(tmp_path: Path, server_secret: None) -> None:
    async with canary() as (port, asked), talking(tmp_path) as client:
        before, files = await state(client), files_below(tmp_path)
        for agent_id in ("../../x", "..", "/etc/x", "a/b", "a\\b", ".hidden", "x" * 65, "ws", "reload", "templates"):
            await client.call("POST", "/agents", json={**TUTOR, "agent_id": agent_id}, status=400)
        for path in ("/agents/%2e%2e", "/agents/..%2f..%2fdata", "/agents/%2e%2e%2fdata", "/agents/%00", "/agents/."):
            for method in ("GET", "DELETE", "PUT"):
                status, _ = await raw(client, method, path, json={})
                assert status in (400, 404, 405), path
        for folder in ("/tmp/x", str(tmp_path / "made"), "../x"):
            await client.call("POST", "/agents", json={**TUTOR, "data_dir": folder}, status=400)
        await client.call("POST", "/agents", json={**TUTOR, "prompt": "x" * 100_001}, status=400)
        for method in ("PUT", "DELETE"):
            await client.call(method, "/agents/demo", json={}, status=403)
        assert (await state(client), files_below(tmp_path)) == (before, files)
        auth = {"type": "bearer", "env": "HOUSE_SECRET"}
        apis = [{"name": "inner", "base_url": f"http://127.0.0.1:{port}/", "auth": auth}]
        await client.call("POST", "/agents", json={**TUTOR, "apis": apis})
        async with client.chat() as chat:
            await chat.run("hello", agent_id="tutor")
        assert SECRET not in repr(await client.call("GET", "/agents/tutor"))
        assert asked == []


async def test_d5_a_user_has_so_many_agents(tmp_path: Path) -> None:
    async with talking(tmp_path, auth="keys") as client:
        ann, bob = await keyed(client, "ann"), await keyed(client, "bob")
        gateway = client.served.gateway
        service = AgentService(gateway.resources, lambda: gateway.components.cards, 0.0)
        for _ in range(MAX_AGENTS):
            await service.create("ann", AgentDefinition(name="One"))
        await ann.call("POST", "/agents", json={"name": "One", "prompt": "x"}, status=409)
        assert (await ann.call("GET", "/agents"))["total"] == MAX_AGENTS + 1
        await bob.call("POST", "/agents", json={"name": "One", "prompt": "x"})


# -- D6: settings -----------------------------------------------------------------------------------------------------

async def test_d6_settings_are_ones_own_and_reach_nothing_else(tmp_path: Path) -> None:
    options = [{"name": "token", "type": "secret"}, {"name": "tone", "type": "text", "default": "plain"}]
    agents = {"demo": {"backend": "demo", "options": options}}
    async with talking(tmp_path, agents=agents, auth="keys", log="sqlite") as client:
        ann, bob = await keyed(client, "ann"), await keyed(client, "bob")
        before, environment = await bob.call("GET", "/settings"), {**os.environ}
        file = (tmp_path / "config.yaml").read_text()
        with structlog.testing.capture_logs() as lines:
            await ann.call("PUT", "/settings", json={
                "demo": {"token": "s3cret-s3cret"}, "api_keys": {"OPENAI_API_KEY": "sk-stolen"},
                "PATH": {"PATH": "/evil"}})
        shown = await ann.call("GET", "/settings")
        assert shown["demo"] == {"token": "***", "tone": "plain"}
        assert set(shown) == {"llm", "demo"}
        await ann.call("PUT", "/settings", json={"demo": {"token": "***"}})
        for body in ({"demo": {"token": "x" * 8193}}, {"demo": {"tone": "x" * 8193}}):
            status, _ = await raw(ann, "PUT", "/settings", json=body)
            assert status in (400, 413)
        assert await bob.call("GET", "/settings") == before
        assert ((tmp_path / "config.yaml").read_text(), {**os.environ}) == (file, environment)
        assert "s3cret-s3cret" not in repr(lines)
    assert b"s3cret-s3cret" not in bytes_below(tmp_path)


# -- D7: documents ----------------------------------------------------------------------------------------------------

async def test_d7_only_documents_are_read(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    (docs / "in").mkdir(parents=True)
    (tmp_path / "docs-private").mkdir()
    (docs / "one.md").write_text("# One")
    (docs / "large.md").write_text("x" * (2 * 1024 * 1024 + 1))
    for hidden in (docs / "key.txt", docs / ".hidden.md", tmp_path / "docs-private" / "x.md", tmp_path / "outer.md"):
        hidden.write_text("hidden words")
    (docs / "link.md").symlink_to(tmp_path / "outer.md")
    (docs / "linked").symlink_to(tmp_path / "docs-private")
    async with talking(tmp_path, management={"docs": "docs"}) as client:
        tree = repr(await client.call("GET", "/docs/structure"))
        assert "one.md" in tree
        for path in (
            "../docs-private/x.md", "..%2fdocs-private%2fx.md", "%2e%2e/docs-private/x.md", "in/../../outer.md",
            "in/%2e%2e/%2e%2e/outer.md", "/etc/passwd", "%2fetc%2fpasswd", "key.txt", ".hidden.md", "link.md",
            "linked/x.md", "linked%2fx.md", "large.md", "in", "one.md%00", "..%5cdocs-private%5cx.md",
        ):
            status, text = await raw(client, "GET", f"/docs/content/{path}")
            assert status in (400, 404, 413), path
            assert "hidden words" not in text


# -- D8: skills -------------------------------------------------------------------------------------------------------

def sly_zips() -> Iterator[bytes]:
    for name in ("../../evil.py", "/evil.py", "scripts/../../evil.py", "C:\\evil.py"):
        yield zipped({**FILES, name: b"x"})
    yield zipped({**FILES, **{f"resources/{number}.txt": b"x" for number in range(200)}})
    yield zipped({**FILES, "resources/bomb.bin": bytes(9 * 1024 * 1024)})
    made = BytesIO(zipped())
    link = zipfile.ZipInfo("scripts/link.py")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(made, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    yield made.getvalue()


def upload(content: bytes) -> aiohttp.FormData:
    form = aiohttp.FormData()
    form.add_field("file", BytesIO(content), filename="x.zip", content_type="application/zip")
    return form


async def test_d8_a_sly_zip_leaves_nothing_behind(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        before, files = await state(client), files_below(tmp_path)
        for content in sly_zips():
            status, _ = await raw(client, "POST", "/skills/upload?skill_name=sly", data=upload(content))
            assert status in (400, 413)
        for name in ("../sly", "a b", "1sly", ""):
            path = f"/skills/upload?skill_name={name.replace(' ', '%20')}"
            status, _ = await raw(client, "POST", path, data=upload(zipped()))
            assert status == 400
        assert (await state(client), files_below(tmp_path)) == (before, files)


async def test_d8_a_skill_is_its_users_and_its_scripts_do_not_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    script = f"open({str(mark)!r}, 'w')".encode()
    async with talking(tmp_path, auth="keys") as client:
        ann, bob = await keyed(client, "ann"), await keyed(client, "bob")
        content = zipped({**FILES, "scripts/tidy.py": script, "scripts/__init__.py": script})
        status, text = await raw(ann, "POST", "/skills/upload?skill_name=tidy", data=upload(content))
        assert status == 200, text
        await ann.call("POST", "/skills/install", json={"skill_name": "tidy", "agent_id": "demo"})
        async with ann.chat() as chat:
            await chat.run("hello", user_id="ann")
        scripts = "/skills/file/tidy/scripts"
        for path in ("/skills/detail/tidy", f"{scripts}/tidy.py", f"{scripts}/%2e%2e/SKILL.md",
                     f"{scripts}/..%2fSKILL.md", f"{scripts}/%2fetc%2fpasswd"):
            status, text = await raw(bob, "GET", path)
            assert status in (400, 404)
            if "%" in path:
                status, text = await raw(ann, "GET", path)
                assert status in (400, 404)
        assert await bob.call("GET", "/skills/global") == {"total": 0, "skills": []}
        assert await bob.call("GET", "/skills/instance/demo") == {"total": 0, "skills": []}
        assert not mark.exists()


# -- D9: reload -------------------------------------------------------------------------------------------------------

async def test_d9_only_admins_reload_and_once_a_second(tmp_path: Path) -> None:
    async with talking_reloadable(tmp_path, auth="keys", admins=["root"]) as client:
        ann, root = await keyed(client, "ann"), await keyed(client, "root")
        changed = {"demo": {"backend": "demo", "title": "Anew"}}
        client.write_settings(auth="keys", admins=["root"], agents=changed)
        for path in ("/agents/reload", "/agents/demo/reload"):
            await ann.call("POST", path, status=403)
            status, _ = await raw(client, "POST", path)
            assert status == 401
        assert (await ann.call("GET", "/agents"))["agents"][0]["name"] != "Anew"
        done = await asyncio.gather(*(raw(root, "POST", "/agents/reload") for _ in range(5)))
        assert sorted(status for status, _ in done) == [200, 429, 429, 429, 429]
        assert (await ann.call("GET", "/agents"))["agents"][0]["name"] == "Anew"
        client.write_settings(auth="keys", admins=["root"])
        await root.call("POST", "/agents/demo/reload", status=429)
        assert (await ann.call("GET", "/agents"))["agents"][0]["name"] == "Anew"


# -- D10: memories and tasks ------------------------------------------------------------------------------------------

async def test_d10_nobody_reads_or_wipes_others_by_naming_them(tmp_path: Path) -> None:
    async with talking(tmp_path, auth="keys") as client:
        ann, bob = await keyed(client, "ann"), await keyed(client, "bob")
        message = [{"role": "user", "content": "My safe opens with 4711."}]
        added = await ann.call("POST", "/mem0/add", json={"user_id": "ann", "messages": message})
        gateway = client.served.gateway
        task = await Schedules(gateway.resources, gateway.runtime.clock).add("ann", ScheduledTask(
            title="Brief", prompt="hello", cron="0 9 * * *", agent="demo"))
        for who in ("ann", "", "local", "*", "%25"):
            for status, text in (
                await raw(bob, "GET", f"/mem0/user/{who or 'x'}"),
                await raw(bob, "POST", "/mem0/search", json={"user_id": who or "x", "query": "safe"}),
                await raw(bob, "DELETE", f"/mem0/user/{who or 'x'}"),
            ):
                assert status in (200, 400, 403, 404)
                assert "4711" not in text
        await bob.call("DELETE", f"/mem0/memory/{added['results'][0]['id']}", status=404)
        for method, path in (("GET", ""), ("POST", "/run"), ("POST", "/batch")):
            await bob.call(method, f"/tasks/{task.task_id}{path}", json={}, status=404)
        await bob.call("POST", f"/scheduled-tasks/{task.task_id}/pause", status=404)
        for bounds in ({"max_concurrent": 21}, {"max_concurrent": 0}, {"since_hours": 169}):
            for path in ("/mem0/batch-update", "/tasks/mem0_update/batch"):
                await bob.call("POST", path, json=bounds, status=400)
        assert "4711" in repr(await ann.call("GET", "/mem0/user/ann"))
        assert (await ann.call("GET", f"/scheduled-tasks/{task.task_id}"))["run_count"] == 0


async def test_d10_a_run_is_a_turn_and_has_its_limits(tmp_path: Path) -> None:
    async with talking(tmp_path, auth="keys", limits={"per_key": {"turns": 1}}) as client:
        ann = await keyed(client, "ann")
        gateway = client.served.gateway
        tasks = [await Schedules(gateway.resources, gateway.runtime.clock).add("ann", ScheduledTask(
            title="Brief", prompt="/slow 1000", cron="0 9 * * *", agent="demo")) for _ in range(2)]
        first = await ann.call("POST", f"/tasks/{tasks[0].task_id}/run", json={})
        assert first["status"] == "running"
        await ann.call("POST", f"/tasks/{tasks[0].task_id}/run", json={}, status=409)
        second = await ann.call("POST", f"/tasks/{tasks[1].task_id}/run", json={})
        assert (second["status"], second["result"]) == ("failed", None)
        assert "at once" in second["error"]


# -- D11: strangers and pages of other sites --------------------------------------------------------------------------

WRITES = [
    ("POST", "/agents", TUTOR), ("POST", "/tools/register", {"name": "x", "description": "x", "input_schema": OBJECT}),
    ("POST", "/tools/execute", {"tool_name": "calc", "input": {"expression": "1"}}),
    ("POST", "/tools/calc/invoke", {"expression": "1"}), ("POST", "/agents/reload", {}),
    ("POST", "/tools/mcp/register", {"server_name": "x", "server_url": "https://x.example.com/"}),
    ("PUT", "/settings", {"llm": {"COT_AGENT_MODEL": "demo-1"}}),
    ("POST", "/skills/install", {"skill_name": "x", "agent_id": "demo"}),
    ("POST", "/mem0/add", {"user_id": "local", "messages": [{"role": "user", "content": "x"}]}),
    ("POST", "/tasks/mem0_update/run", {}), ("DELETE", "/mem0/user/local", None), ("DELETE", "/agents/tutor", None),
]


async def test_d11_pages_of_other_sites_change_nothing(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        before = await state(client)
        for method, path, body in WRITES:
            text = json.dumps(body)
            for headers in (
                {"Origin": "https://evil.example", "Content-Type": "application/json"},
                {"Origin": "null", "Content-Type": "application/json"},
                {"Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"},
            ):
                status, _ = await raw(client, method, path, data=text, headers=headers)
                assert status == 403, (method, path, headers)
            if body is not None:
                near = {"Origin": "http://localhost:5174", "Content-Type": "text/plain"}
                status, _ = await raw(client, method, path, data=text, headers=near)
                assert status in (400, 403, 415), (method, path)
        assert await state(client) == before


async def test_d11_whoever_has_no_key_changes_and_reads_nothing(tmp_path: Path) -> None:
    async with talking(tmp_path, auth="keys") as client:
        ann = await keyed(client, "ann")
        before = await state(ann)
        reads = [("GET", path, None) for path in (
            "/agents", "/settings", "/tools", "/tools/mcp", "/docs/structure", "/skills/global", "/tasks")]
        for method, path, body in [*WRITES, *reads]:
            status, _ = await raw(client, method, path, json=body)
            assert status == 401, (method, path)
        assert await state(ann) == before
