"""A small correct Blade server, in memory, whose every rule is a step that a fault can change."""

from typing import Any

from aiohttp import web

from conformance.faults.blade.front import USER, Handler
from conformance.faults.blade.resources import Resources
from conformance.faults.blade.state import Refusal, now

ONE = "/api/sessions/{id}"
MEMORY, KEY, TASK = "/api/memories", "/api/user/api-keys/", "/api/scheduled-tasks"


class BladeServer(Resources):
    """All of Blade, with an agent that knows the directives."""

    mount = ""

    def app(self) -> web.Application:
        @web.middleware
        async def answering(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self.answer(request, handler)

        app = web.Application(middlewares=[answering])
        app.add_routes([*self.session_routes(), *self.routes_beside(), *self.shelf_routes()])
        self.io.attach(app)
        return app

    async def get_models(self, request: web.Request) -> web.StreamResponse:
        return self.reply("models", {"default": "reference-1", "models": [{"id": "reference-1", "name": "Reference"}]})

    async def get_me(self, request: web.Request) -> web.StreamResponse:
        return self.reply("me", {"id": USER, "username": "reference", "avatar_url": None, "created_at": now()})

    async def get_version(self, request: web.Request) -> web.StreamResponse:
        return self.reply("version", {"version": "1.0.0", "min_sdk": "0.1.0"})

    async def get_health(self, request: web.Request) -> web.StreamResponse:
        return self.reply("health", {"status": "ok"})

    def session_routes(self) -> list[Any]:
        return [
            web.post("/api/sessions", self.post_session),
            web.get("/api/sessions", self.get_sessions),
            web.post("/api/sessions/preview-import", self.post_preview_import),
            web.get(ONE, self.get_session),
            web.patch(ONE, self.patch_session),
            web.delete(ONE, self.delete_session),
            web.get(f"{ONE}/messages", self.get_messages),
            web.post(f"{ONE}/chat", self.post_chat),
            web.put(f"{ONE}/env", self.put_env),
            web.patch(f"{ONE}/pin", self.patch_pin),
            web.patch(f"{ONE}/sharing", self.patch_sharing),
            web.patch(f"{ONE}/memory", self.patch_memory),
        ]

    def routes_beside(self) -> list[Any]:
        return [
            web.get(f"{ONE}/history", self.get_history),
            web.get(f"{ONE}/checkpoints", self.get_checkpoints),
            web.post(f"{ONE}/rewind", self.post_rewind),
            web.post(f"{ONE}/checkout", self.post_checkout),
            web.post(f"{ONE}/replay", self.post_replay),
            web.patch(f"{ONE}/replay", self.patch_replay),
            web.get(f"{ONE}/replay/preview", self.get_preview),
            web.post(f"{ONE}/share", self.post_share),
            web.delete(f"{ONE}/share/{{token}}", self.delete_share),
            web.get("/api/share/{token}", self.get_shared),
            web.get(f"{ONE}/export", self.get_export),
            web.post(f"{ONE}/upset_extra_info", self.post_extra),
            web.get(f"{ONE}/extra_info", self.get_extra),
            web.get(f"{ONE}/ls/{{path:.+}}", self.get_files),
            web.get(f"{ONE}/files/{{path:.+}}", self.get_file),
            web.put(f"{ONE}/files/{{path:.+}}", self.put_file),
            web.delete(f"{ONE}/files/{{path:.+}}", self.delete_file),
            web.post(f"{ONE}/rename/{{path:.+}}", self.post_rename),
            web.post(f"{ONE}/upload/{{path:.+}}", self.post_upload),
        ]

    def shelf_routes(self) -> list[Any]:
        return [
            web.post(MEMORY, self.post_memory),
            web.get(MEMORY, self.get_memories),
            web.post(f"{MEMORY}/batch", self.post_batch),
            web.get(f"{MEMORY}/{{id}}", self.get_memory),
            web.put(f"{MEMORY}/{{id}}", self.change_memory),
            web.patch(f"{MEMORY}/{{id}}", self.change_memory),
            web.delete(f"{MEMORY}/{{id}}", self.delete_memory),
            web.post(KEY, self.post_key),
            web.get(KEY, self.get_keys),
            web.get(f"{KEY}{{id}}", self.get_key),
            web.patch(f"{KEY}{{id}}", self.patch_key),
            web.delete(f"{KEY}{{id}}", self.delete_key),
            web.post(TASK, self.post_task),
            web.get(TASK, self.get_tasks),
            web.get(f"{TASK}/calendar", self.get_calendar),
            web.get(f"{TASK}/{{id}}", self.get_task),
            web.patch(f"{TASK}/{{id}}", self.patch_task),
            web.delete(f"{TASK}/{{id}}", self.delete_task),
            web.post(f"{TASK}/{{id}}/start", self.start_task),
            web.post(f"{TASK}/{{id}}/stop", self.stop_task),
            web.get(f"{TASK}/{{id}}/runs", self.get_runs),
            web.get("/api/config/models", self.get_models),
            web.get("/api/auth/me", self.get_me),
            web.get("/api/version", self.get_version),
            web.get("/api/health", self.get_health),
            web.get("/healthz", self.get_health),
        ]


SERVER, REFUSAL = BladeServer, Refusal
