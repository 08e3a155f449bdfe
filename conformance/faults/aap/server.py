"""A small correct AAP server, in memory, made of parts whose every rule is a step that a fault can change."""

from typing import Any

from aiohttp import web

from conformance.faults.aap.agents import Agents
from conformance.faults.aap.front import Front, Handler
from conformance.faults.aap.player import Player
from conformance.faults.aap.sessions import Sessions
from conformance.faults.aap.state import State
from conformance.faults.aap.turns import Turns
from conformance.faults.aap.writer import Writer
from conformance.faults.refusal import Refusal


class AapServer:
    """All of AAP, with an agent that knows the directives and one that declares nothing."""

    mount = "/aap"

    def __init__(self, key: str | None = None) -> None:
        self.state = State()
        self.front = Front(key)
        self.agents = Agents()
        self.sessions = Sessions(self.state, self.front, self.agents)
        self.player = Player()
        self.writer = Writer()
        self.turns = Turns(self.front, self.agents, self.sessions, self.player, self.writer)
        self.parts: dict[str, Any] = {
            "front": self.front,
            "agents": self.agents,
            "sessions": self.sessions,
            "player": self.player,
            "writer": self.writer,
            "turns": self.turns,
        }

    def app(self) -> web.Application:
        @web.middleware
        async def answering(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self.front.answer(request, handler)

        app = web.Application(middlewares=[answering])
        app.add_routes(self.routes())
        return app

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/aap/meta", self.agents.get_meta),
            web.post("/aap/sessions", self.sessions.post_session),
            web.get("/aap/sessions", self.sessions.get_sessions),
            web.get("/aap/sessions/{id}", self.sessions.get_session),
            web.delete("/aap/sessions/{id}", self.sessions.delete_session),
            web.get("/aap/sessions/{id}/history", self.sessions.get_history),
            web.post("/aap/sessions/{id}/turns", self.turns.post_turn),
        ]


SERVER, REFUSAL = AapServer, Refusal
