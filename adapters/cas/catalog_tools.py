"""A CAS agent's list of tools as the house's settings: what the server's tools may do, and what tools clients have."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from gateway.model import AgentCard, AgentTool, Permission, ToolSpec

from .catalog_wire import CustomTool, Policy, Tool, ToolConfig, ToolDefaults, Toolset

POLICIES = {
    "always_allow": Permission.ALLOW,
    "always_ask": Permission.ASK,
    "always_deny": Permission.DENY,
}
POLICY_OF = {permission: policy for policy, permission in POLICIES.items()}
TOOLS: TypeAdapter[list[Tool]] = TypeAdapter(list[Tool])


def parsed_tools(tools: Sequence[Mapping[str, Any]] | None) -> list[Tool] | None:
    """Tools that were accepted once, read again."""
    return None if tools is None else TOOLS.validate_python(tools)


def server_tools(tools: Sequence[Tool] | None, card: AgentCard) -> dict[str, Permission] | None:
    """What the agent may do with each of its tools; None where the client says nothing about tools.

    CAS's toolset has names that an agent here may lack (`Bash`, `Read` …) and lacks names that it may have. What is
    named and not there has no effect; without `enabled_tools`, all that the agent has is enabled.
    """
    if tools is None:
        return None
    toolsets = [tool for tool in tools if isinstance(tool, Toolset)]
    return {name: permission for toolset in toolsets for name, permission in _of_toolset(toolset, card)}


def client_tools(tools: Iterable[Tool] | None) -> tuple[ToolSpec, ...]:
    return tuple(
        ToolSpec(name=tool.name, description=tool.description, parameters=tool.input_schema)
        for tool in tools or () if isinstance(tool, CustomTool)
    )


def told_tools(card: AgentCard) -> list[dict[str, Any]]:
    """The tools of a configured agent, in the words a client would use to ask for them."""
    configs = [
        {"name": tool.spec.name, "enabled": True, "permission_policy": {"type": POLICY_OF[tool.permission]}}
        for tool in card.tools
    ]
    names = [tool.spec.name for tool in card.tools]
    return [{"type": "agent_toolset_20260401", "enabled_tools": names, "configs": configs}] if configs else []


def _of_toolset(toolset: Toolset, card: AgentCard) -> Iterable[tuple[str, Permission]]:
    configs = {config.tool: config for config in toolset.configs or [] if config.tool}
    defaults = toolset.default_config or ToolDefaults()
    for tool in card.tools:
        config = configs.get(tool.spec.name)
        if _is_enabled(tool.spec.name, toolset, config, defaults):
            yield tool.spec.name, _permission(tool, config, defaults)


def _is_enabled(name: str, toolset: Toolset, config: ToolConfig | None, defaults: ToolDefaults) -> bool:
    """The narrowest word wins: forbidden by name, then the tool's own switch, then the list, then the default."""
    if name in (toolset.disallowed_tools or ()):
        return False
    if config is not None and config.enabled is not None:
        return config.enabled
    if toolset.enabled_tools is not None:
        return name in toolset.enabled_tools
    return defaults.enabled is not False


def _permission(tool: AgentTool, config: ToolConfig | None, defaults: ToolDefaults) -> Permission:
    policy: Policy | None = (config.permission_policy if config else None) or defaults.permission_policy
    return POLICIES[policy.type] if policy else tool.permission
