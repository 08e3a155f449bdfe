"""Agents of the CAS reference server: every update is a new version."""

from typing import Any

from aiohttp import web

from conformance.faults.cas.front import Front, reply
from conformance.faults.cas.state import Body, State, mint, now
from conformance.faults.refusal import Refusal

DEFAULTS: Body = {
    "system": "",
    "description": "",
    "tools": [],
    "mcp_servers": [],
    "skills": [],
    "metadata": {},
}
FIELDS = ("name", "model", *DEFAULTS)
TOOLSET = "agent_toolset_20260401"


class Agents:
    """Creates, shows, lists and changes agents, and knows what their tools may do."""

    def __init__(self, state: State, front: Front) -> None:
        self.state = state
        self.front = front

    def versions(self, name: str) -> list[Body]:
        try:
            return self.state.agents[name]
        except KeyError:
            raise Refusal(404, f"Agent '{name}' was not found.") from None

    def version(self, name: str, number: int = 0) -> Body:
        """A version of the agent; 0 is the latest."""
        versions = self.versions(name)
        if not 0 <= number <= len(versions):
            raise Refusal(404, f"Agent '{name}' has no version {number}.")
        return versions[number - 1]

    async def post_agent(self, request: web.Request) -> web.StreamResponse:
        body = await self.front.read(request)
        for name in ("name", "model"):
            if not body.get(name):
                raise Refusal(400, f"{name} is required.")
        at = now()
        agent = {"id": mint("agent"), "type": "agent", **DEFAULTS, **self.fields_of(body), "version": 1}
        agent |= {"archived_at": None, "created_at": at, "updated_at": at}
        self.state.agents[agent["id"]] = [agent]
        return reply(agent, 201)

    def fields_of(self, body: Body) -> Body:
        return {name: body[name] for name in FIELDS if name in body}

    async def get_agents(self, request: web.Request) -> web.StreamResponse:
        latest = [versions[-1] for versions in self.state.agents.values()]
        return reply(self.front.page(request, [agent for agent in latest if agent["archived_at"] is None][::-1]))

    async def get_agent(self, request: web.Request) -> web.StreamResponse:
        return reply(self.version(request.match_info["id"], int(request.query.get("version", 0))))

    async def update_agent(self, request: web.Request) -> web.StreamResponse:
        body, name = await self.front.read(request), request.match_info["id"]
        agent = self.version(name)
        self.check_version(agent, body)
        changed = agent | self.fields_of(body) | {"version": agent["version"] + 1, "updated_at": now()}
        self.state.agents[name].append(changed)
        return reply(changed)

    def check_version(self, agent: Body, body: Body) -> None:
        if body.get("version") != agent["version"]:
            raise Refusal(409, f"The current version is {agent['version']}.")

    async def get_versions(self, request: web.Request) -> web.StreamResponse:
        versions = self.versions(request.match_info["id"])[::-1]
        limit = self.front.limit(request)
        return reply(self.front.envelope(versions[:limit], has_more=len(versions) > limit))

    async def archive_agent(self, request: web.Request) -> web.StreamResponse:
        agent = self.version(request.match_info["id"])
        agent["archived_at"] = now()
        return reply(agent)

    async def delete_agent(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["id"]
        self.versions(name)
        del self.state.agents[name]
        return reply({"id": name, "type": "agent_deleted"})

    def policies(self, agent: Body) -> dict[str, str]:
        """The enabled server tools, and what is to happen when they are called."""
        found: dict[str, str] = {}
        for toolset in self.toolsets(agent):
            configured = {item["name"]: item["permission_policy"]["type"] for item in toolset.get("configs", [])}
            found |= {name: configured.get(name, "always_allow") for name in toolset.get("enabled_tools", [])}
        return found

    def toolsets(self, agent: Body) -> list[dict[str, Any]]:
        return [tool for tool in agent["tools"] if tool["type"] == TOOLSET]

    def custom_tools(self, agent: Body) -> list[str]:
        """The tools the client executes."""
        return [tool["name"] for tool in agent["tools"] if tool["type"] == "custom"]
