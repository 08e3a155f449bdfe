"""ZenFlux's MCP servers over HTTP: one's own register, which agents have them, and real servers in conversations."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.backends.mcp_over_http import mcp_over_http
from tests.support.backends.model_services import calls, says
from tests.support.client.byte_server import serving as model_serving
from tests.support.dialects.zenflux.client import Client, keyed, talking

URL = "https://mcp.example.com/mcp"
NOTION = {"server_name": "notion", "server_url": URL, "description": "Notes"}
TUTOR = {"agent_id": "tutor", "name": "Tutor", "prompt": "You teach."}
SHOWN = {
    "id", "server_name", "original_name", "server_url", "auth_type", "auth_env", "agent_id", "is_global", "is_active",
    "capability", "description", "registered_tools", "created_at", "updated_at", "last_connected_at", "metadata",
}


async def register(client: Client, status: int = 200, **fields: Any) -> Any:
    return await client.call("POST", "/tools/mcp/register", json={**NOTION, **fields}, status=status)


def all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_the_register(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        assert await register(client) == {"server_name": "notion", "registered_tools": [], "failed_tools": []}
        [listed] = (await client.call("GET", "/tools/mcp"))["servers"]
        assert set(listed) == SHOWN | {"is_connected", "connected_tools_count"}
        assert (listed["server_url"], listed["is_global"], listed["agent_id"]) == (URL, True, None)
        assert listed["created_at"].endswith("Z")
        one = await client.call("GET", "/tools/mcp/notion")
        assert (one["connected_tools"], one["description"]) == ([], "Notes")
        changed = await client.call("PUT", "/tools/mcp/notion", json={"is_active": False})
        assert (changed["is_active"], changed["description"], set(changed)) == (False, "Notes", SHOWN)
        assert (await client.call("GET", "/tools/mcp"))["total"] == 0
        assert (await client.call("GET", "/tools/mcp?include_inactive=true"))["total"] == 1
        assert await client.call("DELETE", "/tools/mcp/notion") == {"server_name": "notion"}
        for method in ("GET", "PUT", "DELETE"):
            await client.call(method, "/tools/mcp/notion", json={}, status=404)


@pytest.mark.parametrize(("fields", "status"), [
    ({"server_name": None}, 400), ({"server_name": "a b"}, 400), ({"server_name": "../x"}, 400),
    ({"server_name": "register"}, 400), ({"server_name": "available"}, 400), ({"server_url": None}, 400),
    ({"server_url": "ftp://x.example.com"}, 400), ({"server_url": "https://u:p@x.example.com/"}, 400),
    ({"auth_type": "magic"}, 400), ({"tool_filter": "add"}, 400), ({"auth_config": {"token_env": "PATH"}}, 400),
    ({"auth_env": "HOME"}, 400), ({"auth_config": {"token": "a\nb"}}, 400),
    ({"command": "touch", "args": ["/tmp/x"]}, 403), ({"command": "sh"}, 403), ({"args": []}, 403),
    ({"server_url": "http://127.0.0.1:1/mcp"}, 403), ({"server_url": "http://169.254.169.254/"}, 403),
    ({"server_url": "http://localhost/"}, 403),
])
async def test_what_is_refused_is_not_stored(tmp_path: Path, fields: dict[str, Any], status: int) -> None:
    async with talking(tmp_path) as client:
        assert await register(client, status, **fields)
        assert (await client.call("GET", "/tools/mcp?include_inactive=true"))["servers"] == []


async def test_refusals_of_a_change_and_duplicates(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        await register(client)
        assert await register(client, 409)
        for fields, status in (({"server_url": "http://10.0.0.1/"}, 403), ({"command": "x"}, 403),
                               ({"auth_env": "PATH"}, 400), ({"is_active": "no"}, 400), ({"server_url": "x"}, 400)):
            assert await client.call("PUT", "/tools/mcp/notion", json=fields, status=status)
        assert (await client.call("GET", "/tools/mcp/notion"))["server_url"] == URL


async def test_tokens_are_never_shown(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        await register(client, auth_type="bearer", auth_config={"token": "top-secret-token"})
        await client.call("POST", "/agents/demo/mcp/notion")
        for path in ("/tools/mcp", "/tools/mcp/notion", "/agents/demo/mcp", "/agents/demo/mcp/notion",
                     "/agents/demo/mcp/available", "/agents/demo"):
            assert "top-secret-token" not in repr(await client.call("GET", path))
        talk = await client.call("POST", "/conversations")
        view = client.served.gateway.table.get(talk["id"]).view
        assert view.settings.mcp_headers == {URL: "Authorization: Bearer top-secret-token"}


async def test_the_servers_of_an_agent(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        await client.call("POST", "/agents", json=TUTOR)
        await register(client)
        for agent in ("demo", "tutor"):
            at = f"/agents/{agent}/mcp"
            assert await client.call("GET", at) == {"agent_id": agent, "total": 0, "mcps": []}
            [offered] = (await client.call("GET", f"{at}/available"))["mcps"]
            assert offered["is_enabled_by_agent"] is False
            made = await client.call("POST", f"{at}/notion", json={"metadata": {"a": 1}})
            assert (set(made), made["agent_id"], made["is_global"], made["metadata"]) == (
                SHOWN, agent, False, {"a": 1})
            assert await client.call("POST", f"{at}/notion", status=409)
            known = await client.call("GET", f"{at}/available")
            assert (known["enabled_count"], known["mcps"][0]["is_enabled_by_agent"]) == (1, True)
            assert (await client.call("GET", f"{at}/available?include_enabled=false"))["mcps"] == []
            talk = await client.call("POST", f"/conversations?agent_id={agent}")
            view = client.served.gateway.table.get(talk["id"]).view
            assert [one["url"] for one in view.settings.mcp_servers] == [URL]
            assert (await client.call("PUT", f"{at}/notion", json={"is_active": False}))["is_active"] is False
            assert (await client.call("GET", at))["total"] == 0
            assert (await client.call("GET", f"{at}?include_inactive=true"))["total"] == 1
            assert await client.call("PUT", f"{at}/notion", json={"auth_env": "PATH"}, status=400)
            assert await client.call("DELETE", f"{at}/notion") == {"agent_id": agent, "server_name": "notion"}
            for method in ("GET", "PUT", "DELETE"):
                await client.call(method, f"{at}/notion", json={}, status=404)
        assert (await client.call("GET", "/tools/mcp"))["total"] == 1


async def test_unknown_agents_and_servers(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        await register(client)
        for method, path in (("GET", ""), ("GET", "/available"), ("POST", "/notion"), ("PUT", "/notion"),
                             ("DELETE", "/notion")):
            said = await client.call(method, f"/agents/nobody/mcp{path}", json={}, status=404)
            assert "agent" in said
        assert "MCP server" in await client.call("POST", "/agents/demo/mcp/nothing", status=404)
        assert await client.call("POST", "/agents/demo/mcp/notion", json={"auth_env": "PATH"}, status=400)
        assert (await client.call("GET", "/agents/demo/mcp"))["total"] == 0


async def test_servers_of_config_yaml_are_shown_and_fixed(tmp_path: Path) -> None:
    house = {"backend": "openai", "settings": {
        "url": "http://127.0.0.1:9", "model": "m", "mcp": {"house": {"url": "http://127.0.0.1:9/secret-path"}}}}
    async with talking(tmp_path, agents={"house": house}) as client:
        shown = await client.call("GET", "/agents/house/mcp")
        assert [(one["server_name"], one["server_url"]) for one in shown["mcps"]] == [("house", "")]
        assert [one["server_name"] for one in (await client.call("GET", "/tools/mcp"))["servers"]] == ["house"]
        for method, path in (("PUT", "/tools/mcp/house"), ("DELETE", "/tools/mcp/house"),
                             ("PUT", "/agents/house/mcp/house"), ("DELETE", "/agents/house/mcp/house")):
            assert "config.yaml" in await client.call(method, path, json={}, status=403)
        assert await register(client, 403, server_name="house")


async def test_they_are_ones_own_and_survive_a_restart(tmp_path: Path) -> None:
    async with talking(tmp_path, auth="keys", log="sqlite") as client:
        ann, bob = await keyed(client, "ann"), await keyed(client, "bob")
        await register(ann, auth_type="bearer", auth_config={"token": "top-secret-token"})
        await ann.call("POST", "/agents/demo/mcp/notion")
        assert (await bob.call("GET", "/tools/mcp"))["total"] == 0
        assert (await bob.call("GET", "/agents/demo/mcp"))["total"] == 0
        await bob.call("POST", "/agents/demo/mcp/notion", status=404)
        await bob.call("DELETE", "/tools/mcp/notion", status=404)
        begun = (await ann.call("POST", "/conversations"))["id"]
        key = ann.headers["Authorization"].removeprefix("Bearer ")
    assert b"top-secret-token" not in all_bytes(tmp_path)
    async with talking(tmp_path, auth="keys", log="sqlite") as client:
        again = Client(client.served, key)
        assert (await again.call("GET", "/agents/demo/mcp"))["total"] == 1
        await again.call("GET", f"/conversations/{begun}")
        talk = await again.call("POST", "/conversations")
        view = client.served.gateway.table.get(talk["id"]).view
        assert view.settings.mcp_headers == {URL: "Authorization: Bearer top-secret-token"}


@pytest.mark.parametrize("agent", ["llm", "tutor"])
async def test_a_real_server_is_used_in_a_conversation(tmp_path: Path, agent: str) -> None:
    async with mcp_over_http() as mine, model_serving(calls("add", '{"a": 2, "b": 3}'), says("It is 5.")) as model:
        agents = {"llm": {"backend": "openai", "settings": {"url": model.url, "model": "m"}}}
        async with talking(tmp_path, agents=agents, outbound={"allow": ["127.0.0.1"]}) as client:
            await client.call("POST", "/agents", json=TUTOR)
            await register(client, server_url=mine.url, auth_type="api_key", auth_config={"api_key": "k3y"})
            await client.call("POST", f"/agents/{agent}/mcp/notion")
            async with client.chat() as chat:
                begun = await chat.send("How much?", agent_id=agent)
                asked = await chat.asked()
                await client.call("POST", f"/human-confirmation/{asked['request_id']}", json={"response": "approve"})
                run = await chat.over(begun["session_id"])
            assert run.words("tool_result") == ["5"]
            assert [tool["function"]["name"] for tool in model.asked[0].json["tools"]] == ["add", "clock"]
            assert {one.get("x-api-key") for one in mine.headers} == {"k3y"}


# -- what servers offer -----------------------------------------------------------------------------------------------

async def test_what_a_real_server_offers_is_shown(tmp_path: Path) -> None:
    async with mcp_over_http() as mine, talking(tmp_path, outbound={"allow": ["127.0.0.1"]}) as client:
        await register(client, server_url=mine.url, auth_type="bearer", auth_config={"token": "t0ken"})
        await register(client, server_name="gone", server_url="http://127.0.0.1:9/mcp")
        assert mine.headers == [], "registering connects to nothing"
        shown = {one["server_name"]: one for one in (await client.call("GET", "/tools/mcp"))["servers"]}
        assert {name: (one["is_connected"], one["connected_tools_count"]) for name, one in shown.items()} == {
            "notion": (True, 2), "gone": (False, 0)}
        assert shown["notion"]["last_connected_at"].endswith("Z")
        assert shown["gone"]["last_connected_at"] is None
        one = await client.call("GET", "/tools/mcp/notion")
        assert (one["is_connected"], one["connected_tools"]) == (True, ["add", "clock"])
        assert {one.get("authorization") for one in mine.headers} == {"Bearer t0ken"}
        tools = {one["name"]: one for one in (await client.call("GET", "/tools?tool_type=mcp"))["tools"]}
        assert set(tools) == {"notion:add", "notion:clock"}
        assert (await client.call("GET", "/tools/notion:add"))["definition"] == tools["notion:add"]
        add = tools["notion:add"]
        assert (add["status"], add["requires_confirmation"], add["mcp_config"], add["agents"]) == (
            "available", True, {"server_name": "notion"}, [])
        assert set(add["input_schema"]["required"]) == {"a", "b"}
        [schema] = (await client.call("GET", "/tools/schemas?tool_names=notion:add"))["tools"]
        assert schema["input_schema"] == add["input_schema"]
        assert await client.call("DELETE", "/tools/notion:add", status=403)
        body = {"tool_name": "notion:add", "input": {"a": 1, "b": 2}}
        assert "permission" in await client.call("POST", "/tools/execute", json=body, status=403)
        assert await client.call("POST", "/tools/notion:add/invoke", json={"a": "x", "b": 2}, status=400)
        await client.call("PUT", "/tools/mcp/notion", json={"is_active": False})
        assert (await client.call("GET", "/tools?tool_type=mcp"))["total"] == 0
        assert (await client.call("GET", "/tools/mcp/notion"))["is_connected"] is False


async def test_tools_of_a_server_that_has_gone_are_unavailable(tmp_path: Path) -> None:
    async with talking(tmp_path, outbound={"allow": ["127.0.0.1"]}) as client:
        async with mcp_over_http() as mine:
            await register(client, server_url=mine.url)
            definition = {"name": "notion:other", "description": "x", "input_schema": {"type": "object"}}
            await client.call("POST", "/tools/register", json={
                "definition": {**definition, "tool_type": "mcp", "mcp_config": {"server_name": "notion"}}})
            known = await client.call("GET", "/tools?tool_type=mcp")
            assert {one["name"]: one["status"] for one in known["tools"]} == {
                "notion:add": "available", "notion:clock": "available", "notion:other": "unavailable"}
        await asyncio.sleep(60)
        known = await client.call("GET", "/tools?tool_type=mcp")
        assert {one["status"] for one in known["tools"]} == {"unavailable"}
        assert (await client.call("GET", "/tools?status=unavailable"))["total"] == 3
        shown = await client.call("GET", "/tools/mcp/notion")
        assert (shown["is_connected"], shown["connected_tools"], shown["connected_tools_count"]) == (False, [], 0)
        assert shown["last_connected_at"] is not None
        names = [one["name"] for one in (await client.call("GET", "/tools/schemas"))["tools"]]
        assert not [name for name in names if name.startswith("notion")]


async def test_a_registered_tool_of_a_server_is_used_in_a_conversation(tmp_path: Path) -> None:
    """No agent has the server: the conversation has the one tool, with the key of the server."""
    async with mcp_over_http() as mine, model_serving(calls("add", '{"a": 2, "b": 3}'), says("It is 5.")) as model:
        agents = {"llm": {"backend": "openai", "settings": {"url": model.url, "model": "m"}}}
        async with talking(tmp_path, agents=agents, outbound={"allow": ["127.0.0.1"]}) as client:
            await register(client, server_url=mine.url, auth_type="api_key", auth_config={"api_key": "k3y"})
            await client.call("POST", "/tools/register", json={
                "name": "notion:add", "description": "Adds.", "input_schema": {"type": "object"}, "tool_type": "mcp",
                "mcp_config": {"server_name": "notion"}})
            async with client.chat() as chat:
                begun = await chat.send("How much?")
                asked = await chat.asked()
                await client.call("POST", f"/human-confirmation/{asked['request_id']}", json={"response": "approve"})
                run = await chat.over(begun["session_id"])
            assert run.words("tool_result") == ["5"]
            assert [tool["function"]["name"] for tool in model.asked[0].json["tools"]] == ["add"]
            assert {one.get("x-api-key") for one in mine.headers} == {"k3y"}


async def test_listed_tools_of_the_operators_servers_run(tmp_path: Path) -> None:
    async with mcp_over_http() as house:
        servers = {"house": {"url": house.url, "permissions": {"add": "allow"}}}
        agents = {"llm": {"backend": "openai", "settings": {"url": "http://127.0.0.1:9", "model": "m", "mcp": servers}}}
        listed = {"execute": ["house:add", "house:clock"]}
        async with talking(tmp_path, agents=agents, management=listed) as client:
            tools = {one["name"]: one for one in (await client.call("GET", "/tools?tool_type=mcp"))["tools"]}
            assert {name: (one["requires_confirmation"], one["agents"]) for name, one in tools.items()} == {
                "house:add": (False, ["llm"]), "house:clock": (True, ["llm"])}
            done = await client.call("POST", "/tools/house:add/invoke", json={"a": 2, "b": 3})
            assert (done["status"], done["output"]) == ("success", "5")
            assert await client.call("POST", "/tools/house:clock/invoke", json={}, status=403)
            assert await client.call("POST", "/tools/house:add/invoke", json={"a": 2}, status=400)
            [shown] = (await client.call("GET", "/tools/mcp"))["servers"]
            assert (shown["is_connected"], shown["connected_tools_count"], shown["server_url"]) == (True, 2, "")
            assert await client.call("POST", "/tools/register", json={
                "name": "house:add", "description": "x", "input_schema": {"type": "object"}}, status=403)
            assert await client.call("DELETE", "/tools/house:add", status=403)
