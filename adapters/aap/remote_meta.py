"""What an AAP server tells of its agents, as the house knows agents."""

from typing import Any

from gateway.errors import BackendFailed
from gateway.model import AgentCard, AgentOption, AgentTool, Capabilities, OptionKind, Permission, ToolSpec

from .hearing_wire import AgentBody, MetaBody, OptionBody, ToolBody, read_as
from .views import MASK, TRUST

VERSION = 3
MODES = ("delta", "message", "none")
"""How a turn may be told, the best first."""


def card_of(body: Any, server: str, wanted: str | None) -> AgentCard:
    """The card of the agent wanted, or of the first there is."""
    meta = read_as(MetaBody, body, "the description")
    if meta.version != VERSION:
        raise BackendFailed(f"{server} speaks version {meta.version} of AAP; version {VERSION} is understood here")
    agent = next((agent for agent in meta.agents if wanted in (None, agent.name)), None)
    if agent is not None:
        return _card(agent)
    known = ", ".join(f"'{agent.name[:64]}'" for agent in meta.agents) or "none"
    raise BackendFailed(f"{server} has no agent{f' {wanted!r}' if wanted else ''}; it has {known}")


def mode_of(card: AgentCard) -> str:
    """The best way in which the agent can be heard; one that declares nothing is heard when it is done."""
    return next((mode for mode in MODES if mode in card.capabilities.streaming), MODES[-1])


def spec_of(tool: ToolBody) -> ToolSpec:
    return ToolSpec(
        name=tool.name, title=tool.title, description=tool.description or "", parameters=tool.parameters or {},
    )


def _card(agent: AgentBody) -> AgentCard:
    """AAP does not tell which tools its operator would have asked about: all but those that our own servers name."""
    trusted = (agent.capabilities or {}).get(TRUST) or {}
    return AgentCard(
        name=agent.name, version=agent.version or "1.0.0", title=agent.title, description=agent.description,
        tools=tuple(
            AgentTool(spec=spec_of(tool), permission=Permission.ALLOW if tool.name in trusted else Permission.ASK)
            for tool in agent.tools or ()
        ),
        options=tuple(_option(option) for option in agent.options or () if option.type in set(OptionKind)),
        capabilities=_capabilities(agent.capabilities or {}),
    )


def _option(option: OptionBody) -> AgentOption:
    """A secret that is there already is not shown, and what is shown in its place is not to be sent back."""
    kind, default = OptionKind(option.type), option.default or ""
    return AgentOption(
        name=option.name, kind=kind, title=option.title, description=option.description,
        default="" if kind is OptionKind.SECRET and default == MASK else default,
        choices=tuple(option.options or ()),
    )


def _capabilities(told: dict[str, dict[str, Any] | None]) -> Capabilities:
    """A word that is missing is not supported; a server that says nothing of streams gives whole turns."""
    words = {group: tuple(leaves or ()) for group, leaves in told.items()}
    return Capabilities(
        streaming=words.get("stream") or (MODES[-1],), history=words.get("history", ()),
        images=words.get("image", ()), client_tools="tools" in words.get("application", ()),
    )
