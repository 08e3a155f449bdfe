"""Reads asks of AAP: which side runs a call, and what a call that a server left open asks a person."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

import gateway.model as m
from adapters.aap.bodies import MessageBody, SessionBody
from gateway.client import read_continuation, read_questions, read_rollback

from .readers import AAP, CallFrame, read_tool_spec


class SessionTools(Struct, frozen=True, kw_only=True):
    """The known tools of a session: those of the client, and those of the server."""

    client: frozenset[str] = frozenset()
    server: Mapping[str, m.Permission] = {}
    titles: Mapping[str, str] = {}

    def call(self, said: CallFrame) -> m.ToolCall:
        is_client = said.name in self.client
        return m.ToolCall(
            call_id=said.tool_call_id, name=said.name, input=said.input or {},
            origin=m.ToolOrigin.CLIENT if is_client else m.ToolOrigin.BUILTIN,
            permission=m.Permission.ALLOW if is_client else self.server.get(said.name, m.Permission.ALLOW),
            display_name=self.titles.get(said.name),
        )

    def ask_without_call(self, said: CallFrame) -> m.AnyAsk | None:
        """The ask that such a call stands for; a declared tool of such a name is that tool."""
        if said.name in self.client or said.name in self.server:
            return None
        table, given = AAP.table, said.input or {}
        block = table.object("asked.call", call=m.ToolCall(call_id=said.tool_call_id, name=said.name, input=given))
        if table.is_object("asked.continuation", block):
            return read_continuation(given)
        return read_rollback(given) if table.is_object("asked.rollback", block) else None

    def is_ask(self, call: m.ToolCall) -> bool:
        """Whether a call stands for an ask."""
        said = CallFrame(tool_call_id=call.call_id, name=call.name, input=call.input)
        return self.ask_without_call(said) is not None

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
        told = AAP.read_fitting("questions", call.input)
        questions = read_questions(told["questions"]) if told else ()
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
