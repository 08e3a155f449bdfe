"""Wrong Blade servers that remember something or take several steps, which rows of faults.yaml cannot say."""

import asyncio
from typing import Any

from aiohttp import web

from conformance.faults.blade.server import BladeServer
from conformance.faults.blade.socket_engine import socket_server
from conformance.faults.blade.state import Body, Refusal, Session

Events = list[tuple[str, Any]]


class PatchesAfterTheEnd(BladeServer):
    """The last delta comes after turn:end."""

    def __init__(self, key: str | None = None) -> None:
        super().__init__(key)
        self.held: dict[str, Any] = {}

    def events(self, session: Session, name: str, body: Any) -> Events:
        last = self.held.pop(session.id, None)
        if name == "turn:patch":
            self.held[session.id] = body
            return [(name, last)] if last else []
        return [(name, body), *([("turn:patch", last)] if last else [])]


class ResultsInTheNextTurn(BladeServer):
    """A tool's result is told in the turn after its call."""

    def __init__(self, key: str | None = None) -> None:
        super().__init__(key)
        self.held: dict[str, Any] = {}

    def events(self, session: Session, name: str, body: Any) -> Events:
        if name == "turn:patch" and body["patch_type"] == "tool_result":
            self.held[session.id] = body
            return []
        late = self.held.pop(session.id, None) if name == "turn:start" else None
        return [(name, body), *([("turn:patch", {**late, "turn_id": body["turn_id"]})] if late else [])]


class OnlyTheAskedMayAnswer(BladeServer):
    """An answer from another connection is refused."""

    def __init__(self, key: str | None = None) -> None:
        super().__init__(key)
        self.owners: dict[str, str] = {}

    async def on_chat_send(self, sid: str, body: Body) -> Any:
        if self.owners.setdefault(str(body.get("session_id")), sid) != sid:
            raise Refusal(403, "Access denied")
        return await super().on_chat_send(sid, body)


class PollingOnly(BladeServer):
    """There is no websocket."""

    def engine(self) -> Any:
        return socket_server(transports=["polling"], allow_upgrades=False)


class WedgedByNonsense(BladeServer):
    """An event without a proper body leaves the server of no use."""

    wedged = False

    def handler(self, name: str) -> Any:
        work = super().handler(name)

        async def handle(sid: str, body: Any = None) -> Any:
            self.wedged = self.wedged or not isinstance(body, dict)
            return await work(sid, body)

        return handle

    def check_room(self, session: Session) -> None:
        super().check_room(session)
        if self.wedged:
            raise Refusal(500, "out of order")


class ErrorsForEverybody(BladeServer):
    """A refusal is told to every connection."""

    async def refuse(self, sid: str, name: str, body: Any, refusal: Refusal) -> Any:
        told = {"message": refusal.words, "code": refusal.status}
        await self.io.emit("system:error", told)


class BusySessionsQueue(BladeServer):
    """A second message waits for its turn."""

    async def on_chat_send(self, sid: str, body: Body) -> Any:
        session = self.sessions.get(str(body.get("session_id")))
        if session is not None and session.task is not None:
            await asyncio.wait({session.task})
        return await super().on_chat_send(sid, body)


class CheckoutRewinds(BladeServer):
    """Checkout shortens the history."""

    async def post_checkout(self, request: web.Request) -> web.StreamResponse:
        self.rewind(self.find(request), 0)
        return await super().post_checkout(request)


class ExtraInfoTwice(BladeServer):
    """Extra info is not replaced."""

    async def post_extra(self, request: web.Request) -> web.StreamResponse:
        session = self.find(request)
        before = session.extra
        reply = await super().post_extra(request)
        session.extra = before or session.extra
        return reply


class MemoryInBytes(BladeServer):
    """The length of a memory is counted in bytes."""

    def check_memory(self, body: Body) -> None:
        super().check_memory({**body, "content": "x" * len(body.get("content", "x").encode())})


class EmptyBatchIsAll(BladeServer):
    """A batch without ids is taken for all memories."""

    async def post_batch(self, request: web.Request) -> web.StreamResponse:
        if (await request.json()).get("ids") == []:
            self.memories.clear()
            return self.reply("batch", {"ok": True, "count": 0})
        return await super().post_batch(request)
