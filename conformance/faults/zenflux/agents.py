"""Agents of the ZenFlux reference server: the one that it came with, and those that clients make."""

import re
from typing import Any
from uuid import uuid4

from aiohttp import web

from conformance.faults.zenflux.front import Front, Kind
from conformance.faults.zenflux.state import Body, Refusal, State, object_time

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
RESERVED = ("templates", "validate", "reload", "preview", "ws", "default-data-path")
MODEL = "reference"
LONGEST_NAME, SHORT_PROMPT = 100, 50
FIELDS: dict[str, Kind] = {
    "agent_id": str,
    "name": str,
    "description": str,
    "prompt": str,
    "model": str,
    "plan_manager_enabled": bool,
    "llm": dict,
    "enabled_capabilities": dict,
    "apis": list,
    "memory": dict,
    "data_dir": str,
    "is_active": bool,
}
CONFIGURED: Body = {
    "agent_id": "reference",
    "name": "Reference",
    "description": "Answers as it is told.",
    "prompt": "",
    "model": MODEL,
    "revision": 0,
    "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z",
}


class Agents:
    """Answers requests below /agents, except for those about MCP servers."""

    def __init__(self, state: State, front: Front) -> None:
        self.state = state
        self.front = front

    def agent_routes(self) -> list[web.RouteDef]:
        one = "/agents/{id}"
        return [
            web.get("/agents", self.get_agents),
            web.post("/agents", self.post_agent),
            web.get("/agents/templates", self.get_templates),
            web.post("/agents/validate", self.post_validate),
            web.post("/agents/reload", self.post_reload),
            web.get("/agents/ws/create/{id}", self.get_progress),
            web.get(one, self.get_agent),
            web.put(one, self.put_agent),
            web.delete(one, self.delete_agent),
            web.post(f"{one}/reload", self.post_agent_reload),
            web.get(f"{one}/prompt", self.get_prompt),
        ]

    # -- what there is -------------------------------------------------------------------------------------------------

    def all_agents(self) -> dict[str, Body]:
        return {CONFIGURED["agent_id"]: CONFIGURED, **self.state.agents}

    def agent(self, name: str) -> Body:
        try:
            return self.all_agents()[name]
        except KeyError:
            raise Refusal(404, "AGENT_NOT_FOUND", "There is no such agent.") from None

    def own_agent(self, name: str) -> Body:
        """An agent that may be changed."""
        agent = self.agent(name)
        if agent is CONFIGURED:
            raise Refusal(403, "FORBIDDEN", "This agent is part of the server.")
        return agent

    def agent_summary(self, agent: Body) -> Body:
        told = {name: agent[name] for name in ("agent_id", "name", "description", "created_at")}
        version = f"1.0.{agent['revision']}"
        return told | {
            "version": version,
            "is_active": agent.get("is_active", True),
            "total_calls": 0,
            "last_used_at": None,
        }

    def agent_detail(self, agent: Body) -> Body:
        kept: Body = {"plan_manager_enabled": False, "enabled_capabilities": {}, "apis": [], "data_dir": None}
        kept |= {name: agent[name] for name in FIELDS if name in agent and name not in ("prompt", "is_active")}
        counted = {"success_calls": 0, "failed_calls": 0, "mcp_tools": [], "skills": []}
        times = {"updated_at": agent["updated_at"], "loaded_at": agent["updated_at"]}
        return self.agent_summary(agent) | kept | counted | times

    # -- what makes sense ----------------------------------------------------------------------------------------------

    def agent_errors(self, config: Body) -> list[Body]:
        """What is wrong with the configuration of a new agent."""
        found = [("REQUIRED_FIELD", name) for name in ("name", "prompt") if not config.get(name)]
        if len(config.get("name", "")) > LONGEST_NAME:
            found.append(("MAX_LENGTH_EXCEEDED", "name"))
        name = config.get("agent_id")
        if name is not None and (not NAME.fullmatch(name) or name in RESERVED):
            found.append(("INVALID_FORMAT", "agent_id"))
        elif name in self.all_agents():
            found.append(("ALREADY_EXISTS", "agent_id"))
        if config.get("model", MODEL) != MODEL:
            found.append(("UNKNOWN_MODEL", "model"))
        if "data_dir" in config:
            found.append(("INVALID_VALUE", "data_dir"))
        return [{"field": field, "message": f"{field} does not do.", "code": code} for code, field in found]

    def refuse_agent(self, errors: list[Body]) -> None:
        """Refuse a request for the first of these errors."""
        for error in errors:
            code = error["code"] if error["code"] in ("ALREADY_EXISTS", "UNKNOWN_MODEL") else "VALIDATION_ERROR"
            raise Refusal(409 if code == "ALREADY_EXISTS" else 400, code, error["message"])

    def agent_warnings(self, config: Body) -> list[Body]:
        is_short = len(config.get("prompt", "")) < SHORT_PROMPT
        return [{"field": "prompt", "message": "It is shorter than 50 characters."}] if is_short else []

    def agent_verdict(self, body: Body) -> Body:
        """What is wrong with a configuration, and what is odd about it; a wrong type is one error."""
        try:
            config = self.front.fields(body, FIELDS)
        except Refusal as refusal:
            error = {"field": refusal.words.partition(" ")[0], "message": refusal.words, "code": "INVALID_VALUE"}
            return {"valid": False, "errors": [error], "warnings": []}
        errors = self.agent_errors(config)
        return {"valid": not errors, "errors": errors, "warnings": self.agent_warnings(config)}

    # -- changes -------------------------------------------------------------------------------------------------------

    def create_agent(self, config: Body) -> Body:
        self.refuse_agent(self.agent_errors(config))
        now = object_time()
        usual = {"agent_id": uuid4().hex[:8], "description": "", "model": MODEL}
        agent = {**usual, **config, "revision": 0, "created_at": now, "updated_at": now}
        self.keep_agent(agent)
        return agent

    def keep_agent(self, agent: Body) -> None:
        self.state.agents[agent["agent_id"]] = agent

    def change_agent(self, agent: Body, changes: Body) -> None:
        """Change what is named, and leave the rest."""
        rest = {name: value for name, value in changes.items() if name != "agent_id"}
        self.refuse_agent([item for item in self.agent_errors({**agent, **rest}) if item["code"] != "ALREADY_EXISTS"])
        agent |= rest | {"revision": agent["revision"] + 1, "updated_at": object_time()}

    def remove_agent(self, agent: Body) -> None:
        name = agent["agent_id"]
        self.state.agents.pop(name, None)
        self.state.enabled = {key: item for key, item in self.state.enabled.items() if item["agent_id"] != name}

    def reloaded(self, *names: str) -> Body:
        return {"reloaded": list(names), "failed": []}

    # -- requests ------------------------------------------------------------------------------------------------------

    async def get_agents(self, request: web.Request) -> web.StreamResponse:
        shows_all = self.front.flag(request, "include_inactive")
        found = [self.agent_summary(agent) for agent in self.all_agents().values()]
        shown = [item for item in found if item["is_active"] or shows_all]
        return self.front.reply({"total": len(shown), "agents": shown})

    async def post_agent(self, request: web.Request) -> web.StreamResponse:
        agent = self.create_agent(self.front.fields(await self.front.read(request), FIELDS))
        return self.front.reply(self.agent_detail(agent) | {"status": "creating"})

    async def get_agent(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.agent_detail(self.agent(request.match_info["id"])))

    async def put_agent(self, request: web.Request) -> web.StreamResponse:
        changes = self.front.fields(await self.front.read(request), FIELDS)
        agent = self.own_agent(request.match_info["id"])
        self.change_agent(agent, changes)
        return self.front.reply(self.agent_detail(agent) | {"status": "reloading"})

    async def delete_agent(self, request: web.Request) -> web.StreamResponse:
        agent = self.own_agent(request.match_info["id"])
        self.remove_agent(agent)
        return self.front.reply({"agent_id": agent["agent_id"]})

    async def get_templates(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply({"total": 1, "templates": [self.agent_template()]})

    def agent_template(self) -> Body:
        about = {name: CONFIGURED[name] for name in ("name", "description")}
        return {"id": CONFIGURED["agent_id"], **about, "icon": "🤖", "config": {"model": MODEL}}

    async def post_validate(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.agent_verdict(await self.front.read(request)))

    async def post_reload(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.reloaded(*self.all_agents()))

    async def post_agent_reload(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.reloaded(self.agent(request.match_info["id"])["agent_id"]))

    async def get_prompt(self, request: web.Request) -> web.StreamResponse:
        agent = self.agent(request.match_info["id"])
        return self.front.reply({"agent_id": agent["agent_id"], "prompt": agent["prompt"]})

    async def get_progress(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json(self.agent_progress(request.match_info["id"]))
        await socket.close()
        return socket

    def agent_progress(self, name: str) -> dict[str, Any]:
        """How far the making of an agent has come: it is complete, if there is one."""
        if name not in self.all_agents():
            return {"type": "error", "code": "NO_TASK", "message": "Nothing is being made."}
        return {**self.agent_detail(self.agent(name)), "type": "complete", "success": True}
