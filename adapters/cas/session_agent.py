"""What may change of a session's agent once the session is there: its tools and its MCP servers, and nothing else."""

from typing import Any, NamedTuple

from msgspec.structs import replace

from gateway.errors import Conflict, Invalid
from gateway.model import PRIVATE, Configure, SessionStatus, SessionView
from gateway.web import checked

from .catalog_tools import client_tools, server_tools
from .catalog_wire import AgentFields
from .desk import BUSY, Desk

FIXED = ("model", "system", "skills", "name", "description")
"""A session keeps these as they were when it was made."""


class Change(NamedTuple):
    """Settings to go on with, and the agent as clients see it from now on."""

    settings: Configure
    snapshot: dict[str, Any]


async def change_of(desk: Desk, view: SessionView, given: dict[str, Any]) -> Change:
    """What is not named stays; a turn that runs is not disturbed."""
    fixed = next((word for word in FIXED if word in given), None)
    if fixed is not None:
        raise Invalid(f"agent.{fixed}: a session keeps what it was made with; tools and mcp_servers can change",
                      param=f"agent.{fixed}")
    if view.status is SessionStatus.RUNNING:
        raise Conflict(BUSY)
    said = checked(AgentFields, given, "agent")
    desk.house.check_addresses(said.addresses("agent."))
    settings = view.settings
    if said.tools is not None:
        tools = server_tools(said.tools, desk.card(view))
        settings = replace(settings, tools=tools, client_tools=client_tools(said.tools))
    told = said.model_dump(include={"tools", "mcp_servers"}, exclude_none=True, exclude_unset=True)
    if "mcp_servers" in told:
        settings = replace(settings, mcp_servers=tuple(told["mcp_servers"]))
    return Change(Configure(settings=settings), {**await desk.agent(view), **told})


def kept_with(view: SessionView, dialect: str, changes: dict[str, Any]) -> dict[str, Any]:
    """The part of the metadata that no client is shown, with these changes in it."""
    private = view.metadata.get(PRIVATE) or {}
    return {PRIVATE: {**private, dialect: {**view.private(dialect), **changes}}}
