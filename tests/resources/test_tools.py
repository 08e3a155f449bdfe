"""Users register definitions, never code; only harmless tools that the operator lists run outside of a conversation."""

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from gateway.client import AddressPolicy
from gateway.errors import Conflict, Forbidden, Invalid, NotFound, TooLarge
from gateway.ports import OperatorOffers, ToolOutcome
from gateway.resources.agents import AgentService
from gateway.resources.mcp_servers import McpServerDefinition, McpServerService
from gateway.resources.named_resources import AlreadyExists
from gateway.resources.tools import (
    MAX_OUTPUT_BYTES,
    MAX_SCHEMA_BYTES,
    MAX_TOOLS,
    ToolDefinition,
    ToolNotFound,
    ToolService,
    check_schema,
)
from gateway.resources.user_settings import UserSettings
from gateway.storage.resources.memory import MemoryResources

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def tool(name: str, permission: m.Permission = m.Permission.ALLOW) -> m.AgentTool:
    return m.AgentTool(spec=m.ToolSpec(name=name, parameters=NUMBER), permission=permission)


CARDS = {
    "one": m.AgentCard(name="one", tools=(tool("echo"), tool("deploy"), tool("mixed"))),
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


@pytest.fixture
def tools() -> ToolService:
    store = MemoryResources(clock=itertools.count(1.0).__next__)
    agents, settings = AgentService(store, lambda: CARDS, 0.5), UserSettings(store, lambda: CARDS)
    servers = McpServerService(store, agents, settings, AddressPolicy)
    listed = ("echo", "mixed", "secret", "deploy", "hangs", "huge", "fails", "lookup")
    offers = OperatorOffers(docs=Path(), execute=listed)
    return ToolService(store, lambda: CARDS, lambda: servers, Runner(), lambda: offers, itertools.count(1.0).__next__)


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
    await tools.servers().register("ann", "notion", McpServerDefinition(url="https://mcp.example.com/mcp"))
    await tools.register("ann", "notion:add", of_server)
    assert await tools.client_tools("ann") == []
    with pytest.raises(Invalid):
        await tools.register("bob", "notion:add", of_server)


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
    done = await tools.run("ann", await tools.check_runnable("ann", "echo", {"n": 5}), {"n": 5})
    assert (done.tool, done.output, done.error, done.progress) == ("echo", "5", None, ("half way",))
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
