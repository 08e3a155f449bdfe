"""MCP servers of the ZenFlux reference server: the register, and which of them an agent has."""

import re
from itertools import count

from aiohttp import web
from yarl import URL

from conformance.faults.zenflux.agents import Agents
from conformance.faults.zenflux.front import Front, Kind
from conformance.faults.zenflux.state import Body, Refusal, State, object_time

NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
RESERVED = ("available", "register")
AUTH_TYPES = ("none", "api_key", "bearer", "oauth2")
PRIVATE = re.compile(r"localhost|127\..*|10\..*|192\.168\..*|169\.254\..*|\[?::1\]?")
FIELDS: dict[str, Kind] = {
    "server_name": str,
    "server_url": str,
    "auth_type": str,
    "auth_config": dict,
    "auth_env": str,
    "description": str,
    "capability": str,
    "is_active": bool,
    "metadata": dict,
    "command": str,
    "args": list,
}
CHANGES = ("server_url", "auth_type", "auth_env", "description", "capability", "is_active", "metadata")


class McpServers:
    """Answers requests below /tools/mcp, and below /agents/{id}/mcp."""

    def __init__(self, state: State, front: Front, agents: Agents) -> None:
        self.state = state
        self.front = front
        self.agents = agents
        self._count = count(1)

    def mcp_server_routes(self) -> list[web.RouteDef]:
        one, of_agent = "/tools/mcp/{name}", "/agents/{id}/mcp"
        return [
            web.post("/tools/mcp/register", self.post_server),
            web.get("/tools/mcp", self.get_servers),
            web.get(one, self.get_server),
            web.put(one, self.put_server),
            web.delete(one, self.delete_server),
            web.get(of_agent, self.get_enabled),
            web.get(f"{of_agent}/available", self.get_available),
            web.post(f"{of_agent}/{{name}}", self.post_enabled),
            web.put(f"{of_agent}/{{name}}", self.put_enabled),
            web.delete(f"{of_agent}/{{name}}", self.delete_enabled),
        ]

    # -- what there is -------------------------------------------------------------------------------------------------

    def server(self, name: str) -> Body:
        try:
            return self.state.mcp_servers[name]
        except KeyError:
            raise Refusal(404, "MCP_NOT_FOUND", "There is no such MCP server.") from None

    def enabled_of(self, agent: str) -> dict[str, Body]:
        """The servers of an agent by name."""
        return {item["server_name"]: item for item in self.state.enabled.values() if item["agent_id"] == agent}

    def enabled(self, agent: str, name: str) -> Body:
        try:
            return self.enabled_of(agent)[name]
        except KeyError:
            raise Refusal(404, "MCP_NOT_FOUND", "The agent has no such MCP server.") from None

    def agent_id(self, request: web.Request) -> str:
        return str(self.agents.agent(request.match_info["id"])["agent_id"])

    def connection(self, server: Body) -> Body:
        """A server of the register, and that nobody is connected to it."""
        return {**server, "is_connected": False, "connected_tools_count": 0}

    # -- what makes sense ----------------------------------------------------------------------------------------------

    def check_server(self, about: Body) -> None:
        """Refuse an address or a way to authenticate that makes no sense, and then what is forbidden."""
        url = URL(about["server_url"]) if "server_url" in about else None
        if url is not None and (url.scheme not in ("http", "https") or not url.host or url.user):
            raise Refusal(400, "VALIDATION_ERROR", "server_url is no address.")
        if about.get("auth_type", "none") not in AUTH_TYPES:
            raise Refusal(400, "VALIDATION_ERROR", "There is no such auth_type.")
        self.check_secret(about)
        self.check_rights(about, url)

    def check_secret(self, about: Body) -> None:
        if about.get("auth_env"):
            raise Refusal(400, "VALIDATION_ERROR", "You have no secret of this name.")

    def check_rights(self, about: Body, url: URL | None) -> None:
        if "command" in about or "args" in about:
            raise Refusal(403, "FORBIDDEN", "Commands of clients are not run.")
        if url is not None and PRIVATE.fullmatch(url.host or ""):
            raise Refusal(403, "FORBIDDEN", "The address is a private one.")

    def check_name(self, about: Body) -> None:
        for name in ("server_name", "server_url"):
            if not about.get(name):
                raise Refusal(400, "VALIDATION_ERROR", f"{name} is required.")
        if not NAME.fullmatch(about["server_name"]) or about["server_name"] in RESERVED:
            raise Refusal(400, "VALIDATION_ERROR", "A server cannot have this name.")

    # -- changes -------------------------------------------------------------------------------------------------------

    def register_server(self, about: Body) -> Body:
        self.check_name(about)
        self.check_server(about)
        name, now = about["server_name"], object_time()
        if name in self.state.mcp_servers:
            raise Refusal(409, "ALREADY_EXISTS", "There is a server of this name.")
        kept = {key: about[key] for key in CHANGES if key in about}
        usual: Body = {"auth_type": "none", "auth_env": None, "is_active": True, "capability": None}
        usual |= {"id": next(self._count), "server_name": name, "original_name": name, "agent_id": None}
        usual |= {"is_global": True, "description": "", "registered_tools": [], "created_at": now, "updated_at": now}
        self.keep_server({**usual, "last_connected_at": None, "metadata": {}, **kept})
        return {"server_name": name, "registered_tools": [], "failed_tools": []}

    def keep_server(self, server: Body) -> None:
        self.state.mcp_servers[server["server_name"]] = server

    def change_server(self, entry: Body, changes: Body) -> Body:
        self.check_server(changes)
        entry |= {name: changes[name] for name in CHANGES if name in changes} | {"updated_at": object_time()}
        return entry

    def remove_server(self, server: Body) -> None:
        self.forget_server(server)
        self.disable_everywhere(server["server_name"])

    def forget_server(self, server: Body) -> None:
        self.state.mcp_servers.pop(server["server_name"])

    def disable_everywhere(self, name: str) -> None:
        for key in [key for key, item in self.state.enabled.items() if item["server_name"] == name]:
            del self.state.enabled[key]

    def enable(self, agent: str, server: Body, about: Body) -> Body:
        self.check_secret(about)
        if server["server_name"] in self.enabled_of(agent):
            raise Refusal(409, "MCP_ALREADY_ENABLED", "The agent has this server.")
        item = {**server, "agent_id": agent, "is_global": False, "metadata": about.get("metadata", {})}
        self.keep_enabled(item)
        return item

    def keep_enabled(self, item: Body) -> None:
        self.state.enabled[f"{item['agent_id']}/{item['server_name']}"] = item

    def change_enabled(self, item: Body, changes: Body) -> Body:
        self.check_secret(changes)
        item |= {name: changes[name] for name in ("auth_env", "is_active", "metadata") if name in changes}
        return item

    def disable(self, item: Body) -> None:
        self.state.enabled.pop(f"{item['agent_id']}/{item['server_name']}")

    # -- requests ------------------------------------------------------------------------------------------------------

    async def post_server(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.register_server(self.front.fields(await self.front.read(request), FIELDS)))

    async def get_servers(self, request: web.Request) -> web.StreamResponse:
        shows_all = self.front.flag(request, "include_inactive")
        found = [item for item in self.state.mcp_servers.values() if item["is_active"] or shows_all]
        return self.front.reply({"total": len(found), "servers": [self.connection(item) for item in found]})

    async def get_server(self, request: web.Request) -> web.StreamResponse:
        server = self.server(request.match_info["name"])
        return self.front.reply(self.connection(server) | {"connected_tools": []})

    async def put_server(self, request: web.Request) -> web.StreamResponse:
        changes = self.front.fields(await self.front.read(request), FIELDS)
        return self.front.reply(self.change_server(self.server(request.match_info["name"]), changes))

    async def delete_server(self, request: web.Request) -> web.StreamResponse:
        server = self.server(request.match_info["name"])
        self.remove_server(server)
        return self.front.reply({"server_name": server["server_name"]})

    async def get_enabled(self, request: web.Request) -> web.StreamResponse:
        agent, shows_all = self.agent_id(request), self.front.flag(request, "include_inactive")
        found = [item for item in self.enabled_of(agent).values() if item["is_active"] or shows_all]
        return self.front.reply({"agent_id": agent, "total": len(found), "mcps": found})

    async def get_available(self, request: web.Request) -> web.StreamResponse:
        agent, shows_enabled = self.agent_id(request), self.front.flag(request, "include_enabled", True)
        has = self.enabled_of(agent)
        found = [{**item, "is_enabled_by_agent": name in has} for name, item in self.state.mcp_servers.items()]
        shown = [item for item in found if shows_enabled or not item["is_enabled_by_agent"]]
        told = {"agent_id": agent, "total": len(shown), "enabled_count": len(has), "mcps": shown}
        return self.front.reply(told)

    async def post_enabled(self, request: web.Request) -> web.StreamResponse:
        body = await self.front.read(request) if request.can_read_body else {}
        about, agent = self.front.fields(body, FIELDS), self.agent_id(request)
        return self.front.reply(self.enable(agent, self.server(request.match_info["name"]), about))

    async def put_enabled(self, request: web.Request) -> web.StreamResponse:
        changes = self.front.fields(await self.front.read(request), FIELDS)
        item = self.enabled(self.agent_id(request), request.match_info["name"])
        return self.front.reply(self.change_enabled(item, changes))

    async def delete_enabled(self, request: web.Request) -> web.StreamResponse:
        item = self.enabled(self.agent_id(request), request.match_info["name"])
        self.disable(item)
        return self.front.reply({"agent_id": item["agent_id"], "server_name": item["server_name"]})
