"""Reads what AAP servers send, by the table: values, calls, and the asks that a call left open stands for."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

import gateway.model as m
from adapters.aap.bodies import AgentBody, MessageBody, MetaBody, OptionBody, SessionBody, ToolBody
from adapters.aap.wire import SECRET_MASK, TRUST_CAPABILITY, VERSION
from gateway.client import read_continuation, read_questions, read_rollback
from gateway.errors import BackendFailed
from gateway.json_values import JsonObject, JsonValue
from mappings.language import ServerTable

AAP = ServerTable("adapters.aap", "sse")


class CallFrame(Struct, frozen=True, kw_only=True):
    """A call of a tool as a server sends it."""

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


def read_agent_card(body: JsonValue, server: str, wanted: str | None) -> m.AgentCard:
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


def _capabilities(capabilities: dict[str, JsonObject | None]) -> m.AgentCapabilities:
    """A missing capability is not supported; a server that names no stream mode gives whole turns."""
    words = {group: tuple(leaves or ()) for group, leaves in capabilities.items()}
    return m.AgentCapabilities(
        streaming=words.get("stream") or (STREAM_MODES[-1],), history=words.get("history", ()),
        images=words.get("image", ()), client_tools="tools" in words.get("application", ()),
    )


class SessionTools(Struct, frozen=True, kw_only=True):
    """The known tools of a session: those of the client, and those of the server."""

    client: frozenset[str] = frozenset()
    server: Mapping[str, m.Permission] = {}
    titles: Mapping[str, str] = {}

    def call(self, frame: CallFrame) -> m.ToolCall:
        is_client = frame.name in self.client
        return m.ToolCall(
            call_id=frame.tool_call_id, name=frame.name, input=frame.input or {},
            origin=m.ToolOrigin.CLIENT if is_client else m.ToolOrigin.BUILTIN,
            permission=m.Permission.ALLOW if is_client else self.server.get(frame.name, m.Permission.ALLOW),
            display_name=self.titles.get(frame.name),
        )

    def ask_without_call(self, frame: CallFrame) -> m.AnyAsk | None:
        """The ask that such a call stands for; a declared tool of such a name is that tool."""
        if frame.name in self.client or frame.name in self.server:
            return None
        table, given = AAP.table, frame.input or {}
        block = table.object("asked.call", call=m.ToolCall(call_id=frame.tool_call_id, name=frame.name, input=given))
        if table.is_object("asked.continuation", block):
            return read_continuation(given)
        return read_rollback(given) if table.is_object("asked.rollback", block) else None

    def is_ask(self, call: m.ToolCall) -> bool:
        """Whether a call stands for an ask."""
        frame = CallFrame(tool_call_id=call.call_id, name=call.name, input=call.input)
        return self.ask_without_call(frame) is not None

    def asks(self, calls: Sequence[m.ToolCall], *, is_all: bool = True) -> list[tuple[m.ToolCall, m.AnyAsk]]:
        """The asks of the calls that a waiting server left open.

        The server may still be running a tool that needs no permission, or one that it did not declare; if it has
        called nothing else, it waits for that call.
        """
        found = [(call, ask) for call in calls if (ask := self._ask(call)) is not None]
        return found if found or not is_all else [(call, _permission(call)) for call in calls]

    def _ask(self, call: m.ToolCall) -> m.AnyAsk | None:
        if call.origin is m.ToolOrigin.CLIENT:
            return m.ClientToolAsk(call=call)
        if call.name in self.server:
            return None if call.permission is m.Permission.ALLOW else _permission(call)
        fields = AAP.read_fitting("questions", call.input)
        questions = read_questions(fields["questions"]) if fields else ()
        return m.QuestionAsk(questions=questions, call=call) if questions else None


NO_TOOLS_KNOWN = SessionTools()


def session_tools_of(card: m.AgentCard, settings: m.Settings) -> SessionTools:
    """The tools of a session with these settings."""
    chosen = settings.tools
    return SessionTools(
        client=frozenset(spec.name for spec in settings.client_tools),
        server={tool.spec.name: tool.permission if chosen is None else chosen.get(tool.spec.name, m.Permission.DENY)
                for tool in card.tools},
        titles=tool_titles(card, settings.client_tools),
    )


def tool_titles(card: m.AgentCard, client_tools: Iterable[m.ToolSpec]) -> dict[str, str]:
    specs = (*(tool.spec for tool in card.tools), *client_tools)
    return {spec.name: spec.title for spec in specs if spec.title}


def _permission(call: m.ToolCall) -> m.PermissionAsk:
    return m.PermissionAsk(call=call, description=f"Run {call.display_name or call.name}?")


def _session_tools(card: m.AgentCard, session: SessionBody) -> SessionTools:
    trusted = {tool.name: m.Permission.ALLOW if tool.trust else m.Permission.ASK for tool in session.agent.tools or ()}
    return SessionTools(
        client=frozenset(tool.name for tool in session.tools or ()),
        server={tool.spec.name: trusted.get(tool.spec.name, m.Permission.DENY) for tool in card.tools},
        titles=tool_titles(card, map(read_tool_spec, session.tools or ())),
    )


def _open_calls(messages: Iterable[MessageBody]) -> list[m.ToolCall]:
    """The calls since the last message of a person that have no result."""
    calls: dict[str, m.ToolCall] = {}
    for message in messages:
        if message.role == m.Role.USER:
            calls.clear()
        elif message.role == m.Role.TOOL:
            calls.pop(message.call_id or "", None)
        else:
            parts = m.parts_of(message.content or ())
            calls.update((p.call.call_id, p.call) for p in parts if isinstance(p, m.ToolUsePart))
    return list(calls.values())
