"""The tools of a session can change while it rests; the rest of its agent cannot."""

from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from tests.support.dialects.cas.client import Client
from tests.support.gateway_server import serving

PAINT = {"type": "custom", "name": "paint", "description": "d", "input_schema": {"type": "object"}}
ASKS = {"type": "agent_toolset_20260401", "enabled_tools": ["calc"], "configs": [
    {"name": "calc", "permission_policy": {"type": "always_ask"}}]}
SERVER = {"type": "url", "name": "m", "url": "https://m.example"}


async def settings(cas: Client, session: str) -> Any:
    return (await cas.served.gateway.sessions.get("", session)).settings


async def test_tools_are_replaced_and_shown(cas: Client) -> None:
    session = await cas.session(metadata={"a": "1"}, environment_variables="A=1")
    shown = await cas.ok("POST", f"/sessions/{session}", {"agent": {"tools": [ASKS, PAINT]}})
    assert [tool["type"] for tool in shown["agent"]["tools"]] == ["agent_toolset_20260401", "custom"]
    assert (shown["metadata"], shown["environment_variables"]) == ({"a": "1"}, {"A": "1"})
    assert shown == await cas.ok("GET", f"/sessions/{session}")
    now = await settings(cas, session)
    assert (now.tools, [tool.name for tool in now.client_tools]) == ({"calc": m.Permission.ASK}, ["paint"])


async def test_what_is_not_named_stays(cas: Client) -> None:
    session = await cas.session()
    await cas.ok("POST", f"/sessions/{session}", {"agent": {"tools": [PAINT], "mcp_servers": [SERVER]}})
    shown = await cas.ok("POST", f"/sessions/{session}", {
        "agent": {"mcp_servers": []}, "title": "new", "metadata": {"b": "2"}})
    assert (shown["agent"]["mcp_servers"], shown["title"], shown["metadata"]) == ([], "new", {"b": "2"})
    now = await settings(cas, session)
    assert ([tool.name for tool in now.client_tools], now.mcp_servers) == (["paint"], ())


@pytest.mark.parametrize(("agent", "param"), [
    ({"model": "demo"}, "agent.model"), ({"system": "be brief"}, "agent.system"),
    ({"tools": [{"type": "custom"}]}, "agent.tools.0.custom.name"), ({"tools": "all"}, "agent.tools"),
    ({"tools": [PAINT, PAINT]}, "agent.tools"),
])
async def test_what_cannot_change_is_refused_and_changes_nothing(cas: Client, agent: Any, param: str) -> None:
    session = await cas.session()
    before = await cas.ok("GET", f"/sessions/{session}")
    status, refused = await cas.call("POST", f"/sessions/{session}", {"agent": agent, "title": "no"})
    assert (status, refused["error"]["type"]) == (400, "invalid_request_error")
    assert refused["error"]["param"].startswith(param.split(".custom")[0])
    assert await cas.ok("GET", f"/sessions/{session}") == before


async def test_a_turn_that_runs_is_not_disturbed(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        cas = Client(served)
        session = await cas.session()
        await cas.ok("POST", f"/sessions/{session}/events", {"events": [
            {"type": "user.message", "content": "/slow 2000"}]})
        status, refused = await cas.call("POST", f"/sessions/{session}", {"agent": {"tools": [PAINT]}})
        assert (status, refused["error"]["message"][:31]) == (409, "Session is currently processing")
        await cas.ok("POST", f"/sessions/{session}/cancel", {})
        assert (await cas.call("POST", f"/sessions/{session}", {"agent": {"tools": [PAINT]}}))[0] == 200


async def test_a_session_that_was_made_elsewhere_can_be_given_tools(cas: Client) -> None:
    view = await cas.served.gateway.sessions.create("", "demo")
    shown = await cas.ok("POST", f"/sessions/{view.session_id}", {"agent": {"tools": [PAINT]}})
    assert (shown["agent"]["id"], shown["agent"]["tools"][0]["name"]) == ("agent_demo", "paint")
