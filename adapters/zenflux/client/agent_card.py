"""Reads what a ZenFlux server says about its agents, models and tools; some servers say nothing."""

from typing import Any

import gateway.model as m
from gateway.client import NOT_SERVED_STATUSES, HttpClient, suppress_statuses
from mappings.language import Bindings

from .readers import read_list, unwrap

CAPABILITIES = m.AgentCapabilities(images=("http", "data"), client_tools=False)


async def fetch_agent_card(upstream: HttpClient, agent: str | None, otherwise: str) -> m.AgentCard:
    """The chosen agent, or else the first one."""
    agents = read_list("list.agents", await fetch_data(upstream, "/agents"))
    models = read_list("list.models", await fetch_data(upstream, "/models"))
    chosen = next((one for one in agents if agent in (None, *_names(one))), None)
    name = agent or next(iter(_names(chosen)), "") or next((n for one in models for n in _agents(one)), "")
    model = chosen["model"] if chosen else None
    return m.AgentCard(
        name=name or otherwise, title=chosen["name"] if chosen else None,
        description=chosen["description"] if chosen else None,
        model=model or next((one["called"] for one in models if name in _agents(one)), None),
        tools=tuple(await _tools(upstream)), capabilities=CAPABILITIES,
    )


async def fetch_data(upstream: HttpClient, path: str) -> Any:
    """The data of an answer, in its wrapper or without; None where the server does not serve this."""
    with suppress_statuses(NOT_SERVED_STATUSES):
        return unwrap(await upstream.json("GET", path))
    return None


async def _tools(upstream: HttpClient) -> list[m.AgentTool]:
    """As they are declared to a model."""
    schemas = read_list("list.tools", await fetch_data(upstream, "/tools/schemas"))
    return [
        m.AgentTool(spec=m.ToolSpec(
            name=one["name"], description=one["description"] or "", parameters=one["parameters"] or {}))
        for one in schemas if one["name"]
    ]


def _names(agent: Bindings | None) -> list[str]:
    return [name for key in ("agent_id", "id", "name") if (name := agent[key])] if agent else []


def _agents(model: Bindings) -> list[str]:
    """The agents that use a model, if the server names them."""
    return [name for name in model["agents"] or () if isinstance(name, str)]
