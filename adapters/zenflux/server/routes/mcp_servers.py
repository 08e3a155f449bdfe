"""MCP servers over HTTP: the user's register, and which servers an agent's sessions have."""

from typing import Any

from aiohttp import web

from adapters.zenflux.bodies import McpServerBody, spell
from adapters.zenflux.server import views
from adapters.zenflux.server.agents import agent_errors, mcp_connections, mcp_server_service
from adapters.zenflux.wire import (
    AgentMcpServer,
    CommandFields,
    McpServerChange,
    NewMcpServer,
    ZenfluxSettings,
    bool_param,
)
from gateway.errors import Forbidden, Invalid
from gateway.http import OWNER, Answers, Context, read_json
from gateway.ports import ServerTools
from gateway.resources import McpServerChoice, McpServerDefinition, McpServerNotFound, StoredMcpServer

RESERVED_NAMES = frozenset(("available", "register"))
"""Names that are paths; they cannot be the names of servers."""
NOT_ASKED = ServerTools()
CONNECTION = {"...": "mcp_server", "is_connected": bool, "connected_tools_count": int}
"""The shape of a server of the register."""


class McpServerRoutes:
    """The routes of MCP servers, one method each."""

    def __init__(self, context: Context[ZenfluxSettings]) -> None:
        self.context = context

    # -- the register ---------------------------------------------------------------------------------------------

    @Answers(views.wrapped({"server_name": str, "registered_tools": [str], "failed_tools": [str]}), reads=NewMcpServer)
    async def register(self, request: web.Request) -> web.Response:
        """Store a server; nothing is connected to before a session needs it."""
        body = await read_json(request, NewMcpServer)
        _refuse_command(body)
        if body.server_name in RESERVED_NAMES:
            raise Invalid(f"server_name: '{body.server_name}' is the name of a path; choose another",
                          param="server_name")
        auth = body.auth_config
        definition = McpServerDefinition(
            url=body.server_url, auth_type=body.auth_type, description=body.description or "",
            auth_env=body.auth_env or (auth and (auth.token_env or auth.api_key_env)) or None,
            capability=body.capability, tools=None if body.tool_filter is None else tuple(body.tool_filter),
        )
        token = (auth and (auth.token or auth.api_key)) or None
        made = await mcp_server_service(self.context).register(request[OWNER], body.server_name, definition, token)
        return views.reply(self.context, {"server_name": made.name, "registered_tools": [], "failed_tools": []})

    @Answers(views.wrapped({"total": int, "servers": [CONNECTION]}), query={"include_inactive": bool})
    async def listed(self, request: web.Request) -> web.Response:
        inactive = bool_param(request, "include_inactive", default=False)
        found = await mcp_server_service(self.context).all(request[OWNER])
        offered = await mcp_connections(self.context).all(request[OWNER])
        shown = [self._connection(one, offered.get(one.name, NOT_ASKED)) for one in found if inactive or one.is_active]
        return views.reply(self.context, {"total": len(shown), "servers": shown})

    @Answers(views.wrapped({**CONNECTION, "connected_tools": [str]}))
    async def get(self, request: web.Request) -> web.Response:
        found = await mcp_server_service(self.context).get(request[OWNER], request.match_info["name"])
        offered = await mcp_connections(self.context).of_server(request[OWNER], found.name)
        names = [one.spec.name for one in offered.tools] if offered.is_connected else []
        return views.reply(self.context, {**self._connection(found, offered), "connected_tools": names})

    @Answers(views.wrapped("mcp_server"), reads=McpServerChange)
    async def update(self, request: web.Request) -> web.Response:
        body = await read_json(request, McpServerChange)
        _refuse_command(body)
        given = body.model_dump(exclude_none=True, exclude=set(CommandFields.model_fields))
        fields = {"url" if word == "server_url" else word: value for word, value in given.items()}
        changed = await mcp_server_service(self.context).change(request[OWNER], request.match_info["name"], **fields)
        return views.reply(self.context, self._shown(changed))

    @Answers(views.wrapped({"server_name": str}))
    async def delete(self, request: web.Request) -> web.Response:
        await mcp_server_service(self.context).delete(request[OWNER], request.match_info["name"])
        return views.reply(self.context, {"server_name": request.match_info["name"]})

    # -- of an agent ----------------------------------------------------------------------------------------------

    @Answers(views.wrapped({"agent_id": str, "total": int, "mcps": ["mcp_server"]}), query={"include_inactive": bool})
    async def of_agent(self, request: web.Request) -> web.Response:
        inactive, agent_id = bool_param(request, "include_inactive", default=False), request.match_info["id"]
        with agent_errors(agent_id):
            found = await mcp_server_service(self.context).of_agent(request[OWNER], agent_id)
        shown = [self._shown(one) for one in found if inactive or one.is_active]
        return views.reply(self.context, {"agent_id": agent_id, "total": len(shown), "mcps": shown})

    @Answers(
        views.wrapped({
            "agent_id": str, "total": int, "enabled_count": int,
            "mcps": [{"...": "mcp_server", "is_enabled_by_agent": bool}],
        }), query={"include_enabled": bool},
    )
    async def available(self, request: web.Request) -> web.Response:
        """The servers that are registered, and those that the agent has."""
        with_enabled, agent_id = bool_param(request, "include_enabled", default=True), request.match_info["id"]
        service = mcp_server_service(self.context)
        with agent_errors(agent_id):
            enabled = {one.name: one for one in await service.of_agent(request[OWNER], agent_id)}
        known = {one.name: one for one in await service.all(request[OWNER]) if one.definition is not None}
        shown = [
            {**self._shown(one), "is_enabled_by_agent": name in enabled}
            for name, one in {**enabled, **known}.items() if with_enabled or name not in enabled
        ]
        return views.reply(self.context, {
            "agent_id": agent_id, "total": len(shown), "enabled_count": len(enabled), "mcps": shown})

    @Answers(views.wrapped("mcp_server"))
    async def get_of_agent(self, request: web.Request) -> web.Response:
        agent_id, name = request.match_info["id"], request.match_info["name"]
        with agent_errors(agent_id):
            found = await mcp_server_service(self.context).of_agent(request[OWNER], agent_id)
        for one in found:
            if one.name == name:
                return views.reply(self.context, self._shown(one))
        raise McpServerNotFound(f"agent '{agent_id}' has no MCP server '{name[:128]}'")

    @Answers(views.wrapped("mcp_server"), reads=AgentMcpServer, may_be_empty=True)
    async def enable(self, request: web.Request) -> web.Response:
        agent_id, body = request.match_info["id"], await _choice(request)
        choice = McpServerChoice(auth_env=body.auth_env or None, metadata=body.metadata or {})
        with agent_errors(agent_id):
            made = await mcp_server_service(self.context).enable(
                request[OWNER], agent_id, request.match_info["name"], choice)
        return views.reply(self.context, self._shown(made))

    @Answers(views.wrapped("mcp_server"), reads=AgentMcpServer)
    async def change(self, request: web.Request) -> web.Response:
        agent_id, body = request.match_info["id"], await read_json(request, AgentMcpServer)
        with agent_errors(agent_id):
            changed = await mcp_server_service(self.context).change_choice(
                request[OWNER], agent_id, request.match_info["name"], **body.model_dump(exclude_none=True))
        return views.reply(self.context, self._shown(changed))

    @Answers(views.wrapped({"agent_id": str, "server_name": str}))
    async def disable(self, request: web.Request) -> web.Response:
        agent_id, name = request.match_info["id"], request.match_info["name"]
        with agent_errors(agent_id):
            await mcp_server_service(self.context).disable(request[OWNER], agent_id, name)
        return views.reply(self.context, {"agent_id": agent_id, "server_name": name})

    # -- what clients see -----------------------------------------------------------------------------------------

    def _shown(self, server: StoredMcpServer, connected_at: float | None = None) -> Any:
        """A server without tokens; the address of a server of config.yaml is the operator's, and is not shown."""
        definition, choice = server.definition or McpServerDefinition(url=""), server.choice or McpServerChoice()
        return spell(self.context.table, McpServerBody(
            number=server.number, name=server.name, url=definition.url,
            auth_type=definition.auth_type, auth_env=choice.auth_env or definition.auth_env,
            agent_id=server.agent_id, is_global=server.agent_id is None, is_active=server.is_active,
            capability=definition.capability, description=definition.description, created_at=server.created_at,
            updated_at=server.updated_at, connected_at=connected_at, metadata=choice.metadata,
        ))

    def _connection(self, server: StoredMcpServer, offered: ServerTools) -> dict[str, Any]:
        """The body of a registered server, with the state of its connection."""
        return {
            **self._shown(server, offered.connected_at), "is_connected": offered.is_connected,
            "connected_tools_count": len(offered.tools) if offered.is_connected else 0,
        }


def _refuse_command(body: CommandFields) -> None:
    if body.command is not None or body.args is not None:
        raise Forbidden("an MCP server of a client is an address: commands of clients are never run")


async def _choice(request: web.Request) -> AgentMcpServer:
    """The choice in the body of the request; the default choice if the request has no body."""
    if not request.can_read_body:
        return AgentMcpServer()
    return await read_json(request, AgentMcpServer)


def routes_of_mcp_servers(context: Context[ZenfluxSettings]) -> list[web.RouteDef]:
    routes, of_agents, at = McpServerRoutes(context), f"{context.mount}/agents/{{id}}/mcp", f"{context.mount}/tools/mcp"
    return [
        web.get(of_agents, routes.of_agent),
        web.get(f"{of_agents}/available", routes.available),
        web.get(f"{of_agents}/{{name}}", routes.get_of_agent),
        web.post(f"{of_agents}/{{name}}", routes.enable),
        web.put(f"{of_agents}/{{name}}", routes.change),
        web.delete(f"{of_agents}/{{name}}", routes.disable),
        web.post(f"{at}/register", routes.register),
        web.get(at, routes.listed),
        web.get(f"{at}/{{name}}", routes.get),
        web.put(f"{at}/{{name}}", routes.update),
        web.delete(f"{at}/{{name}}", routes.delete),
    ]
