"""Reads what AAP servers send: unknown members are ignored, and the table's maps are read in reverse."""

from functools import cache
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Struct

import gateway.model as m
from adapters.aap.wire import SECRET_MASK, TRUST_CAPABILITY
from gateway.errors import BackendFailed
from gateway.field_errors import describe_struct_error
from mappings.language import Table, builtin_table

Id = Annotated[str, msgspec.Meta(min_length=1)]
PathId = Annotated[str, msgspec.Meta(pattern=r"^(?!\.{1,2}$)[^/%?#\s]+$")]
"""An id that is to be part of an address."""
RawContent = str | list[dict[str, Any]] | None
"""Content as a server sends it: text, or blocks."""


class ServerBody(Struct, frozen=True, kw_only=True, rename="camel"):
    """A body that a server sends; its fields have AAP's names."""


# -- the stream -------------------------------------------------------------------------------------------------------
class CallFrame(ServerBody, frozen=True, kw_only=True, rename="camel"):
    tool_call_id: Id
    name: Id
    input: dict[str, Any] | None = None


# -- bodies -----------------------------------------------------------------------------------------------------------
class MessageBody(ServerBody, frozen=True, kw_only=True, rename="camel"):
    role: str
    content: RawContent = None
    tool_call_id: str | None = None


class TurnBody(ServerBody, frozen=True, kw_only=True, rename="camel"):
    """A turn that was not streamed."""

    stop_reason: str
    messages: list[MessageBody] = []


class ToolBody(ServerBody, frozen=True, kw_only=True, rename="camel"):
    name: Id
    title: str | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None


class OptionBody(ServerBody, frozen=True, kw_only=True, rename="camel"):
    type: str
    name: Id
    title: str | None = None
    description: str | None = None
    default: str | None = None
    options: list[str] | None = None


class AgentBody(ServerBody, frozen=True, kw_only=True, rename="camel"):
    name: Id
    version: str | None = None
    title: str | None = None
    description: str | None = None
    tools: list[ToolBody] | None = None
    options: list[OptionBody] | None = None
    capabilities: dict[str, dict[str, Any] | None] | None = None


class MetaBody(ServerBody, frozen=True, kw_only=True, rename="camel"):
    version: int
    agents: list[AgentBody]


class ServerToolBody(ServerBody, frozen=True, kw_only=True, rename="camel"):
    name: str
    trust: bool | None = None


class SessionAgentBody(ServerBody, frozen=True, kw_only=True, rename="camel"):
    """The options that a session has chosen of its agent."""

    name: str
    tools: list[ServerToolBody] | None = None


class SessionBody(ServerBody, frozen=True, kw_only=True, rename="camel"):
    agent: SessionAgentBody
    tools: list[ToolBody] | None = None


class SessionListItem(ServerBody, frozen=True, kw_only=True, rename="camel"):
    session_id: PathId
    agent: SessionAgentBody


class SessionsBody(ServerBody, frozen=True, kw_only=True, rename="camel"):
    sessions: list[SessionListItem]
    next: str | None = None


class CreatedBody(ServerBody, frozen=True, kw_only=True, rename="camel"):
    session_id: PathId


class HistoriesBody(ServerBody, frozen=True, kw_only=True, rename="camel"):
    full: list[MessageBody] | None = None
    compacted: list[MessageBody] | None = None


class HistoryBody(ServerBody, frozen=True, kw_only=True, rename="camel"):
    history: HistoriesBody


# -- reading ----------------------------------------------------------------------------------------------------------
Body = TypeVar("Body", bound=ServerBody)


def read_body(kind: type[Body], body: Any, what: str) -> Body:
    """The body as this model; `what` names it in the error if it does not fit."""
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        raise BackendFailed(f"{what} of the server cannot be understood: {describe_struct_error(error)}") from None


def read_content(said: RawContent) -> m.Content:
    """Content as AAP's table reads it, its pictures with the type that their addresses tell."""
    return with_media_types(builtin_aap_table().read_content(said or ""))


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


@cache
def builtin_aap_table() -> Table:
    """The table that comes with the gateway; a server knows nothing of this deployment's overrides."""
    from adapters.aap import DIALECT  # the dialect imports its decoder, so it cannot be imported at the top
    return builtin_table(DIALECT)


VERSION = 3
STREAM_MODES = ("delta", "message", "none")
"""The stream modes, the best first."""


def read_agent_card(body: Any, server: str, wanted: str | None) -> m.AgentCard:
    """The card of the agent wanted, or of the first there is."""
    meta = read_body(MetaBody, body, "the description")
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
        options=tuple(_option(option) for option in agent.options or () if option.type in set(m.OptionKind)),
        capabilities=_capabilities(agent.capabilities or {}),
    )


def _option(option: OptionBody) -> m.AgentOption:
    """A secret that has a value is masked, and the mask must not be sent back."""
    kind, default = m.OptionKind(option.type), option.default or ""
    return m.AgentOption(
        name=option.name, kind=kind, title=option.title, description=option.description,
        default="" if kind is m.OptionKind.SECRET and default == SECRET_MASK else default,
        choices=tuple(option.options or ()),
    )


def _capabilities(told: dict[str, dict[str, Any] | None]) -> m.AgentCapabilities:
    """A missing capability is not supported; a server that names no stream mode gives whole turns."""
    words = {group: tuple(leaves or ()) for group, leaves in told.items()}
    return m.AgentCapabilities(
        streaming=words.get("stream") or (STREAM_MODES[-1],), history=words.get("history", ()),
        images=words.get("image", ()), client_tools="tools" in words.get("application", ()),
    )
