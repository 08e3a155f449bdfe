"""ZenFlux's agents: the gateway's agents as ZenFlux spells them, and the fields that a client may send."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from msgspec import structs

import gateway.model as m
from adapters.zenflux.bodies import AgentBody
from adapters.zenflux.wire import DIALECT_NAME, KEPT_FIELDS, AgentChange, AgentFields, NewAgent, ZenfluxSettings
from gateway.errors import Invalid, NotFound
from gateway.http import Context
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import AgentDefinition, Agents, ChosenAgent, StoredAgent
from gateway.resources import McpConnections, McpServerService, SkillService, ToolService, UserSettings

SHORT_PROMPT = 50
MAX_THINKING_BUDGET = 32_000


class AgentNotFound(NotFound):
    """The client named an agent that is not there."""

    usual_reason = m.FaultReason.AGENT_NOT_FOUND


@contextmanager
def agent_errors(agent_id: str) -> Iterator[None]:
    """The errors of agents with ZenFlux's words."""
    try:
        yield
    except NotFound as error:
        if error.reason is not m.FaultReason.NOT_FOUND:
            raise
        raise AgentNotFound(f"there is no agent '{agent_id[:128]}'") from None


def mcp_server_service(context: Context[ZenfluxSettings]) -> McpServerService:
    settings = UserSettings(context.resources, lambda: context.agents)
    return McpServerService(context.resources, context.agent_service, settings, lambda: context.addresses)


def mcp_connections(context: Context[ZenfluxSettings]) -> McpConnections:
    return McpConnections(mcp_server_service(context), lambda: context.agents, context.mcp_tools)


def tool_service(context: Context[ZenfluxSettings]) -> ToolService:
    return ToolService(
        context.resources, lambda: context.agents, mcp_connections(context), context.tools, lambda: context.offers,
        context.clock)


async def choose_agent(context: Context[ZenfluxSettings], owner: str, agent_id: str) -> ChosenAgent:
    """The agent for a conversation, with all that its settings get."""
    with agent_errors(agent_id):
        chosen = await context.agent_service.choose(owner, agent_id)
    settings = await mcp_server_service(context).filled(owner, chosen.card.name, chosen.settings)
    settings = await skill_service(context).filled(owner, chosen.card.name, settings)
    return replace(chosen, settings=await _with_registered_tools(context, owner, chosen.card, settings))


async def _with_registered_tools(
    context: Context[ZenfluxSettings], owner: str, card: m.AgentCard, settings: m.Settings,
) -> m.Settings:
    """The settings with the tools that the user has registered; names of other tools of the client are left out."""
    of_servers = await tool_service(context).server_tools(owner)
    settings = await mcp_server_service(context).with_tools(owner, settings, of_servers)
    if not card.capabilities.client_tools:
        return settings
    taken = {tool.spec.name for tool in card.tools} | {tool.name for tool in settings.client_tools}
    own = [spec for spec in await tool_service(context).client_tools(owner) if spec.name not in taken]
    return structs.replace(settings, client_tools=(*settings.client_tools, *own)) if own else settings


def skill_service(context: Context[ZenfluxSettings]) -> SkillService:
    return SkillService(context.resources, context.offers.skills, context.agent_service)


async def default_agent(context: Context[ZenfluxSettings], owner: str) -> str:
    """The agent of a conversation that names none: that of the user's model, else the first of the settings."""
    chosen = await UserSettings(context.resources, lambda: context.agents).default_agent(owner)
    return chosen or next(iter(context.agents), "")


def new_definition(service: Agents, body: NewAgent) -> AgentDefinition:
    made = AgentDefinition(name=body.name, description=body.description or "", system=body.prompt)
    return changed_definition(service, made, body)


def changed_definition(
    service: Agents, old: AgentDefinition, body: NewAgent | AgentChange,
) -> AgentDefinition:
    """The definition after a change; what a client does not name, or names as null, stays."""
    if body.data_dir:
        raise Invalid("data_dir: the server chooses where an agent keeps its data", param="data_dir")
    given = body.model_dump(exclude_none=True)
    fields: JsonObject = {word: given[word] for word in ("name", "description", "model") if word in given}
    if "prompt" in given:
        fields["system"] = given["prompt"]
    if "is_active" in given:
        fields["is_active"] = given["is_active"]
    if isinstance(use := (given.get("memory") or {}).get("mem0_enabled"), bool):
        fields["memory"] = use
    changed = old.changed(DIALECT_NAME, {word: given[word] for word in KEPT_FIELDS if word in given}, **fields)
    if body.enabled_capabilities is not None:
        card = service.card_of(changed)
        changed = changed.changed(DIALECT_NAME, tools=enabled_tools(card, body.enabled_capabilities))
    return changed


def enabled_tools(card: m.AgentCard, switches: Mapping[str, bool]) -> dict[str, m.Permission] | None:
    """The tools of the configured agent without those that are switched off; other names have no effect."""
    if not any(card.tool(name) for name in switches):
        return None
    return {tool.spec.name: tool.permission for tool in card.tools if switches.get(tool.spec.name, True)}


def agent_view(
    context: Context[ZenfluxSettings], owner: str, agent: StoredAgent, skills: Sequence[str] = (),
) -> dict[str, Any]:
    """What the table needs to show an agent; `skills` are the names of those that it has installed."""
    service, made = context.agent_service, agent.definition
    own, calls = made.extra.get(DIALECT_NAME, {}), context.agent_calls(owner, agent.agent_id)
    try:
        base = service.base_of(agent)
    except Invalid:  # its model is not served any more
        base = m.AgentCard(name=agent.agent_id)
    enabled = {tool.spec.name: made.tools is None or tool.spec.name in made.tools for tool in base.tools}
    return {
        "agent_id": agent.agent_id, "name": made.name, "description": made.description or "",
        "version": agent.semantic_version,
        "is_active": made.is_active, "model": made.model or base.model or base.name,
        "plan_manager_enabled": bool(own.get("plan_manager_enabled")),
        "enabled_capabilities": {**own.get("enabled_capabilities", {}), **enabled},
        "llm": own.get("llm"), "apis": own.get("apis", []), "memory": own.get("memory"),
        "mcp_servers": [server.get("name", "") for server in made.mcp_servers], "skills": list(skills),
        "calls": calls, "succeeded": calls.total - calls.failed,
        "created_at": agent.created_at, "updated_at": agent.updated_at,
    }


def summary_body(context: Context[ZenfluxSettings], owner: str, agent: StoredAgent) -> JsonValue:
    return context.table.object("agent.summary", AgentBody(**agent_view(context, owner, agent)))


async def detail_body(context: Context[ZenfluxSettings], owner: str, agent: StoredAgent) -> Any:
    names = [one.name for one in await skill_service(context).installed(owner, agent.agent_id)]
    return context.table.object("agent.detail", AgentBody(**agent_view(context, owner, agent, names)))


def template_body(context: Context[ZenfluxSettings], agent: StoredAgent) -> JsonValue:
    """A configured agent as a start for new ones."""
    return context.table.object("agent.template", AgentBody(**agent_view(context, "", agent)))


# -- what is wrong with a configuration -------------------------------------------------------------------------------

def model_problems(service: Agents, body: AgentFields) -> Iterator[tuple[str, str, str]]:
    """Problems that only several fields together show: field, message and word."""
    try:
        service.card_of(AgentDefinition(name="", model=body.model or ""))
    except Invalid as error:
        yield "model", error.message.removeprefix("model: "), "UNKNOWN_MODEL"
    if body.data_dir:
        yield "data_dir", "the server chooses where an agent keeps its data", "INVALID_VALUE"


def warnings_of(body: Mapping[str, JsonValue]) -> Iterator[tuple[str, str]]:
    """What works and may not be meant: field and message."""
    prompt, llm = body.get("prompt"), body.get("llm")
    if isinstance(prompt, str) and 0 < len(prompt) < SHORT_PROMPT:
        yield "prompt", f"shorter than {SHORT_PROMPT} characters"
    budget = llm.get("thinking_budget") if isinstance(llm, dict) else None
    if isinstance(budget, int) and budget > MAX_THINKING_BUDGET:
        yield "llm.thinking_budget", f"more than {MAX_THINKING_BUDGET} tokens"
