"""AAP's bodies: sessions and agents as the table spells them."""

from collections.abc import Iterable
from typing import Any

import gateway.model as m
from adapters.aap.bodies import (
    AgentBody,
    MetaBody,
    OptionBody,
    ServerToolBody,
    SessionAgentBody,
    SessionBody,
    ToolBody,
)
from adapters.aap.wire import ANY_PARAMETERS, SECRET_MASK, TRUST_CAPABILITY, VERSION
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import DialectTable

TURN_CAPABILITIES = ("resume", "interrupt")
"""The names of what `GET` and `DELETE` do at `turns/current`."""


# -- agents -----------------------------------------------------------------------------------------------------------

def meta_body(table: DialectTable, cards: Iterable[m.AgentCard]) -> JsonValue:
    return table.object(MetaBody.row, MetaBody(version=VERSION, agents=[_agent(card) for card in cards]))


def _agent(card: m.AgentCard) -> AgentBody:
    return AgentBody(
        name=card.name, version=card.version, title=card.title, description=card.description,
        tools=[_tool(tool.spec) for tool in card.tools], options=[_option(option) for option in card.options],
        capabilities=_capabilities(card), how_to_answer=m.HOW_TO_ANSWER,
    )


def _tool(spec: m.ToolSpec) -> ToolBody:
    return ToolBody(
        name=spec.name, title=spec.title, description=spec.description, parameters=spec.parameters or ANY_PARAMETERS
    )


def _option(option: m.AgentOption) -> OptionBody:
    hidden = option.kind is m.OptionKind.SECRET and option.default
    return OptionBody(
        kind=option.kind, name=option.name, title=option.title, description=option.description,
        choices=list(option.choices) if option.kind is m.OptionKind.SELECT else None,
        default=SECRET_MASK if hidden else option.default,
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
    capabilities: JsonObject = {group: {word: {} for word in words} for group, words in groups.items() if words}
    return capabilities | ({"application": {"tools": {}}} if can.client_tools else {})


# -- sessions ---------------------------------------------------------------------------------------------------------

def session_body(table: DialectTable, view: m.SessionView, card: m.AgentCard) -> JsonValue:
    return table.object(SessionBody.row, _session(view, card))


def sessions_body(
    table: DialectTable, page: Iterable[tuple[m.SessionView, m.AgentCard]], following: str | None
) -> JsonValue:
    return table.object("sessions", sessions=[_session(view, card) for view, card in page], next=following)


def _session(view: m.SessionView, card: m.AgentCard) -> SessionBody:
    filled = card.filled(view.settings)
    hidden = {name: SECRET_MASK if value else "" for name, value in filled.secrets.items()}
    tools = {t.spec.name: t.permission for t in card.tools} if filled.tools is None else filled.tools
    agent = SessionAgentBody(
        name=view.agent_id, options=filled.options | hidden,
        tools=[
            ServerToolBody(name=name, trust=permission is m.Permission.ALLOW)
            for name, permission in tools.items() if permission is not m.Permission.DENY
        ],
    )
    client_tools = [_tool(spec) for spec in view.settings.client_tools]
    return SessionBody(session_id=view.session_id, agent=agent, tools=client_tools or None)
