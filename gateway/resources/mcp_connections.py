"""What the MCP servers that a user sees offer now: those of config.yaml, and those that the user has registered."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import gateway.model as m
from gateway.errors import GatewayError, NotFound
from gateway.json_values import JsonObject
from gateway.ports import McpTools, ServerTool, ServerTools, ToolOutcome

from .mcp_server_records import StoredMcpServer
from .mcp_servers import McpServerService

MAX_ASKED_SERVERS = 20
"""So many of a user's own servers are connected to for one request, the oldest first; sessions have as many."""
STRICTNESS = (m.Permission.ALLOW, m.Permission.ASK, m.Permission.DENY)

Cards = Callable[[], Mapping[str, m.AgentCard]]


def strictest(one: m.Permission, other: m.Permission) -> m.Permission:
    return max(one, other, key=STRICTNESS.index)


@dataclass(frozen=True, slots=True)
class McpConnections:
    """The tools of MCP servers by the names of the servers; a server that does not answer is not connected."""

    servers: McpServerService
    cards: Cards
    tools: McpTools

    async def all(self, owner: str) -> dict[str, ServerTools]:
        """What all servers offer; servers that are switched off, or deleted meanwhile, are not asked."""
        found = [one for one in await self.servers.all(owner) if one.is_active]
        fixed = [one for one in found if one.definition is None]
        asked = [*fixed, *[one for one in found if one.definition is not None][:MAX_ASKED_SERVERS]]
        answers = await asyncio.gather(*(self._ask_if_there(owner, one) for one in asked))
        return {one.name: answer for one, answer in zip(asked, answers, strict=True) if answer is not None}

    async def of_server(self, owner: str, name: str) -> ServerTools:
        """What one server offers; `NotFound` if the user sees no server of this name."""
        found = await self.servers.get(owner, name)
        return await self._ask(owner, found) if found.is_active else ServerTools()

    def agents_with(self, server: str) -> tuple[str, ...]:
        """The agents to which config.yaml gives a server of this name."""
        return tuple(name for name, card in self.cards().items() if server in card.mcp_servers)

    async def call(
        self, server: str, tool: str, input: JsonObject, out: Callable[[str], None],
    ) -> ToolOutcome:
        """Call a tool of a server of config.yaml."""
        try:
            return await self.tools.call(self.agents_with(server)[0], server, tool, input, out)
        except GatewayError as error:
            return ToolOutcome(text=error.message, is_error=True)

    async def _ask_if_there(self, owner: str, server: StoredMcpServer) -> ServerTools | None:
        try:
            return await self._ask(owner, server)
        except NotFound:
            return None

    async def _ask(self, owner: str, server: StoredMcpServer) -> ServerTools:
        if server.definition is not None:
            return await self.tools.of_user(owner, await self.servers.session_server(owner, server.name))
        agents = self.agents_with(server.name)
        return _joined(await asyncio.gather(*(self.tools.of_agent(agent, server.name) for agent in agents)))


def _joined(answers: list[ServerTools]) -> ServerTools:
    """Servers of one name that several agents have; a tool of several has the strictest of their permissions."""
    found: dict[str, ServerTool] = {}
    for one in (tool for answer in answers for tool in answer.tools):
        before = found.get(one.spec.name, one)
        found[one.spec.name] = ServerTool(
            spec=before.spec, permission=strictest(before.permission, one.permission))
    times = [answer.connected_at for answer in answers if answer.connected_at is not None]
    return ServerTools(
        tools=tuple(found.values()), is_connected=bool(answers) and all(answer.is_connected for answer in answers),
        connected_at=max(times, default=None),
    )
