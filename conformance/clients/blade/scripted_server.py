"""The scripted Blade server: REST from the reference server, and a socket whose chats play the situation."""

import asyncio
from typing import Any

import orjson
from aiohttp import web

from conformance.clients.agent_actions import Refuse
from conformance.clients.blade.player import Player, run_id
from conformance.clients.reply_queue import ReplyQueue
from conformance.clients.request_recorder import ENTRY, Handler, recorder, reply
from conformance.clients.sse import hang_up
from conformance.faults.blade.front import USER
from conformance.faults.blade.server import BladeServer
from conformance.faults.blade.socket import EVENTS
from conformance.faults.blade.socket_engine import socket_server
from conformance.faults.blade.state import Body, Session, block, new_session

SOCKET, SESSIONS = "/socket.io/", "/api/sessions"
PING_INTERVAL, PING_TIMEOUT = 1.0, 4.0


class BladeScriptedServer:
    """Plays situations over Blade."""

    mount = ""
    cancels_requests = False

    def __init__(self) -> None:
        self.reply_queue = ReplyQueue()
        self._server = BladeServer()
        writer, socket = self._server.writer, self._server.socket
        settings: dict[str, Any] = {"ping_interval": PING_INTERVAL, "ping_timeout": PING_TIMEOUT}
        writer.engine = lambda: socket_server(**settings)  # type: ignore[method-assign]
        writer.shown = self._shown  # type: ignore[method-assign]
        socket.handler = self._handler  # type: ignore[method-assign]
        socket.connect = self._connect  # type: ignore[method-assign]
        self._player = Player(self.reply_queue, self._server, self._cut)
        self._connections: dict[str, int] = {}
        self._open: list[web.Request] = []

    def app(self) -> web.Application:
        @web.middleware
        async def answering(request: web.Request, handler: Handler) -> web.StreamResponse:
            if not request.path.startswith(SOCKET):
                return await self._server.front.answer(request, handler)
            if self.reply_queue.option("refuse_after_cut") and self.reply_queue.traffic.cuts:
                return reply({"detail": "There are no connections now."}, 503)
            self._open.append(request)
            try:
                return await handler(request)
            finally:
                self._open = [other for other in self._open if other is not request]

        record = recorder(self.reply_queue, self.mount, lambda status, words: reply({"detail": words}, status), SOCKET)
        app = web.Application(middlewares=[record, answering])
        server = self._server
        others = (*server.session_routes(), *server.routes_beside(), *server.resource_routes())
        app.router.add_post(SESSIONS, self._post_session)
        app.add_routes(route for route in others if (route.method, route.path) != ("POST", SESSIONS))
        server.socket.attach(app)
        return app

    async def _post_session(self, request: web.Request) -> web.StreamResponse:
        """Make a session of whatever the client has said about it."""
        body = request[ENTRY].body
        given: Body = body if isinstance(body, dict) else {}
        made = new_session({**given, "intent": str(given.get("intent"))}, USER)
        self._server.state.sessions[made.id] = made
        return reply({"session_id": made.id} | self.reply_queue.members, 201)

    # -- the socket ----------------------------------------------------------------------------------------------------

    async def _connect(self, sid: str, environ: Any, auth: Any = None) -> None:
        self._connections[sid] = len(self._connections) + 1
        self.reply_queue.traffic.note_frame(self._connections[sid], "connect", auth)

    def _handler(self, name: str) -> Any:
        async def handle(sid: str, body: Any = None) -> Any:
            self.reply_queue.traffic.note_frame(self._connections.get(sid, 0), name, body)
            given = body if isinstance(body, dict) else {}
            session = self._session(given)
            match name:
                case "chat:send":
                    return await self._chat(sid, session, given)
                case "chat:stop":
                    return self._stop(session)
                case "session:subscribe":
                    return await self._subscribe(sid, session, given)
            return {"status": "ok"}

        assert name in EVENTS, "the socket's own events"
        return handle

    def _session(self, body: Body) -> Session:
        """The session that is named, or else the newest, or else a new one."""
        known = self._server.state.sessions
        name = body.get("session_id")
        if name not in known and not known:
            made = new_session({"intent": "examined"}, USER)
            known[made.id] = made
        return known.get(str(name)) or list(known.values())[-1]

    async def _subscribe(self, sid: str, session: Session, body: Body) -> Body:
        """Send what follows the cursor, if there is one, and then what happens."""
        after = body.get("after_sequence")
        if body.get("resume") is True and isinstance(after, int):
            for name, event in session.sent[after:]:
                await self._server.writer.io.emit(name, event, room=sid)
        await self._server.writer.io.enter_room(sid, session.id)
        return {"status": "ok"}

    async def _chat(self, sid: str, session: Session, body: Body) -> Body:
        await self._server.writer.io.enter_room(sid, session.id)
        answer, message = body.get("askuser_answer"), body.get("message")
        text = message if isinstance(message, str) else ""
        said = [block("text", text)] if text else []
        pending, session.pending = session.pending, None
        if answer and pending is not None:
            said.insert(0, block("ask_user_answer", answer))
            self._begin(session, pending.rest, said, pending)
            return {"status": "ok", "chat_run_id": session.run}
        match self.reply_queue.next_reply():
            case Refuse(status):
                self.reply_queue.traffic.mark("refused")
                words = f"Refused with {status}."
                error = {"message": words, "code": status, "session_id": session.id}
                await self._server.writer.io.emit("system:error", error, room=sid)
                return {"status": "error", "message": words, "code": str(status)}
            case actions:
                self._begin(session, actions, said, None)
                return {"status": "ok", "chat_run_id": session.run} | self.reply_queue.members

    def _begin(self, session: Session, actions: Any, said: list[Body], pending: Any) -> None:
        session.run = run_id()
        session.becomes("running")
        session.task = asyncio.create_task(self._player.play(session, actions, said, pending))

    def _stop(self, session: Session) -> Body:
        if session.task is not None and session.is_busy:
            session.task.cancel()
            return {"status": "stopping"}
        return {"status": "idle"}

    # -- what the server does to clients -------------------------------------------------------------------------------

    def _shown(self, kind: str, body: Any) -> Any:
        return body | self.reply_queue.members if isinstance(body, dict) else body

    async def _cut(self, *, is_within: bool) -> None:
        """Break every connection of the socket; within a frame, its header promises more than comes."""
        for request in list(self._open):
            if is_within and request.transport is not None and request.query.get("transport") == "websocket":
                part = orjson.dumps(["turn:patch", {"data": {"text_delta": "words that get lost"}}])[:40]
                request.transport.write(b"\x81\x7d42" + part)
            hang_up(request)
        self.reply_queue.traffic.transcript.remark("the connections are cut" + (" within a frame" if is_within else ""))
