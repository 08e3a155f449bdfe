"""A small correct CAS server, in memory, made of parts whose every rule is a step that a fault can change."""

from typing import Any

from aiohttp import web

from conformance.faults.cas.agents import Agents
from conformance.faults.cas.front import LARGEST_BODY, Front, Handler
from conformance.faults.cas.journal import Journal
from conformance.faults.cas.player import Player
from conformance.faults.cas.resources import Resources
from conformance.faults.cas.sessions import Sessions
from conformance.faults.cas.state import State
from conformance.faults.cas.streams import Streams
from conformance.faults.cas.thread_resources import ThreadResources
from conformance.faults.cas.threads import Threads
from conformance.faults.cas.turns import Turns
from conformance.faults.cas.variables import Mounts, Variables
from conformance.faults.refusal import Refusal


class CasServer:
    """All of CAS, with an agent that knows the directives."""

    mount = "/api/v1/cloud"

    def __init__(self, key: str | None = None) -> None:
        self.state = State()
        self.front = Front(key)
        self.resources = Resources(self.state, self.front)
        self.agents = Agents(self.state, self.front)
        self.variables = Variables()
        self.mounts = Mounts(self.state)
        self.sessions = Sessions(
            self.state, self.front, self.resources, self.agents, self.variables, self.mounts
        )
        self.journal = Journal()
        self.threads = Threads(self.journal)
        self.player = Player(self.agents, self.journal, self.threads)
        self.streams = Streams(self.sessions, self.threads)
        self.turns = Turns(self.front, self.sessions, self.journal, self.player, self.streams)
        self.thread_resources = ThreadResources(self.front, self.sessions, self.threads, self.streams, self.turns)
        self.parts: dict[str, Any] = {
            "front": self.front,
            "resources": self.resources,
            "agents": self.agents,
            "variables": self.variables,
            "mounts": self.mounts,
            "sessions": self.sessions,
            "journal": self.journal,
            "threads": self.threads,
            "player": self.player,
            "streams": self.streams,
            "turns": self.turns,
            "thread_resources": self.thread_resources,
        }

    def app(self) -> web.Application:
        @web.middleware
        async def answering(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self.front.answer(request, handler)

        app = web.Application(middlewares=[answering], client_max_size=LARGEST_BODY)
        app.on_response_prepare.append(self.front.stamp)
        for route in (*self.agent_routes(), *self.session_routes(), *self.event_routes(), *self.resource_routes()):
            app.router.add_route(route.method, self.mount + route.path, route.handler)
        return app

    def agent_routes(self) -> list[web.RouteDef]:
        return [
            web.post("/agents", self.agents.post_agent),
            web.get("/agents", self.agents.get_agents),
            web.get("/agents/{id}", self.agents.get_agent),
            web.post("/agents/{id}", self.agents.update_agent),
            web.put("/agents/{id}", self.agents.update_agent),
            web.get("/agents/{id}/versions", self.agents.get_versions),
            web.post("/agents/{id}/archive", self.agents.archive_agent),
            web.delete("/agents/{id}", self.agents.delete_agent),
        ]

    def session_routes(self) -> list[web.RouteDef]:
        return [
            web.post("/sessions", self.sessions.post_session),
            web.get("/sessions", self.sessions.get_sessions),
            web.get("/sessions/{id}", self.sessions.get_session),
            web.post("/sessions/{id}", self.sessions.update_session),
            web.delete("/sessions/{id}", self.sessions.delete_session),
            web.post("/sessions/{id}/archive", self.sessions.archive_session),
            web.post("/sessions/{id}/resources", self.sessions.post_resource),
            web.get("/sessions/{id}/resources", self.sessions.get_resources),
            web.get("/sessions/{id}/resources/{resource}", self.sessions.get_resource),
            web.delete("/sessions/{id}/resources/{resource}", self.sessions.delete_resource),
        ]

    def event_routes(self) -> list[web.RouteDef]:
        return [
            web.post("/sessions/{id}/events", self.turns.post_events),
            web.get("/sessions/{id}/events", self.turns.get_events),
            web.post("/sessions/{id}/cancel", self.turns.post_cancel),
            web.get("/sessions/{id}/events/stream", self.streams.get_stream),
            web.get("/sessions/{id}/threads", self.thread_resources.get_threads),
            web.get("/sessions/{id}/threads/{thread}", self.thread_resources.get_thread),
            web.get("/sessions/{id}/threads/{thread}/events", self.thread_resources.get_thread_events),
            web.get("/sessions/{id}/threads/{thread}/stream", self.thread_resources.get_thread_stream),
            web.post("/sessions/{id}/threads/{thread}/archive", self.thread_resources.archive_thread),
        ]

    def resource_routes(self) -> list[web.RouteDef]:
        kind, inner = "/{kind:environments|vaults|memory_stores}", "/{inner:credentials|memories}"
        return [
            web.post(kind, self.resources.post_thing),
            web.get("/{kind:environments|vaults|memory_stores|files}", self.resources.get_things),
            web.get("/{kind:environments|vaults|memory_stores|files}/{id}", self.resources.get_thing),
            web.post(f"{kind}/{{id}}", self.resources.update_thing),
            web.post(f"{kind}/{{id}}/archive", self.resources.archive_thing),
            web.delete("/{kind:environments|vaults|memory_stores|files}/{id}", self.resources.delete_thing),
            web.post(f"{kind}/{{id}}{inner}", self.resources.post_inner),
            web.get(f"{kind}/{{id}}{inner}", self.resources.get_inners),
            web.get(f"{kind}/{{id}}{inner}/{{inner_id}}", self.resources.get_inner),
            web.delete(f"{kind}/{{id}}{inner}/{{inner_id}}", self.resources.delete_inner),
            web.post("/files", self.resources.post_file),
            web.get("/files/{id}/content", self.resources.get_content),
            web.get("/models", self.resources.get_models),
        ]

    @property
    def is_clean(self) -> bool:
        """Whether nothing is left of what clients made."""
        return not self.state.sessions and not self.state.agents and not any(self.state.things.values())


SERVER, REFUSAL = CasServer, Refusal
