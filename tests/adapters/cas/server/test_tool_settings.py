"""CAS's toolset as permissions: the narrowest word wins, and what an agent lacks has no effect."""

from typing import Any

import pytest

import gateway.model as m
from adapters.cas.server.inbound import client_tools, read_tools, server_tools, toolset_of_card

ALLOW, ASK, DENY = m.Permission.ALLOW, m.Permission.ASK, m.Permission.DENY
CUSTOM = {"type": "custom", "name": "weather", "description": "d", "input_schema": {"type": "object", "x": 1}}
CARD = m.AgentCard(name="a", tools=(
    m.AgentTool(spec=m.ToolSpec(name="calc")), m.AgentTool(spec=m.ToolSpec(name="clock")),
    m.AgentTool(spec=m.ToolSpec(name="pay"), permission=ASK),
))
OWN = {"calc": ALLOW, "clock": ALLOW, "pay": ASK}


def toolset(**said: Any) -> list[dict[str, Any]]:
    return [{"type": "agent_toolset_20260401", **said}]


def policy(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "permission_policy": {"type": f"always_{kind}"}}


@pytest.mark.parametrize(("said", "meant"), [
    (None, None),
    ([], {}),
    ([CUSTOM], {}),
    ([{"type": "mcp_toolset", "mcp_server_name": "m"}], {}),
    (toolset(), OWN),
    (toolset(enabled_tools=["calc", "Bash"]), {"calc": ALLOW}),
    (toolset(enabled_tools=["Bash", "Read"]), {}),
    (toolset(configs=[policy("calc", "ask"), policy("clock", "deny"), policy("bash", "ask")]),
     {"calc": ASK, "clock": DENY, "pay": ASK}),
    (toolset(default_config={"permission_policy": {"type": "always_ask"}}, configs=[policy("pay", "allow")]),
     {"calc": ASK, "clock": ASK, "pay": ALLOW}),
    (toolset(disallowed_tools=["calc"], enabled_tools=["calc", "clock"]), {"clock": ALLOW}),
    (toolset(default_config={"enabled": False}, configs=[{"name": "calc", "enabled": True}]), {"calc": ALLOW}),
    (toolset(configs=[{"type": "calc", "enabled": False}]), {"clock": ALLOW, "pay": ASK}),
    ([*toolset(enabled_tools=["calc"]), *toolset(enabled_tools=["pay"])], {"calc": ALLOW, "pay": ASK}),
])
def test_tools_are_what_the_toolset_says(said: Any, meant: dict[str, m.Permission] | None) -> None:
    assert server_tools(read_tools(said), CARD) == meant


def test_custom_tools_are_the_clients() -> None:
    assert client_tools(read_tools([*toolset(), CUSTOM])) == (
        m.ToolSpec(name="weather", description="d", parameters={"type": "object", "x": 1}),
    )
    assert client_tools(None) == ()


def test_a_card_in_cas_words_means_the_card() -> None:
    assert server_tools(read_tools(toolset_of_card(CARD)), CARD) == OWN
    assert toolset_of_card(m.AgentCard(name="b")) == []
