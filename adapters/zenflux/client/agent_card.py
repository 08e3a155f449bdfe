"""Reads what a ZenFlux server says about its agents, models and tools; some servers say nothing."""

from typing import Any

import gateway.model as m
from gateway.client import NOT_SERVED_STATUSES, HttpClient, members, objects, suppress_statuses, text

CAPABILITIES = m.AgentCapabilities(images=("http", "data"), client_tools=False)


async def fetch_agent_card(upstream: HttpClient, agent: str | None, otherwise: str) -> m.AgentCard:
    """The chosen agent, or else the first one."""
    agents = list_of_objects(await fetch_data(upstream, "/agents"), "agents")
    models = list_of_objects(await fetch_data(upstream, "/models"), "models")
    chosen = next((one for one in agents if agent in (None, *_names(one))), {})
    name = agent or next(iter(_names(chosen)), "") or next((n for one in models for n in _agents(one)), "")
    model = text(chosen.get("model")) or next((_model(one) for one in models if name in _agents(one)), "")
    return m.AgentCard(
        name=name or otherwise, title=text(chosen.get("name")) or None,
        description=text(chosen.get("description")) or None, model=model or None,
        tools=tuple(await _tools(upstream)), capabilities=CAPABILITIES,
    )


async def fetch_data(upstream: HttpClient, path: str) -> Any:
    """The data of an answer, in its wrapper or without; None where the server does not serve this."""
    with suppress_statuses(NOT_SERVED_STATUSES):
        return unwrapped(await upstream.json("GET", path))
    return None


def unwrapped(body: Any) -> Any:
    return body["data"] if isinstance(body, dict) and "data" in body else body


def list_of_objects(data: Any, key: str) -> list[dict[str, Any]]:
    """The objects of a list, which may be bare or under its name."""
    return objects(data.get(key) if isinstance(data, dict) else data)


async def _tools(upstream: HttpClient) -> list[m.AgentTool]:
    """As they are declared to a model."""
    tools = []
    for one in list_of_objects(await fetch_data(upstream, "/tools/schemas"), "tools"):
        if name := text(one.get("name")):
            schema = members(one.get("input_schema"))
            tools.append(m.AgentTool(spec=m.ToolSpec(
                name=name, description=text(one.get("description")), parameters=schema)))
    return tools


def _names(agent: dict[str, Any]) -> list[str]:
    return [name for key in ("agent_id", "id", "name") if (name := text(agent.get(key)))]


def _agents(model: dict[str, Any]) -> list[str]:
    """The agents that use a model, if the server names them."""
    found = model.get("agents")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def _model(model: dict[str, Any]) -> str:
    return next((name for key in ("model_name", "name", "id") if (name := text(model.get(key)))), "")
