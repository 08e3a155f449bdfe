"""A small correct Blade server, in memory, made of parts whose every rule is a step that a fault can change."""

from typing import Any

from aiohttp import web

from conformance.faults.blade.chats import Chats
from conformance.faults.blade.front import Front, Handler
from conformance.faults.blade.player import Player
from conformance.faults.blade.resources import About, Files, Keys, Memories
from conformance.faults.blade.sessions import Sessions
from conformance.faults.blade.socket import Socket
from conformance.faults.blade.state import Refusal, State
from conformance.faults.blade.tasks import Tasks
from conformance.faults.blade.writer import Writer

ONE = "/api/sessions/{id}"
MEMORY, KEY, TASK = "/api/memories", "/api/user/api-keys/", "/api/scheduled-tasks"


class BladeServer:
    """All of Blade, with an agent that knows the directives."""

    mount = ""

    def __init__(self, key: str | None = None) -> None:
        self.state = State()
        self.writer = Writer()
        self.front = Front(key, self.state, self.writer)
        self.player = Player(self.writer)
        self.chats = Chats(self.writer, self.player)
        self.socket = Socket(self.writer, self.front, self.player, self.chats)
        self.sessions = Sessions(self.state, self.writer, self.front, self.chats)
        self.files = Files(self.writer, self.front)
        self.memories = Memories(self.state, self.writer, self.front)
        self.keys = Keys(self.state, self.writer, self.front)
        self.tasks = Tasks(self.state, self.writer, self.front)
        self.about = About(self.front)
        self.parts: dict[str, Any] = {
            "writer": self.writer,
            "front": self.front,
            "player": self.player,
            "chats": self.chats,
            "socket": self.socket,
            "sessions": self.sessions,
            "files": self.files,
            "memories": self.memories,
            "keys": self.keys,
            "tasks": self.tasks,
            "about": self.about,
        }

    def app(self) -> web.Application:
        @web.middleware
        async def answering(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self.front.answer(request, handler)

        app = web.Application(middlewares=[answering])
        app.add_routes([*self.session_routes(), *self.routes_beside(), *self.resource_routes()])
        self.socket.attach(app)
        return app

    def session_routes(self) -> list[web.RouteDef]:
        return [
            web.post("/api/sessions", self.sessions.post_session),
            web.get("/api/sessions", self.sessions.get_sessions),
            web.post("/api/sessions/preview-import", self.sessions.post_preview_import),
            web.get(ONE, self.sessions.get_session),
            web.patch(ONE, self.sessions.patch_session),
            web.delete(ONE, self.sessions.delete_session),
            web.get(f"{ONE}/messages", self.sessions.get_messages),
            web.post(f"{ONE}/chat", self.sessions.post_chat),
            web.put(f"{ONE}/env", self.sessions.put_env),
            web.patch(f"{ONE}/pin", self.sessions.patch_pin),
            web.patch(f"{ONE}/sharing", self.sessions.patch_sharing),
            web.patch(f"{ONE}/memory", self.sessions.patch_memory),
        ]

    def routes_beside(self) -> list[web.RouteDef]:
        return [
            web.get(f"{ONE}/history", self.sessions.get_history),
            web.get(f"{ONE}/checkpoints", self.sessions.get_checkpoints),
            web.post(f"{ONE}/rewind", self.sessions.post_rewind),
            web.post(f"{ONE}/checkout", self.sessions.post_checkout),
            web.post(f"{ONE}/replay", self.sessions.post_replay),
            web.patch(f"{ONE}/replay", self.sessions.patch_replay),
            web.get(f"{ONE}/replay/preview", self.sessions.get_preview),
            web.post(f"{ONE}/share", self.sessions.post_share),
            web.delete(f"{ONE}/share/{{token}}", self.sessions.delete_share),
            web.get("/api/share/{token}", self.sessions.get_shared),
            web.get(f"{ONE}/export", self.sessions.get_export),
            web.post(f"{ONE}/upset_extra_info", self.sessions.post_extra),
            web.get(f"{ONE}/extra_info", self.sessions.get_extra),
            web.get(f"{ONE}/ls/{{path:.+}}", self.files.get_files),
            web.get(f"{ONE}/files/{{path:.+}}", self.files.get_file),
            web.put(f"{ONE}/files/{{path:.+}}", self.files.put_file),
            web.delete(f"{ONE}/files/{{path:.+}}", self.files.delete_file),
            web.post(f"{ONE}/rename/{{path:.+}}", self.files.post_rename),
            web.post(f"{ONE}/upload/{{path:.+}}", self.files.post_upload),
        ]

    def resource_routes(self) -> list[web.RouteDef]:
        return [
            web.post(MEMORY, self.memories.post_memory),
            web.get(MEMORY, self.memories.get_memories),
            web.post(f"{MEMORY}/batch", self.memories.post_batch),
            web.get(f"{MEMORY}/{{id}}", self.memories.get_memory),
            web.put(f"{MEMORY}/{{id}}", self.memories.change_memory),
            web.patch(f"{MEMORY}/{{id}}", self.memories.change_memory),
            web.delete(f"{MEMORY}/{{id}}", self.memories.delete_memory),
            web.post(KEY, self.keys.post_key),
            web.get(KEY, self.keys.get_keys),
            web.get(f"{KEY}{{id}}", self.keys.get_key),
            web.patch(f"{KEY}{{id}}", self.keys.patch_key),
            web.delete(f"{KEY}{{id}}", self.keys.delete_key),
            web.post(TASK, self.tasks.post_task),
            web.get(TASK, self.tasks.get_tasks),
            web.get(f"{TASK}/calendar", self.tasks.get_calendar),
            web.get(f"{TASK}/{{id}}", self.tasks.get_task),
            web.patch(f"{TASK}/{{id}}", self.tasks.patch_task),
            web.delete(f"{TASK}/{{id}}", self.tasks.delete_task),
            web.post(f"{TASK}/{{id}}/start", self.tasks.start_task),
            web.post(f"{TASK}/{{id}}/stop", self.tasks.stop_task),
            web.get(f"{TASK}/{{id}}/runs", self.tasks.get_runs),
            web.get("/api/config/models", self.about.get_models),
            web.get("/api/auth/me", self.about.get_me),
            web.get("/api/version", self.about.get_version),
            web.get("/api/health", self.about.get_health),
            web.get("/healthz", self.about.get_health),
        ]


SERVER, REFUSAL = BladeServer, Refusal
