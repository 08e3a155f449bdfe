"""An old ZenFlux server that nobody maintains: a list of conversations, their messages, and bad days."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import web


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


@dataclass
class OldConversation:
    """A conversation with one question and one answer."""

    id: str
    title: str = "A conversation"
    updated_at: float = 1000.0
    answers: list[str] = field(default_factory=lambda: ["an answer"])

    @property
    def body(self) -> dict[str, Any]:
        return {
            "id": self.id, "title": self.title, "user_id": "local", "created_at": stamp(900.0),
            "updated_at": stamp(self.updated_at), "status": "active", "agent_id": "demo", "metadata": {},
        }

    @property
    def messages(self) -> list[dict[str, Any]]:
        found = []
        for number, answer in enumerate(self.answers):
            said = {"id": f"q{number}", "role": "user", "content": f"question {number}"}
            answered = {"id": f"a{number}", "role": "assistant", "content": [{"type": "text", "text": answer}],
                        "metadata": {"session_id": f"run_{self.id}_{number}"}}
            found += [{"status": "completed", "created_at": stamp(900.0 + number), "metadata": {}, **one}
                      for one in (said, answered)]
        return found


@dataclass
class OldServer:
    """What it has, and what is wrong with it."""

    listed: list[OldConversation] = field(default_factory=list)
    """In the order of the list; two of them may have one id."""
    broken: set[str] = field(default_factory=set)
    """The ids for which it answers 500."""
    forgotten: set[str] = field(default_factory=set)
    """The ids that it lists and does not have."""
    seconds: float = 0.0
    """How long it takes for a conversation."""
    slow: dict[str, float] = field(default_factory=dict)
    """How much longer it takes for certain ones."""
    url: str = ""
    reads: Counter[str] = field(default_factory=Counter)
    """How often the messages of each conversation were read."""
    asked: Counter[str] = field(default_factory=Counter)
    """How often each conversation was asked for."""
    after_read: dict[str, Any] = field(default_factory=dict)
    """What happens there after the messages of a conversation were read once."""

    async def list_all(self, request: web.Request) -> web.Response:
        limit, offset = int(request.query["limit"]), int(request.query["offset"])
        found = [one.body for one in self.listed[offset:offset + limit]]
        return web.json_response({"code": 200, "data": {"conversations": found, "total": len(self.listed)}})

    async def one(self, request: web.Request) -> web.Response:
        found = self._find(request)
        return web.json_response({"code": 200, "data": found.body})

    async def messages(self, request: web.Request) -> web.Response:
        found = self._find(request)
        await asyncio.sleep(self.seconds + self.slow.get(found.id, 0.0))
        self.reads[found.id] += 1
        offset, limit = int(request.query["offset"]), int(request.query["limit"])
        body = {"code": 200, "data": {"messages": found.messages[offset:offset + limit]}}
        if (change := self.after_read.pop(found.id, None)) is not None:
            change()
        return web.json_response(body)

    def _find(self, request: web.Request) -> OldConversation:
        wanted = request.match_info["id"]
        self.asked[wanted] += request.path.endswith(wanted)
        if wanted in self.broken:
            raise web.HTTPInternalServerError(text="the disk is full of bees")
        found = next((one for one in self.listed if one.id == wanted), None)
        if found is None or wanted in self.forgotten:
            raise web.HTTPNotFound(text="never heard of it")
        return found


@asynccontextmanager
async def serve_old(*listed: OldConversation) -> AsyncIterator[OldServer]:
    """Serve these conversations until the block ends."""
    server, app = OldServer([*listed]), web.Application()
    app.add_routes([
        web.get("/conversations", server.list_all), web.get("/conversations/{id}", server.one),
        web.get("/conversations/{id}/messages", server.messages),
    ])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    server.url = f"http://{host}:{port}"
    try:
        yield server
    finally:
        await runner.cleanup()
