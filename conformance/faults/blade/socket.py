"""The Socket.IO side of the Blade reference server: connections, subscriptions, chats, and what is refused."""

from typing import Any

from aiohttp import web
from socketio.exceptions import ConnectionRefusedError as Refused  # type: ignore[import-untyped]

from conformance.faults.blade.chats import Chats
from conformance.faults.blade.front import Front
from conformance.faults.blade.player import Player
from conformance.faults.blade.state import Body, Refusal, Session, mint
from conformance.faults.blade.writer import Writer

EVENTS = ("session:subscribe", "session:unsubscribe", "chat:send", "chat:stop", "chat:compact")


class Socket:
    """Answers what comes over Socket.IO; every rule is a step that a fault can change."""

    def __init__(self, writer: Writer, front: Front, player: Player, chats: Chats) -> None:
        self.writer = writer
        self.front = front
        self.player = player
        self.chats = chats

    def attach(self, app: web.Application) -> None:
        """Answer the events of Socket.IO beside the requests of an application."""
        for name in EVENTS:
            self.writer.io.on(name, self.handler(name))
        self.writer.io.on("connect", self.connect)
        self.writer.io.attach(app)

    async def connect(self, sid: str, environ: Any, auth: Any = None) -> None:
        if not self.front.is_known(auth.get("token") if isinstance(auth, dict) else None):
            raise Refused("unauthorized")

    def handler(self, name: str) -> Any:
        async def handle(sid: str, body: Any = None) -> Any:
            work = getattr(self, f"on_{name.replace(':', '_')}")
            try:
                return await work(sid, body if isinstance(body, dict) else {})
            except Refusal as refusal:
                return await self.refuse(sid, name, body, refusal)

        return handle

    async def refuse(self, sid: str, name: str, body: Any, refusal: Refusal) -> Any:
        if name != "chat:compact":
            members = {"message": refusal.words, "code": refusal.status, "session_id": None}
            if refusal.status == 409:
                members["session_id"] = body["session_id"]
            await self.writer.io.emit("system:error", self.writer.shown("system:error", members), room=sid)
        return {"status": "error", "message": refusal.words, "code": str(refusal.status)}

    async def on_session_subscribe(self, sid: str, body: Body) -> Any:
        session = self.front.session(body.get("session_id"))
        place = self.begins_at(session, body)
        while place < len(session.sent):
            await self.writer.io.emit(*session.sent[place], room=sid)
            place += 1
        await self.writer.io.enter_room(sid, session.id)
        return {"status": "ok"}

    def begins_at(self, session: Session, body: Body) -> int:
        """The place of the first event that a subscription gets: after the cursor if it is resumed, else the next."""
        return int(body.get("after_sequence") or 0) if body.get("resume") is True else len(session.sent)

    async def on_session_unsubscribe(self, sid: str, body: Body) -> Any:
        await self.writer.io.leave_room(sid, self.front.session(body.get("session_id")).id)
        return {"status": "ok"}

    async def on_chat_send(self, sid: str, body: Body) -> Any:
        answer, message = body.get("askuser_answer"), body.get("message")
        if not body.get("session_id") or not (message or answer):
            raise Refusal(400, "Missing session_id or message")
        session = self.front.session(body["session_id"])
        await self.join(sid, session)
        self.chats.check_room(session)
        pending = self.chats.answered(session, answer) if answer else None
        if not answer:
            self.chats.pass_over(session)
        session.run = mint("run")
        session.becomes("running")
        self.chats.begin(session, body, pending)
        return {"status": "ok", "chat_run_id": session.run}

    async def join(self, sid: str, session: Session) -> None:
        await self.writer.io.enter_room(sid, session.id)

    async def on_chat_stop(self, sid: str, body: Body) -> Any:
        session = self.front.session(body.get("session_id"))
        if session.pending is not None and not session.is_busy:
            return await self.chats.stop_waiting(session)
        if session.task is None or not session.is_busy:
            return {"status": "idle"}
        if not session.task.cancelling():
            session.task.cancel()
        return {"status": "stopping"}

    async def on_chat_compact(self, sid: str, body: Body) -> Any:
        session = self.front.session(body.get("session_id"))
        self.chats.check_room(session)
        self.player.compact(session, "manual")
        return self.writer.shown("ack.compact", {"status": "ok"})
