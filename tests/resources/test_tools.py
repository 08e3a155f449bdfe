"""Users register definitions, never code; only harmless tools that the operator lists run outside of a conversation."""

import asyncio
import itertools
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from gateway.client import AddressPolicy
from gateway.errors import Conflict, Forbidden, Invalid, NotFound, RateLimited, TooLarge
from gateway.ports import OperatorOffers, ServerTool, ServerTools, ToolOutcome
from gateway.resources.agents import AgentService
from gateway.resources.mcp_connections import McpConnections
from gateway.resources.mcp_server_records import McpServerDefinition
from gateway.resources.mcp_servers import McpServerService
from gateway.resources.named_resources import AlreadyExists
from gateway.resources.tool_schemas import MAX_SCHEMA_BYTES, check_schema
from gateway.resources.tools import (
    MAX_CONCURRENT_RUNS,
    MAX_OUTPUT_BYTES,
    MAX_TOOLS,
    ToolDefinition,
    ToolNotFound,
    ToolService,
)
from gateway.resources.user_settings import UserSettings
from gateway.storage.resources.memory import MemoryResources

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def tool(name: str, permission: m.Permission = m.Permission.ALLOW) -> m.AgentTool:
    return m.AgentTool(spec=m.ToolSpec(name=name, parameters=NUMBER), permission=permission)


CARDS = {
    "one": m.AgentCard(name="one", mcp_servers=("house",), tools=(tool("echo"), tool("deploy"), tool("mixed"))),
    "two": m.AgentCard(name="two", tools=(tool("mixed", m.Permission.ASK), tool("secret", m.Permission.ASK))),
}
LOOKUP = ToolDefinition(description="Looks up.", parameters=NUMBER)


class Runner:
    """Tools that answer as a test wants."""

    def __init__(self) -> None:
        self.specs = {name: m.ToolSpec(name=name, parameters=NUMBER)
                      for name in ("echo", "mixed", "secret", "unlisted", "hangs", "huge", "fails")}

    async def run(self, name: str, input: dict[str, Any], out: Callable[[str], None]) -> ToolOutcome:
        if name == "hangs":
            await asyncio.Event().wait()
        out("half way")
        return ToolOutcome(text="x" * (MAX_OUTPUT_BYTES + 1) if name == "huge" else str(input["n"]),
                           is_error=name == "fails")


class Servers:
    """MCP servers that answer as a test wants; the first agent has the server `house`."""

    def __init__(self) -> None:
        self.answers: dict[str, ServerTools] = {}
        self.called: list[tuple[str, str, str]] = []

    async def of_agent(self, agent: str, server: str) -> ServerTools:
        return self.answers.get(server, ServerTools())

    async def of_user(self, owner: str, settings: m.Settings) -> ServerTools:
        return self.answers.get(str(settings.mcp_servers[0]["name"]), ServerTools())

    async def call(
        self, agent: str, server: str, tool: str, input: dict[str, Any], out: Callable[[str], None],
    ) -> ToolOutcome:
        self.called.append((agent, server, tool))
        return ToolOutcome(text=str(input["n"]))


def offering(*names: str, permission: m.Permission = m.Permission.ASK, is_connected: bool = True) -> ServerTools:
    return ServerTools(is_connected=is_connected, tools=tuple(
        ServerTool(spec=m.ToolSpec(name=name, parameters=NUMBER), permission=permission) for name in names))


@pytest.fixture
def mcp() -> Servers:
    return Servers()


@pytest.fixture
def tools(mcp: Servers) -> ToolService:
    store = MemoryResources(clock=itertools.count(1.0).__next__)
    agents, settings = AgentService(store, lambda: CARDS, 0.5), UserSettings(store, lambda: CARDS)
    servers = McpServerService(store, agents, settings, AddressPolicy)
    listed = ("echo", "mixed", "secret", "deploy", "hangs", "huge", "fails", "lookup",
              "house:add", "mine:add", "short")
    offers = OperatorOffers(docs=Path(), execute=listed)
    connections = McpConnections(servers, lambda: CARDS, mcp)
    return ToolService(store, lambda: CARDS, connections, Runner(), lambda: offers, itertools.count(1.0).__next__)


async def test_tools_of_agents_and_of_the_server_are_one_list(tools: ToolService) -> None:
    found = {one.spec.name: (one.permission, one.agents) for one in await tools.all("ann")}
    assert found["echo"] == (m.Permission.ALLOW, ("one",))
    assert found["mixed"] == (m.Permission.ASK, ("one", "two"))
    assert found["unlisted"] == (m.Permission.ALLOW, ())
    with pytest.raises(ToolNotFound):
        await tools.get("ann", "nothing")


async def test_a_tool_is_registered_replaced_and_deleted(tools: ToolService) -> None:
    await tools.register("ann", "lookup", LOOKUP)
    assert [spec.name for spec in await tools.client_tools("ann")] == ["lookup"]
    assert await tools.client_tools("bob") == []
    with pytest.raises(ToolNotFound):
        await tools.get("bob", "lookup")
    with pytest.raises(AlreadyExists):
        await tools.register("ann", "lookup", LOOKUP)
    off = ToolDefinition(description="Off.", parameters=NUMBER, enabled=False)
    await tools.register("ann", "lookup", off, replace_existing=True)
    assert (await tools.get("ann", "lookup")).is_enabled is False
    assert await tools.client_tools("ann") == []
    with pytest.raises(ToolNotFound):
        await tools.delete("bob", "lookup")
    await tools.delete("ann", "lookup")
    with pytest.raises(ToolNotFound):
        await tools.delete("ann", "lookup")


async def test_tools_of_the_settings_are_fixed(tools: ToolService) -> None:
    for name in ("echo", "unlisted"):
        with pytest.raises(Forbidden):
            await tools.register("ann", name, LOOKUP, replace_existing=True)
        with pytest.raises(Forbidden):
            await tools.delete("ann", name)


@pytest.mark.parametrize("name", ["", "a b", "../x", "x" * 129, "ä"])
async def test_a_name_is_a_name(tools: ToolService, name: str) -> None:
    with pytest.raises(Invalid):
        await tools.register("ann", name, LOOKUP)


async def test_a_tool_of_a_server_needs_the_server(tools: ToolService) -> None:
    of_server = ToolDefinition(description="Adds.", parameters=NUMBER, server="notion")
    with pytest.raises(Invalid):
        await tools.register("ann", "notion:add", of_server)
    await tools.connections.servers.register("ann", "notion", McpServerDefinition(url="https://mcp.example.com/mcp"))
    await tools.register("ann", "notion:add", of_server)
    assert await tools.client_tools("ann") == []
    with pytest.raises(Invalid):
        await tools.register("bob", "notion:add", of_server)


# -- of MCP servers ---------------------------------------------------------------------------------------------------

async def have_own_server(tools: ToolService) -> None:
    await tools.connections.servers.register("ann", "mine", McpServerDefinition(url="https://mcp.example.com/mcp"))


async def test_tools_of_servers_are_listed_under_the_names_of_their_servers(tools: ToolService, mcp: Servers) -> None:
    await have_own_server(tools)
    mcp.answers = {"mine": offering("add", "a b"), "house": offering("add", permission=m.Permission.ALLOW)}
    found = {one.spec.name: one for one in await tools.all("ann") if one.server}
    assert set(found) == {"mine:add", "house:add"}
    assert (found["mine:add"].permission, found["mine:add"].agents) == (m.Permission.ASK, ())
    assert (found["house:add"].permission, found["house:add"].agents) == (m.Permission.ALLOW, ("one",))
    assert await tools.get("ann", "mine:add") == found["mine:add"]
    assert {one.spec.name for one in await tools.all("bob") if one.server} == {"house:add"}
    with pytest.raises(ToolNotFound):
        await tools.get("bob", "mine:add")
    for name in ("mine:add", "house:add"):
        with pytest.raises(Forbidden):
            await tools.delete("ann", name)
    with pytest.raises(Forbidden):
        await tools.register("ann", "house:add", LOOKUP)


async def test_a_server_that_does_not_answer_leaves_its_tools_unavailable(tools: ToolService, mcp: Servers) -> None:
    await have_own_server(tools)
    await tools.register("ann", "mine:add", ToolDefinition(description="Adds.", parameters=NUMBER, server="mine"))
    assert not (await tools.get("ann", "mine:add")).is_available
    mcp.answers = {"mine": offering("add", "sub")}
    assert (await tools.get("ann", "mine:add")).is_available
    assert [one.registered is not None for one in await tools.all("ann") if one.server == "mine"] == [False, True]
    mcp.answers = {"mine": offering("add", "sub", is_connected=False)}
    assert [one.is_available for one in await tools.all("ann") if one.server == "mine"] == [False, False]


async def test_registered_tools_of_servers_come_into_sessions(tools: ToolService) -> None:
    await have_own_server(tools)
    servers = tools.connections.servers
    await tools.register("ann", "mine:add", ToolDefinition(description="Adds.", parameters=NUMBER, server="mine"))
    off = ToolDefinition(description="Off.", parameters=NUMBER, server="mine", enabled=False)
    await tools.register("ann", "mine:off", off)
    wanted = await tools.server_tools("ann")
    assert wanted == {"mine": ["add"]}
    filled = await servers.with_tools("ann", m.Settings(), wanted)
    entry = {"type": "url", "name": "mine", "url": "https://mcp.example.com/mcp"}
    assert filled.mcp_servers == ({**entry, "tools": ["add"]},)
    taken = m.Settings(mcp_servers=(entry,))
    assert await servers.with_tools("ann", taken, wanted) == taken
    await servers.change("ann", "mine", tools=("other",))
    assert await servers.with_tools("ann", m.Settings(), wanted) == m.Settings()
    await servers.change("ann", "mine", tools=None, is_active=False)
    assert await servers.with_tools("ann", m.Settings(), wanted) == m.Settings()


async def test_a_listed_tool_of_the_operators_server_runs(tools: ToolService, mcp: Servers) -> None:
    await have_own_server(tools)
    allowed = offering("add", "other", permission=m.Permission.ALLOW)
    mcp.answers = {"house": allowed, "mine": offering("add")}
    done = await tools.run("ann", await tools.check_runnable("ann", "house:add", {"n": 5}), {"n": 5})
    assert (done.output, mcp.called) == ("5", [("one", "house", "add")])
    await tools.register("ann", "other", ToolDefinition(description="x", parameters=NUMBER, server="house"))
    for name in ("mine:add", "house:other", "other"):  # asks; is not listed; is listed under no name of its server
        with pytest.raises(Forbidden):
            await tools.check_runnable("ann", name, {"n": 5})
    with pytest.raises(Invalid):
        await tools.check_runnable("ann", "house:add", {"n": "x"})
    mcp.answers = {"house": offering("add", permission=m.Permission.ASK)}
    with pytest.raises(Forbidden):
        await tools.check_runnable("ann", "house:add", {"n": 5})
    assert len(mcp.called) == 1


async def test_a_pattern_of_a_user_does_not_take_long(tools: ToolService) -> None:
    evil = {"type": "object", "properties": {"s": {"type": "string", "pattern": r"^(?=(a+)+$)(a|a?)+b$"}}}
    await tools.register("ann", "evil", ToolDefinition(description="x", parameters=evil))
    with pytest.raises((Invalid, Forbidden)):
        await tools.check_runnable("ann", "evil", {"s": "a" * 40})


async def test_a_user_runs_only_so_many_tools_at_once(tools: ToolService) -> None:
    with ExitStack() as stack:
        for _ in range(MAX_CONCURRENT_RUNS):
            stack.enter_context(tools.reserve_run("ann"))
        with pytest.raises(RateLimited), tools.reserve_run("ann"):
            pass
        with tools.reserve_run("bob"):
            pass
    with tools.reserve_run("ann"):
        pass
    assert not tools.running


async def test_there_are_not_too_many(tools: ToolService) -> None:
    for number in range(MAX_TOOLS):
        await tools.register("ann", f"tool{number}", LOOKUP)
    with pytest.raises(Conflict):
        await tools.register("ann", "another", LOOKUP)
    await tools.register("bob", "another", LOOKUP)


@pytest.mark.parametrize("schema", [
    {"type": "string"}, {"type": "nonsense"}, {"properties": 5}, {"$ref": "https://example.com/x.json"},
])
def test_a_schema_is_a_schema(schema: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        check_schema(schema)


def test_a_schema_is_small() -> None:
    with pytest.raises(TooLarge):
        check_schema({"type": "object", "description": "x" * MAX_SCHEMA_BYTES})


# -- running ----------------------------------------------------------------------------------------------------------

async def test_a_listed_tool_runs(tools: ToolService) -> None:
    told = list[str]()
    done = await tools.run("ann", await tools.check_runnable("ann", "echo", {"n": 5}), {"n": 5}, out=told.append)
    assert (done.tool, done.output, done.error, told) == ("echo", "5", None, ["half way"])
    assert done.ended_at > done.started_at
    assert (tools.count("ann", "echo").succeeded, tools.count("bob", "echo").succeeded) == (1, 0)


@pytest.mark.parametrize(("name", "problem"), [
    ("mixed", Forbidden), ("secret", Forbidden), ("unlisted", Forbidden), ("deploy", Invalid), ("lookup", Forbidden),
    ("nothing", NotFound), ("../x", NotFound),
])
async def test_other_tools_do_not_run(tools: ToolService, name: str, problem: type[Exception]) -> None:
    await tools.register("ann", "lookup", LOOKUP)
    with pytest.raises(problem):
        await tools.check_runnable("ann", name, {"n": 5})


@pytest.mark.parametrize("input", [{}, {"n": "x"}])
async def test_the_input_fits_the_schema(tools: ToolService, input: dict[str, Any]) -> None:
    for name in ("echo", "unlisted", "secret"):
        with pytest.raises(Invalid):
            await tools.check_runnable("ann", name, input)


async def test_a_tool_has_limits(tools: ToolService) -> None:
    hangs = await tools.run("ann", await tools.check_runnable("ann", "hangs", {"n": 1}), {"n": 1}, seconds=0.0)
    assert hangs.timed_out and hangs.output is None
    huge = await tools.run("ann", await tools.check_runnable("ann", "huge", {"n": 1}), {"n": 1})
    assert huge.output is None and "returned more than" in (huge.error or "")
    fails = await tools.run("ann", await tools.check_runnable("ann", "fails", {"n": 1}), {"n": 1})
    assert (fails.output, fails.error, fails.timed_out) == (None, "1", False)
    assert tools.count("ann", "fails").failed == 1


async def test_a_server_that_is_deleted_while_servers_are_asked_is_left_out(
    tools: ToolService, mcp: Servers, monkeypatch: pytest.MonkeyPatch,
) -> None:
    servers = tools.connections.servers
    for name in ("mine", "short"):
        await servers.register("ann", name, McpServerDefinition(url="https://mcp.example/mcp", auth_type="none"), None)
        mcp.answers[name] = offering("add")
    listed = McpServerService.all

    async def all_and_then_gone(self: McpServerService, owner: str) -> Any:
        found = await listed(self, owner)
        await self.delete(owner, "mine")
        return found

    monkeypatch.setattr(McpServerService, "all", all_and_then_gone)
    assert set(await tools.connections.all("ann")) == {"house", "short"}
