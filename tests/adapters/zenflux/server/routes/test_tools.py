"""ZenFlux's tools over HTTP: a list, schemas, one's own definitions, and what runs without a conversation."""

import json
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.support.dialects.zenflux.client import API, Client, keyed, talking

SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
LOOKUP = {"name": "lookup", "description": "Looks up a word.", "input_schema": SCHEMA}
SHOWN = {
    "name", "description", "tool_type", "return_mode", "input_schema", "output_schema", "mcp_config", "implementation",
    "keywords", "examples", "category", "requires_confirmation", "rate_limit", "timeout", "status", "agents",
}


async def register(client: Client, status: int = 200, /, **fields: Any) -> Any:
    body = {"definition": {**LOOKUP, **fields.pop("definition", {})}, **fields}
    return await client.call("POST", "/tools/register", json=body, status=status)


async def execute(client: Client, name: str, status: int = 200, /, **body: Any) -> Any:
    return await client.call("POST", "/tools/execute", json={"tool_name": name, **body}, status=status)


async def test_tools_are_paged_and_filtered(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        await register(client, definition={"keywords": ["Dictionary"], "category": "words"})
        whole = await client.call("GET", "/tools")
        assert (whole["page"], whole["page_size"], whole["total"]) == (1, 20, len(whole["tools"]))
        names = [one["name"] for one in whole["tools"]]
        assert {"clock", "calc", "search", "lookup"} <= set(names)
        assert all(set(one) == SHOWN for one in whole["tools"])
        pages = [await client.call("GET", f"/tools?page={page}&page_size=2") for page in (1, 2)]
        assert [one["name"] for page in pages for one in page["tools"]] == names[:4]
        assert (await client.call("GET", "/tools?page=1000"))["tools"] == []
        for query in ("keyword=dictionARY", "category=words", "keyword=looks"):
            found = await client.call("GET", f"/tools?{query}")
            assert ([one["name"] for one in found["tools"]], found["total"]) == (["lookup"], 1)
        assert (await client.call("GET", "/tools?tool_type=mcp"))["total"] == 0
        assert (await client.call("GET", "/tools?status=available"))["total"] == len(names)
        for query in ("page=0", "page_size=101", "page=x", "tool_type=x", "status=x"):
            await client.call("GET", f"/tools?{query}", status=400)


async def test_schemas_are_as_claude_takes_them(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        await register(client)
        await register(client, definition={"name": "off"}, enabled=False)
        shown = await client.call("GET", "/tools/schemas?tool_names=lookup,calc,nothing,off")
        assert [set(one) for one in shown["tools"]] == [{"name", "description", "input_schema"}] * 2
        assert shown["tools"][1] == LOOKUP
        assert "off" not in [one["name"] for one in (await client.call("GET", "/tools/schemas"))["tools"]]


async def test_a_tool_is_shown_with_its_statistics(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        await execute(client, "calc", input={"expression": "1 + 1"})
        await execute(client, "calc", input={"expression": "1 / 0"})
        shown = await client.call("GET", "/tools/calc")
        assert (shown["definition"]["name"], shown["name"], shown["implementation"]) == ("calc", "calc", None)
        assert shown["statistics"] == {
            "total_invocations": 2, "success_count": 1, "failure_count": 1, "success_rate": "50.0%"}
        await client.call("GET", "/tools/nothing", status=404)


# -- one's own --------------------------------------------------------------------------------------------------------

async def test_a_tool_is_registered_and_deleted(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        made = await register(client)
        assert (made["tool_name"], made["tool_definition"]["requires_confirmation"]) == ("lookup", True)
        assert await register(client, 409)
        await register(client, replace_existing=True, definition={"description": "New."})
        assert (await client.call("GET", "/tools/lookup"))["description"] == "New."
        bare = await client.call("POST", "/tools/register", json={**LOOKUP, "name": "bare"})
        assert bare["tool_name"] == "bare"
        assert await client.call("DELETE", "/tools/lookup") == {"tool_name": "lookup"}
        await client.call("DELETE", "/tools/lookup", status=404)
        await client.call("DELETE", "/tools/calc", status=403)


@pytest.mark.parametrize(("definition", "status"), [
    ({"name": None}, 400), ({"name": "a b"}, 400), ({"name": "../x"}, 400), ({"name": "schemas"}, 400),
    ({"name": "mcp"}, 400), ({"description": None}, 400), ({"input_schema": None}, 400), ({"input_schema": "x"}, 400),
    ({"input_schema": {"type": "nonsense"}}, 400), ({"tool_type": "mcp"}, 400), ({"tool_type": "code"}, 400),
    ({"mcp_config": {"server_name": "nobody"}}, 400), ({"name": "calc"}, 403),
    ({"implementation": {"module": "os", "class": "system"}}, 403), ({"implementation": {"module": "os"}}, 403),
    ({"implementation": "os:system"}, 403), ({"input_schema": {"type": "object", "description": "x" * 66_000}}, 413),
])
async def test_what_is_refused_is_not_stored(tmp_path: Path, definition: dict[str, Any], status: int) -> None:
    async with talking(tmp_path) as client:
        before = await client.call("GET", "/tools")
        assert await register(client, status, definition=definition)
        assert await client.call("GET", "/tools") == before


async def test_a_tool_of_a_registered_server(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        server = {"server_name": "notion", "server_url": "https://mcp.example.com/mcp"}
        await client.call("POST", "/tools/mcp/register", json=server)
        await register(client, definition={
            "name": "notion:add", "tool_type": "mcp", "mcp_config": {"server_name": "notion"}})
        [shown] = (await client.call("GET", "/tools?tool_type=mcp"))["tools"]
        assert (shown["name"], shown["mcp_config"]) == ("notion:add", {"server_name": "notion"})
        assert await execute(client, "notion:add", 403, input={"word": "x"})


async def test_registered_tools_are_offered_in_new_conversations(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        await register(client)
        begun = await chat.send('/tool lookup {"word": "treaty"}')
        asked = await chat.asked()
        await client.call("POST", f"/human-confirmation/{asked['request_id']}", json={"response": "An agreement."})
        run = await chat.over(begun["session_id"])
        assert "An agreement." in run.words("tool_result")[0]
        talk = await client.call("POST", "/conversations")
        view = client.served.gateway.table.get(talk["id"]).view
        assert [tool.name for tool in view.settings.client_tools] == ["lookup"]


async def test_they_are_ones_own_and_survive_a_restart(tmp_path: Path) -> None:
    async with talking(tmp_path, auth="keys", log="sqlite") as client:
        ann, bob = await keyed(client, "ann"), await keyed(client, "bob")
        await register(ann)
        for method in ("GET", "DELETE"):
            await bob.call(method, "/tools/lookup", status=404)
        assert "lookup" not in [one["name"] for one in (await bob.call("GET", "/tools"))["tools"]]
        key = ann.headers["Authorization"].removeprefix("Bearer ")
    async with talking(tmp_path, auth="keys", log="sqlite") as client:
        again = Client(client.served, key)
        assert (await again.call("GET", "/tools/lookup"))["input_schema"] == SCHEMA


# -- running ----------------------------------------------------------------------------------------------------------

async def test_harmless_tools_run(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        with structlog.testing.capture_logs() as lines:
            done = await execute(client, "calc", input={"expression": "40 + 2"})
        assert (done["status"], done["output"], done["error"], done["tool_name"]) == ("success", "42", None, "calc")
        assert done["invocation_id"].startswith("inv_")
        assert "40 + 2" not in repr(lines)
        failed = await execute(client, "calc", input={"expression": "1 / 0"})
        assert (failed["status"], failed["output"], failed["error_code"]) == ("failed", None, "EXECUTION_ERROR")
        invoked = await client.call("POST", "/tools/calc/invoke", json={"expression": "6 * 7"})
        assert invoked["output"] == "42"
        assert (await client.call("POST", "/tools/clock/invoke"))["status"] == "success"


async def test_what_does_not_run(tmp_path: Path) -> None:
    async with talking(tmp_path, management={"execute": ["clock"]}) as client:
        await register(client)
        for name, input, status in (
            ("nothing", {}, 404), ("../x", {}, 404), ("calc", {}, 400), ("calc", {"expression": 5}, 400),
            ("calc", {"expression": "1"}, 403), ("search", {"query": "x"}, 403), ("lookup", {"word": "x"}, 403),
        ):
            assert await execute(client, name, status, input=input)
            if "/" not in name:
                assert await client.call("POST", f"/tools/{name}/invoke", json=input, status=status)
        for body in ({}, {"tool_name": 5}, {"tool_name": "clock", "input": []}, {"tool_name": "clock", "timeout": 0}):
            assert await client.call("POST", "/tools/execute", json=body, status=400)
        assert (await execute(client, "clock"))["status"] == "success"


async def test_a_tool_with_a_permission_does_not_run(tmp_path: Path) -> None:
    agents = {"demo": {"backend": "demo", "tools": [{"name": "calc", "permission": "ask"}]}}
    async with talking(tmp_path, agents=agents) as client:
        assert (await client.call("GET", "/tools/calc"))["requires_confirmation"] is True
        assert await execute(client, "calc", 403, input={"expression": "1"})
        assert await execute(client, "calc", 400, input={"expression": 1})


async def test_a_run_as_a_stream(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        body = {"tool_name": "search", "input": {"query": "stone"}, "stream": True}
        url = client.served.url(f"{API}/tools/execute")
        async with client.served.http.post(url, json=body) as answer:
            assert answer.headers["Content-Type"].startswith("text/event-stream")
            invocation = answer.headers["X-Invocation-Id"]
            chunks = [json.loads(line[6:]) for line in (await answer.text()).splitlines() if line]
        assert {one["invocation_id"] for one in chunks} == {invocation}
        assert [one["chunk_index"] for one in chunks] == list(range(len(chunks)))
        assert [one["chunk_type"] for one in chunks][-2:] == ["data", "done"]
        assert chunks[-1]["content"] == {"total_chunks": len(chunks) - 1}
        assert "Rosetta" in chunks[-2]["content"]
        assert await execute(client, "nothing", 404, stream=True)
