"""Reads what AAP servers send: unknown members are ignored, and the table's maps are read in reverse."""

from typing import Any

from msgspec import Struct

import gateway.model as m
from adapters.aap.bodies import AgentBody, MetaBody, OptionBody, ToolBody
from adapters.aap.wire import SECRET_MASK, TRUST_CAPABILITY, VERSION
from gateway.errors import BackendFailed
from mappings.language import ServerTable

AAP = ServerTable("adapters.aap", "sse")


class CallFrame(Struct, frozen=True, kw_only=True):
    """A call of a tool as a server tells it."""

    tool_call_id: str
    name: str
    input: dict[str, Any] | None = None


def with_media_types(content: m.Content) -> m.Content:
    if isinstance(content, str):
        return content
    return tuple(
        m.ImagePart(url=part.url, media_type=media_type_of(part.url)) if isinstance(part, m.ImagePart) else part
        for part in content
    )


def media_type_of(url: str) -> str | None:
    """The media type that a `data:` address names."""
    head = url.partition(",")[0].partition(";")[0]
    return head.removeprefix("data:") or None if url.startswith("data:") else None


STREAM_MODES = ("delta", "message", "none")
"""The stream modes, the best first."""


def read_agent_card(body: Any, server: str, wanted: str | None) -> m.AgentCard:
    """The card of the agent wanted, or of the first there is."""
    meta = AAP.read_as(MetaBody, body, "the description")
    if meta.version != VERSION:
        raise BackendFailed(f"{server} speaks version {meta.version} of AAP; version {VERSION} is understood here")
    agent = next((agent for agent in meta.agents if wanted in (None, agent.name)), None)
    if agent is not None:
        return _agent_card(agent)
    known = ", ".join(f"'{agent.name[:64]}'" for agent in meta.agents) or "none"
    raise BackendFailed(f"{server} has no agent{f' {wanted!r}' if wanted else ''}; it has {known}")


def best_stream_mode(card: m.AgentCard) -> str:
    """The best stream mode of the agent; if it declares none, the whole turn at its end."""
    return next((mode for mode in STREAM_MODES if mode in card.capabilities.streaming), STREAM_MODES[-1])


def read_tool_spec(tool: ToolBody) -> m.ToolSpec:
    return m.ToolSpec(
        name=tool.name, title=tool.title, description=tool.description or "", parameters=tool.parameters or {},
    )


def _agent_card(agent: AgentBody) -> m.AgentCard:
    """AAP does not say which tools need permission: all do, except those that our own servers name."""
    trusted = (agent.capabilities or {}).get(TRUST_CAPABILITY) or {}
    return m.AgentCard(
        name=agent.name,
        version=agent.version or "1.0.0",
        title=agent.title,
        description=agent.description,
        tools=tuple(
            m.AgentTool(
                spec=read_tool_spec(tool), permission=m.Permission.ALLOW if tool.name in trusted else m.Permission.ASK
            )
            for tool in agent.tools or ()
        ),
        options=tuple(_option(option) for option in agent.options or () if option.kind in set(m.OptionKind)),
        capabilities=_capabilities(agent.capabilities or {}),
    )


def _option(option: OptionBody) -> m.AgentOption:
    """A secret that has a value is masked, and the mask must not be sent back."""
    kind, default = m.OptionKind(option.kind), option.default or ""
    return m.AgentOption(
        name=option.name, kind=kind, title=option.title, description=option.description,
        default="" if kind is m.OptionKind.SECRET and default == SECRET_MASK else default,
        choices=tuple(option.choices or ()),
    )


def _capabilities(told: dict[str, dict[str, Any] | None]) -> m.AgentCapabilities:
    """A missing capability is not supported; a server that names no stream mode gives whole turns."""
    words = {group: tuple(leaves or ()) for group, leaves in told.items()}
    return m.AgentCapabilities(
        streaming=words.get("stream") or (STREAM_MODES[-1],), history=words.get("history", ()),
        images=words.get("image", ()), client_tools="tools" in words.get("application", ()),
    )
