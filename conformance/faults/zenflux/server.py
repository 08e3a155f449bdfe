"""The ZenFlux reference server: small, correct, in memory, whose every rule is a step that a fault can change."""

from pathlib import PureWindowsPath
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from aiohttp import web

from conformance.faults.zenflux.conversations import Conversations
from conformance.faults.zenflux.front import Handler
from conformance.faults.zenflux.state import Body, Refusal, object_time

BASE = "/api/v1"
LARGEST = 4 * 1024 * 1024
MODELS: list[Body] = [
    {"id": "reference", "type": "llm", "provider": "examiners"},
    {"id": "small", "type": "llm", "provider": "others"},
    {"id": "vectors", "type": "embedding", "provider": "examiners"},
]


class ZenfluxServer(Conversations):
    """All of ZenFlux, with an agent that knows the directives."""

    mount = ""

    def app(self) -> web.Application:
        @web.middleware
        async def answering(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self.answer(request, handler)

        app = web.Application(middlewares=[answering], client_max_size=LARGEST)
        app.router.add_get(f"{BASE}/ws/chat", self.get_socket)
        for path in ("/health", "/health/live", "/health/metrics"):
            app.router.add_get(path, self.get_health)
        for route in (*self.stream_routes(), *self.room_routes()):
            app.router.add_route(route.method, BASE + route.path, route.handler)
        app.router.add_post(f"{BASE}/files/upload", self.post_file)
        app.router.add_get(f"{BASE}/models", self.get_models)
        managed = "{kind:agents|skills|tools|settings|mem0|tasks|docs|realtime}"
        app.router.add_route("*", f"{BASE}/{managed}{{rest:.*}}", self.manage)
        return app

    async def get_health(self, request: web.Request) -> web.StreamResponse:
        return self.reply({"status": "ok"})

    async def get_models(self, request: web.Request) -> web.StreamResponse:
        return self.reply(self.models(request.query.get("type"), request.query.get("provider")))

    def models(self, kind: str | None, provider: str | None) -> list[Body]:
        return [item for item in MODELS if kind in (None, item["type"]) and provider in (None, item["provider"])]

    async def manage(self, request: web.Request) -> web.StreamResponse:
        """One list of agents; the rest of the management is not implemented."""
        if (request.method, request.path) == ("GET", f"{BASE}/agents"):
            return self.reply({"total": 1, "agents": [{"agent_id": "reference", "name": "Reference"}]})
        raise Refusal(501, "NOT_IMPLEMENTED", "This is not implemented.")

    async def post_file(self, request: web.Request) -> web.StreamResponse:
        if request.content_type != "multipart/form-data":
            raise Refusal(400, "VALIDATION_ERROR", "A file is sent as multipart/form-data.")
        file = (await request.post()).get("file")
        if not isinstance(file, web.FileField):
            raise Refusal(400, "VALIDATION_ERROR", "file is required.")
        return self.reply(self.upload(file))

    def upload(self, file: web.FileField) -> Body:
        name, place = self.file_name(file.filename), str(uuid4())
        about: dict[str, Any] = {"file_id": place, "file_name": name, "file_size": len(file.file.read())}
        about |= {"file_type": file.content_type, "file_url": f"/files/{place}/{quote(name)}"}
        return about | {"created_at": object_time()}

    def file_name(self, given: str) -> str:
        """The name without the way to it."""
        return PureWindowsPath(given).name

    @property
    def is_clean(self) -> bool:
        """Whether nothing is left of what clients made."""
        return not self.conversations and not self.sessions


SERVER, REFUSAL = ZenfluxServer, Refusal
