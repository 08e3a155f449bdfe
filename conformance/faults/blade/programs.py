"""Wrong Blade servers that remember something or take several steps, which rows of faults.yaml cannot say."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from conformance.faults.blade.server import BladeServer
from conformance.faults.blade.socket_engine import socket_server
from conformance.faults.blade.state import Body, Refusal, Session
from conformance.faults.steps import AsyncStep, Step

Events = list[tuple[str, Any]]


@dataclass
class PatchesAfterTheEnd:
    """The last delta comes after turn:end."""

    held: dict[str, Any] = field(default_factory=dict)

    def events(self, step: Step[Events], session: Session, name: str, body: Any) -> Events:
        last = self.held.pop(session.id, None)
        if name == "turn:patch":
            self.held[session.id] = body
            return [(name, last)] if last else []
        return [(name, body), *([("turn:patch", last)] if last else [])]


@dataclass
class ResultsInTheNextTurn:
    """A tool's result comes in the turn after its call."""

    held: dict[str, Any] = field(default_factory=dict)

    def events(self, step: Step[Events], session: Session, name: str, body: Any) -> Events:
        if name == "turn:patch" and body["patch_type"] == "tool_result":
            self.held[session.id] = body
            return []
        late = self.held.pop(session.id, None) if name == "turn:start" else None
        return [(name, body), *([("turn:patch", {**late, "turn_id": body["turn_id"]})] if late else [])]


@dataclass
class HeadlessIsSilent:
    """A headless chat tells no patches."""

    silent: set[str] = field(default_factory=set)

    async def on_chat_send(self, step: AsyncStep[Any], sid: str, body: Body) -> Any:
        (self.silent.add if body.get("headless") else self.silent.discard)(str(body.get("session_id")))
        return await step(sid, body)

    def events(self, step: Step[Events], session: Session, name: str, body: Any) -> Events:
        return [] if name == "turn:patch" and session.id in self.silent else [(name, body)]


@dataclass
class OnlyTheAskedMayAnswer:
    """An answer from another connection is refused."""

    owners: dict[str, str] = field(default_factory=dict)

    async def on_chat_send(self, step: AsyncStep[Any], sid: str, body: Body) -> Any:
        if self.owners.setdefault(str(body.get("session_id")), sid) != sid:
            raise Refusal(403, "Access denied")
        return await step(sid, body)


class PollingOnly:
    """There is no websocket."""

    def engine(self, step: Step[Any]) -> Any:
        return socket_server(transports=["polling"], allow_upgrades=False)


@dataclass
class WedgedByNonsense:
    """An event without a proper body leaves the server of no use."""

    wedged: bool = False

    def handler(self, step: Step[Any], name: str) -> Any:
        work = step(name)

        async def handle(sid: str, body: Any = None) -> Any:
            self.wedged = self.wedged or not isinstance(body, dict)
            return await work(sid, body)

        return handle

    def check_room(self, step: Step[None], session: Session) -> None:
        step(session)
        if self.wedged:
            raise Refusal(500, "out of order")


@dataclass
class ErrorsForEverybody:
    """A refusal is sent to every connection."""

    server: BladeServer

    async def refuse(self, step: AsyncStep[Any], sid: str, name: str, body: Any, refusal: Refusal) -> Any:
        members = {"message": refusal.words, "code": refusal.status}
        await self.server.writer.io.emit("system:error", members)


@dataclass
class BusySessionsQueue:
    """A second message waits for its turn."""

    server: BladeServer

    async def on_chat_send(self, step: AsyncStep[Any], sid: str, body: Body) -> Any:
        session = self.server.state.sessions.get(str(body.get("session_id")))
        if session is not None and session.task is not None:
            await asyncio.wait({session.task})
        return await step(sid, body)


@dataclass
class CheckoutRewinds:
    """Checkout shortens the history."""

    server: BladeServer

    async def post_checkout(self, step: AsyncStep[web.StreamResponse], request: web.Request) -> web.StreamResponse:
        self.server.sessions.rewind(self.server.front.find(request), 0)
        return await step(request)


@dataclass
class ExtraInfoTwice:
    """Extra info is not replaced."""

    server: BladeServer

    async def post_extra(self, step: AsyncStep[web.StreamResponse], request: web.Request) -> web.StreamResponse:
        session = self.server.front.find(request)
        before = session.extra
        reply = await step(request)
        session.extra = before or session.extra
        return reply


class MemoryInBytes:
    """The length of a memory is counted in bytes."""

    def check_memory(self, step: Step[None], body: Body) -> None:
        step({**body, "content": "x" * len(body.get("content", "x").encode())})


@dataclass
class EmptyBatchIsAll:
    """A batch without ids is taken for all memories."""

    server: BladeServer

    async def post_batch(self, step: AsyncStep[web.StreamResponse], request: web.Request) -> web.StreamResponse:
        if (await request.json()).get("ids") == []:
            self.server.state.memories.clear()
            return self.server.front.reply("batch", {"ok": True, "count": 0})
        return await step(request)
