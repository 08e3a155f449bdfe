"""MCP servers, real ones: their tools are the agent's, whatever becomes of the processes behind them."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog
import uvicorn

import gateway.model as m
from gateway.backends.acp.mcp_relay import McpRelay
from gateway.backends.mcp.client import McpServerSettings, check_installed, is_connection_lost, mcp_result_content
from gateway.backends.mcp.tool_servers import McpToolServer, McpToolServers
from gateway.backends.tools import ToolCallResult
from gateway.client import AddressPolicy
from gateway.errors import Invalid
from tests.support.backends.mcp_over_http import mcp_over_http
from tests.support.backends.model_services import calls, made, says, talked, turn_of
from tests.support.backends.turn_driver import FakeTurn
from tests.support.gateway_server import until

SCRIPTS = Path(__file__).parents[2] / "support" / "backends"
SECRET = "an-mcp-secret-of-some-length"
STDIO = {"command": sys.executable, "args": [str(SCRIPTS / "mcp_server.py")], "permission": "allow"}
PLAIN = {"command": sys.executable, "args": ["-I", "-S", str(SCRIPTS / "plain_mcp_server.py")], "permission": "allow"}


@asynccontextmanager
async def server_over_http() -> AsyncIterator[tuple[str, Callable[[], None]]]:
    """The address of a server over HTTP in this loop, and how to have it break off."""
    from tests.support.backends.mcp_server import server

    config = uvicorn.Config(server.streamable_http_app(), port=4711, log_level="error", timeout_graceful_shutdown=1)
    listening = uvicorn.Server(config)
    serving = asyncio.create_task(listening._serve())
    await until(lambda: listening.started)

    def break_off() -> None:
        for door in listening.servers:
            door.close()
        for connection in listening.server_state.connections:
            connection.transport.abort()  # type: ignore[union-attr]
        listening.should_exit = True

    try:
        yield "http://127.0.0.1:4711/mcp", break_off
    finally:
        listening.should_exit = True
        await serving


@asynccontextmanager
async def server_of(base: Path = Path(), **settings: Any) -> AsyncIterator[McpToolServer]:
    server = McpToolServer("mine", McpServerSettings.model_validate(settings), base)
    try:
        yield server
    finally:
        await server.close()


async def called(server: McpToolServer, name: str, input: dict[str, Any] | None = None) -> ToolCallResult:
    offered, notice = await server.list_tools()
    assert notice is None, notice
    [tool] = [one.tool for one in offered if one.spec.name == name]
    async with asyncio.timeout(60):
        return await tool.run(input or {}, lambda text: None)


# -- one server -------------------------------------------------------------------------------------------------------

async def test_the_tools_of_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOUSE_SECRET", "nobody's business")
    folder = tmp_path / "here"
    folder.mkdir()
    async with server_of(folder, **STDIO, env={"MCP_SECRET": SECRET}) as server:
        offered, _ = await server.list_tools()
        specs = {one.spec.name: one.spec for one in offered}
        assert (specs["add"].title, specs["add"].description) == ("Addition", "Adds two numbers.")
        assert set(specs["add"].parameters["properties"]) == {"a", "b"}
        assert await called(server, "add", {"a": 1, "b": 2}) == ToolCallResult(content="3")
        assert str((await called(server, "who.am.i")).content).split()[1:] == ["here", "***", "None"]
        wrong = await called(server, "add", {"a": "x"})
        assert wrong.is_error and "b" in str(wrong.content)
        failed = await called(server, "fail")
        assert failed.is_error and "no good, ***" in str(failed.content)
        seen = await called(server, "picture")
        assert isinstance(seen.content, tuple) and isinstance(seen.content[0], m.ImagePart)
        assert seen.content[0].url.startswith("data:image/png;base64,") and seen.content[1] == m.TextPart(text="seen")


async def test_a_server_that_dies_is_started_again() -> None:
    with structlog.testing.capture_logs() as lines:
        async with server_of(**PLAIN) as server:
            found = await asyncio.gather(*(called(server, "who.am.i") for _ in range(5)))
            [first] = {str(one.content).split()[0] for one in found}  # many calls at once start one server
            died = await called(server, "die")
            assert died.is_error and "die failed" in str(died.content)
            second = str((await called(server, "who.am.i")).content).split()[0]
            os.kill(int(second), signal.SIGKILL)
            assert server._life is not None
            async with asyncio.timeout(60):
                await server._life._gone.wait()
            third = str((await called(server, "who.am.i")).content).split()[0]
            assert len({first, second, third}) == 3
    assert {"event": "mcp_server_stderr", "server": "mine", "line": "dying now", "log_level": "info"} in lines
    for pid in (first, second, third):
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


async def test_the_tools_of_an_address() -> None:
    async with (server_over_http() as (address, break_off),
                server_of(url=address, headers={"X-Team": "blue"}, key=SECRET) as server):
        assert await called(server, "add", {"a": 1, "b": 2}) == ToolCallResult(content="3")
        break_off()
        failed = await called(server, "add", {"a": 1, "b": 2})
        assert failed.is_error
        offered, notice = await server.list_tools()
        assert offered == [] and isinstance(notice, m.NoticePosted) and "cannot be used" in notice.title


@pytest.mark.parametrize("settings", [
    {"command": "/no/such/program"},
    {"command": sys.executable, "args": ["-c", "raise SystemExit(3)"]},
    {"command": sys.executable, "args": ["-c", "import signal; signal.pause()"], "start_seconds": 0.3},
], ids=["no program", "ends at once", "says nothing"])
async def test_a_server_that_cannot_be_used_is_told_of(settings: dict[str, Any]) -> None:
    async with server_of(**settings) as server:
        offered, notice = await server.list_tools()
        assert offered == [] and notice is not None and "The MCP server 'mine' cannot be used" in notice.title


async def test_a_start_that_nobody_waits_for_is_given_up() -> None:
    async with server_of(command=sys.executable, args=["-c", "import sys; sys.stdin.read()"]) as server:
        waiting = asyncio.create_task(server.list_tools())
        await until(server._lock.locked)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert server._life is None and len(server._leaving) == 1


async def test_nobody_at_the_address() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with server_of(url=f"http://127.0.0.1:{taken.getsockname()[1]}/mcp", key=SECRET) as server:
            offered, notice = await server.list_tools()
            assert offered == [] and notice is not None and SECRET not in notice.title


async def test_no_servers_need_nothing() -> None:
    servers = McpToolServers({})
    assert await servers.tools() == ([], [])
    await servers.close()


# -- in a turn --------------------------------------------------------------------------------------------------------

async def test_a_model_uses_the_tools_of_several_servers() -> None:
    async with server_over_http() as (address, _):
        turn, asked = await talked(
            "openai",
            [calls("add", '{"a": 2, "b": 3}', id="a"), calls("two__clock", id="b"), calls("clock", id="c"),
             calls("report", id="d"), says("Done.")],
            tools=["clock"], mcp={
                "one": {**PLAIN, "permissions": {"add": "ask", "fail": "deny"}},
                "two": {"url": address, "permissions": {"clock": "allow"}, "permission": "deny"},
            },
        )
    names = [tool["function"]["name"] for tool in asked.asked[0].json["tools"]]
    assert {"clock", "one__clock", "two__clock", "add"} <= set(names) and "fail" not in names
    assert turn.text == "Done."
    back = {event.call_id: (event.content, event.origin) for event in turn.events if event.name == "tool.returned"}
    assert back["a"] == ("5", m.ToolOrigin.MCP) and back["b"] == ("half past mcp", m.ToolOrigin.MCP)
    assert back["c"][1] is m.ToolOrigin.BUILTIN
    [ask] = turn.asks[0]
    assert isinstance(ask, m.PermissionAsk) and (ask.call.server, ask.call.display_name) == ("one", "Addition")
    assert [event.delta for event in turn.all(m.ToolOutput)] == ["half way\n"] and back["d"][0] == "there"


async def test_a_turn_goes_on_without_a_server_that_cannot_be_used(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    turn, asked = await talked("openai", [says("Done.")], mcp={"gone": {"command": str(program)}})
    [notice] = turn.all(m.NoticePosted)
    assert notice.level == "warning" and "'gone'" in notice.title
    assert turn.text == "Done." and "tools" not in asked.asked[0].json


# -- of a session -----------------------------------------------------------------------------------------------------

LOCAL = ["127.0.0.1"]


def with_servers(*servers: dict[str, Any], **settings: Any) -> FakeTurn:
    return turn_of(settings=m.Settings(mcp_servers=servers, **settings))


@pytest.mark.parametrize("tools", [None, {"clock": m.Permission.ALLOW}])
async def test_a_model_uses_the_servers_of_the_session(tools: dict[str, m.Permission] | None) -> None:
    async with mcp_over_http() as mine:
        turn, asked = await talked(
            "openai", [calls("add", '{"a": 2, "b": 3}', id="a"), calls("mine__clock", id="b"), says("Done.")],
            with_servers({"type": "url", "name": "mine", "url": mine.url}, tools=tools,
                         mcp_headers={mine.url: f"Authorization: Bearer {SECRET}"}),
            tools=["clock"], allow=LOCAL,
        )
    names = [tool["function"]["name"] for tool in asked.asked[0].json["tools"]]
    assert names == ["clock", "add", "mine__clock"]
    back = {event.call_id: (event.content, event.origin) for event in turn.events if event.name == "tool.returned"}
    assert back == {"a": ("5", m.ToolOrigin.MCP), "b": ("half past mcp", m.ToolOrigin.MCP)}
    assert [[type(ask) for ask in asks] for asks in turn.asks] == [[m.PermissionAsk], [m.PermissionAsk]]
    assert {one.get("authorization") for one in mine.headers} == {f"Bearer {SECRET}"}


async def test_no_permission_of_another_tool_is_that_of_a_sessions_tool() -> None:
    async with mcp_over_http() as mine:
        card = m.AgentCard(name="agent", tools=(m.AgentTool(spec=m.ToolSpec(name="add")),))
        server = {"name": "mine", "url": mine.url}
        turn, _ = await talked(
            "openai", [calls("add", '{"a": 2, "b": 3}'), says("Done.")],
            turn_of(settings=m.Settings(mcp_servers=(server,)), agent=card), allow=LOCAL)
        assert [type(ask) for [ask] in turn.asks] == [m.PermissionAsk]
        _, asked = await talked(
            "openai", [says("Done.")],
            turn_of(settings=m.Settings(mcp_servers=(server,), tools={"add": m.Permission.DENY}), agent=card),
            allow=LOCAL)
        assert [tool["function"]["name"] for tool in asked.asked[0].json["tools"]] == ["clock"]


async def test_only_the_listed_tools_of_a_server_are_offered() -> None:
    async with mcp_over_http() as mine:
        _, asked = await talked(
            "openai", [says("Done.")], with_servers({"name": "mine", "url": mine.url, "tools": ["add"]}), allow=LOCAL)
    assert [tool["function"]["name"] for tool in asked.asked[0].json["tools"]] == ["add"]


async def test_an_inner_address_is_not_connected_to() -> None:
    async with mcp_over_http() as mine:
        _, asked = await talked("openai", [says("Done.")], with_servers({"name": "mine", "url": mine.url}))
    assert "tools" not in asked.asked[0].json
    assert mine.headers == []


async def test_a_name_that_resolves_to_an_inner_address_is_not_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    async def looked_up(self: AddressPolicy, host: str, port: int | None = None) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(AddressPolicy, "looked_up", looked_up)
    async with mcp_over_http() as mine:
        url = mine.url.replace("127.0.0.1", "mcp.example.com")
        turn, asked = await talked("openai", [says("Done.")], with_servers({"name": "mine", "url": url}))
    [notice] = turn.all(m.NoticePosted)
    assert "cannot be used" in notice.title
    assert "tools" not in asked.asked[0].json
    assert mine.headers == []


async def test_a_command_of_a_session_is_never_run(tmp_path: Path) -> None:
    made_file = tmp_path / "made"
    _, asked = await talked("openai", [says("Done.")], with_servers(
        {"type": "stdio", "name": "mine", "command": "touch", "args": [str(made_file)]}), allow=LOCAL)
    assert "tools" not in asked.asked[0].json
    assert not made_file.exists()


# -- the package ------------------------------------------------------------------------------------------------------

def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(Invalid, match="pip install 'mcp>="):
        check_installed()
    with pytest.raises(Invalid, match="with its extra 'mcp'"):
        made("openai", "http://127.0.0.1:1", mcp={"x": STDIO})


def test_results_of_every_kind() -> None:
    from mcp.types import AudioContent, CallToolResult, EmbeddedResource, ResourceLink, TextResourceContents

    text = EmbeddedResource(resource=TextResourceContents(uri="file:///a", text="inside"))
    link = ResourceLink(name="b", uri="file:///b")
    assert mcp_result_content(CallToolResult(content=[text, link])) == "inside\n[b](file:///b)"
    assert mcp_result_content(CallToolResult(content=[], structured_content={"n": 1})) == '{"n":1}'
    assert mcp_result_content(CallToolResult(content=[AudioContent(data="aa", mime_type="audio/wav")])) == "[audio]"
    assert mcp_result_content(CallToolResult(content=[])) == ""


def test_when_a_connection_is_of_no_more_use() -> None:
    from mcp import MCPError

    assert is_connection_lost(ConnectionError()) and is_connection_lost(MCPError(-32000, "closed"))
    assert not is_connection_lost(MCPError(-32602, "wrong parameters"))


async def test_a_server_is_used_through_the_relay_of_acp_agents() -> None:
    relay = McpRelay(AddressPolicy(["127.0.0.1"]))
    try:
        async with (
            server_over_http() as (url, _),
            server_of(url=await relay.address(url), headers={"X-Mine": "1"}, permission="allow") as server,
        ):
            assert (await called(server, "add", {"a": 2, "b": 3})).content == "5"
            assert (await called(server, "report")).content == "there"
    finally:
        await relay.close()
