"""A small correct ZenFlux server, in memory, made of parts whose every rule is a step that a fault can change."""

from typing import Any

from aiohttp import web

from conformance.faults.zenflux.agents import Agents
from conformance.faults.zenflux.chats import Chats
from conformance.faults.zenflux.confirmations import Confirmations
from conformance.faults.zenflux.conversations import Conversations
from conformance.faults.zenflux.documents import Documents
from conformance.faults.zenflux.front import Front, Handler
from conformance.faults.zenflux.mcp_servers import McpServers
from conformance.faults.zenflux.memories import Memories
from conformance.faults.zenflux.player import Player
from conformance.faults.zenflux.resources import BASE, Resources
from conformance.faults.zenflux.settings import Settings
from conformance.faults.zenflux.skills import Skills
from conformance.faults.zenflux.socket import Socket
from conformance.faults.zenflux.state import Refusal, State
from conformance.faults.zenflux.streams import Streams
from conformance.faults.zenflux.tasks import Tasks
from conformance.faults.zenflux.tools import Tools
from conformance.faults.zenflux.writer import Writer

LARGEST = 4 * 1024 * 1024
MANAGED = "/{kind:realtime}{rest:.*}"


class ZenfluxServer:
    """All of ZenFlux, with an agent that knows the directives."""

    mount = ""

    def __init__(self) -> None:
        self.state = State()
        self.front = Front()
        self.chats = Chats(self.state)
        self.player = Player()
        self.writer = Writer()
        self.socket = Socket(self.state, self.player, self.chats, self.writer)
        self.streams = Streams(self.state, self.player, self.front, self.chats, self.writer)
        self.conversations = Conversations(self.state, self.front, self.chats)
        self.confirmations = Confirmations(self.state, self.front, self.chats)
        self.resources = Resources(self.front)
        self.agents = Agents(self.state, self.front)
        self.skills = Skills(self.state, self.front)
        self.settings = Settings(self.state, self.front)
        self.memories = Memories(self.state, self.front)
        self.tasks = Tasks(self.front, self.chats, self.memories)
        self.mcp_servers = McpServers(self.state, self.front, self.agents)
        self.tools = Tools(self.state, self.front)
        self.documents = Documents(self.front)
        self.parts: dict[str, Any] = {
            "front": self.front,
            "chats": self.chats,
            "player": self.player,
            "writer": self.writer,
            "socket": self.socket,
            "streams": self.streams,
            "conversations": self.conversations,
            "confirmations": self.confirmations,
            "resources": self.resources,
            "agents": self.agents,
            "skills": self.skills,
            "settings": self.settings,
            "memories": self.memories,
            "tasks": self.tasks,
            "mcp_servers": self.mcp_servers,
            "tools": self.tools,
            "documents": self.documents,
        }

    def app(self) -> web.Application:
        @web.middleware
        async def answering(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self.front.answer(request, handler)

        app = web.Application(middlewares=[answering], client_max_size=LARGEST)
        for path in ("/health", "/health/live", "/health/metrics"):
            app.router.add_get(path, self.resources.get_health)
        for route in self.routes():
            app.router.add_route(route.method, BASE + route.path, route.handler)
        return app

    def routes(self) -> list[web.RouteDef]:
        place = "/conversations"
        return [
            web.get("/ws/chat", self.socket.get_socket),
            web.post("/chat", self.streams.post_chat),
            web.get("/sessions", self.streams.get_sessions),
            web.get("/session/{id}", self.streams.get_session),
            web.delete("/session/{id}", self.streams.delete_session),
            web.post("/session/{id}/stop", self.streams.post_stop),
            web.post("/session/{id}/confirm_continue", self.streams.post_continue),
            web.post("/session/{id}/rollback", self.streams.post_rollback),
            web.post(place, self.conversations.post_conversation),
            web.get(place, self.conversations.get_conversations),
            web.get(f"{place}/search", self.conversations.search),
            web.get(f"{place}/{{id}}", self.conversations.get_conversation),
            web.put(f"{place}/{{id}}", self.conversations.put_conversation),
            web.delete(f"{place}/{{id}}", self.conversations.delete_conversation),
            web.get(f"{place}/{{id}}/messages", self.conversations.get_messages),
            web.post(f"{place}/{{id}}/preload", self.conversations.preload),
            web.get(f"{place}/{{id}}/summary", self.conversations.summary),
            web.get("/human-confirmation/pending", self.confirmations.get_pending),
            web.post("/human-confirmation/{id}", self.confirmations.post_confirmation),
            web.get("/human-confirmation/{id}", self.confirmations.get_confirmation),
            web.delete("/human-confirmation/{id}", self.confirmations.delete_confirmation),
            web.post("/files/upload", self.resources.post_file),
            web.get("/models", self.resources.get_models),
            *self.agents.agent_routes(),
            *self.skills.skill_routes(),
            *self.settings.setting_routes(),
            *self.memories.memory_routes(),
            *self.tasks.task_routes(),
            *self.mcp_servers.mcp_server_routes(),
            *self.tools.tool_routes(),
            *self.documents.document_routes(),
            web.route("*", MANAGED, self.resources.manage),
        ]

    @property
    def is_clean(self) -> bool:
        """Whether nothing is left of what clients made."""
        return not any(vars(self.state).values())


SERVER, REFUSAL = ZenfluxServer, Refusal
