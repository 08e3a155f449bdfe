"""The Quill reference server: small, correct, in memory."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class QuillServer:
    """All of Quill, with an agent that repeats what it is told."""

    mount = "/quill"
    created = 201

    def __init__(self, key: str | None = None) -> None:
        self.key = key
        self.talks: dict[str, dict[str, Any]] = {}
        self._count = 0

    def app(self) -> web.Application:
        @web.middleware
        async def answering(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self.answer(request, handler)

        app = web.Application(middlewares=[answering])
        app.router.add_post("/quill/talks", self.post_talk)
        app.router.add_get("/quill/talks", self.get_talks)
        app.router.add_delete("/quill/talks/{id}", self.delete_talk)
        app.router.add_post("/quill/talks/{id}/lines", self.post_line)
        return app

    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {self.key}":
            return web.json_response({"error": "who are you?"}, status=401)
        return await handler(request)

    async def post_talk(self, request: web.Request) -> web.Response:
        self._count += 1
        told = await request.json() if request.can_read_body else {}
        talk = {"talk": f"t{self._count}", **told, "lines": []}
        self.talks[talk["talk"]] = talk
        return web.json_response({"talk": talk["talk"]}, status=self.created)

    async def get_talks(self, request: web.Request) -> web.Response:
        return web.json_response({"talks": list(self.talks.values())})

    async def delete_talk(self, request: web.Request) -> web.Response:
        return web.Response(status=204 if self.talks.pop(request.match_info["id"], None) else 404)

    async def post_line(self, request: web.Request) -> web.StreamResponse:
        text = (await request.json())["text"]
        frames = [("opened", {}), *(("words", {"text": f"{word} "}) for word in f"You said: {text}".split()),
                  ("closed", {"why": "end"})]
        body = b"".join(self.frame(name, told) for name, told in frames)
        return web.Response(body=body, content_type="text/event-stream")

    def frame(self, name: str, body: Any) -> bytes:
        return f"event: {name}\ndata: {json.dumps(body)}\n\n".encode()


SERVER, REFUSAL = QuillServer, web.HTTPException
