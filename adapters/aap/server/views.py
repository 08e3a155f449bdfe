"""AAP's bodies: sessions and agents as the table spells them."""

from collections.abc import Iterable
from typing import Any

import gateway.model as m
from adapters.aap.wire import SECRET_MASK, TRUST_CAPABILITY
from gateway.ports import DialectTable

OBJECTS = {
    "meta": ("agents",),
    "agent": ("name", "version", "title", "description", "tools", "options", "capabilities", "how_to_answer"),
    "tool": ("name", "title", "description", "parameters"),
    "option.text": ("name", "title", "description", "choices", "default"),
    "option.secret": ("name", "title", "description", "choices", "default"),
    "option.select": ("name", "title", "description", "choices", "default"),
    "created": ("session_id",),
    "session": ("session_id", "agent", "tools"),
    "session.agent": ("name", "tools", "options"),
    "server_tool": ("name", "trust"),
    "sessions": ("sessions", "next"),
    "history.full": ("messages",),
    "history.compacted": ("messages",),
    "message.system": ("content",),
    "message.user": ("content",),
    "message.assistant": ("content",),
    "message.tool": ("call_id", "content"),
    "message.asked": ("calls",),
    "asked.call": ("call",),
    "asked.continuation": ("request_id", "ask"),
    "asked.rollback": ("request_id", "ask"),
    "turn": ("stop_reason", "messages"),
}
TURN_CAPABILITIES = ("resume", "interrupt")
"""The names of what `GET` and `DELETE` do at `turns/current`."""


# -- agents -----------------------------------------------------------------------------------------------------------

def meta_body(table: DialectTable, cards: Iterable[m.AgentCard]) -> Any:
    return table.object("meta", agents=[_agent(table, card) for card in cards])


def _agent(table: DialectTable, card: m.AgentCard) -> Any:
    return table.object(
        "agent", name=card.name, version=card.version, title=card.title, description=card.description,
        tools=[_tool(table, tool.spec) for tool in card.tools], options=[_option(table, o) for o in card.options],
        capabilities=_capabilities(card), how_to_answer=m.HOW_TO_ANSWER,
    )


def _tool(table: DialectTable, spec: m.ToolSpec) -> Any:
    return table.object(
        "tool", name=spec.name, title=spec.title, description=spec.description,
        parameters=spec.parameters or {"type": "object"},
    )


def _option(table: DialectTable, option: m.AgentOption) -> Any:
    hidden = option.kind is m.OptionKind.SECRET and option.default
    return table.object(
        f"option.{option.kind}", name=option.name, title=option.title, description=option.description,
        choices=option.choices, default=SECRET_MASK if hidden else option.default,
    )


def _capabilities(card: m.AgentCard) -> dict[str, Any]:
    """Capabilities as empty objects; one that the agent does not have is absent.

    Not in AAP: what can be done with a turn, and which tools need no permission if the client names none.
    """
    can = card.capabilities
    groups = {
        "history": can.history, "stream": can.streaming, "image": can.images, "turn": TURN_CAPABILITIES,
        TRUST_CAPABILITY: tuple(tool.spec.name for tool in card.tools if tool.permission is m.Permission.ALLOW),
    }
    told: dict[str, Any] = {group: {word: {} for word in words} for group, words in groups.items() if words}
    return told | ({"application": {"tools": {}}} if can.client_tools else {})


# -- sessions ---------------------------------------------------------------------------------------------------------

def session_body(table: DialectTable, view: m.SessionView, card: m.AgentCard) -> Any:
    filled = card.filled(view.settings)
    hidden = {name: SECRET_MASK if value else "" for name, value in filled.secrets.items()}
    tools = {t.spec.name: t.permission for t in card.tools} if filled.tools is None else filled.tools
    agent = table.object(
        "session.agent", name=view.agent, options=filled.options | hidden,
        tools=[
            table.object("server_tool", name=name, trust=permission is m.Permission.ALLOW)
            for name, permission in tools.items() if permission is not m.Permission.DENY
        ],
    )
    client_tools = [_tool(table, spec) for spec in view.settings.client_tools]
    return table.object("session", session_id=view.session_id, agent=agent, tools=client_tools or None)
