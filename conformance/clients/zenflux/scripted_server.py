"""The scripted ZenFlux server: REST from the reference server; a socket and a chat play the situation."""

import asyncio
from typing import Any
from uuid import uuid4

import orjson
from aiohttp import WSMsgType, web

from conformance.clients.agent_actions import Drop, Refuse, Reply
from conformance.clients.reply_queue import ReplyQueue
from conformance.clients.request_recorder import ENTRY, Handler, recorder, reply, retry_after
from conformance.clients.sse import hang_up
from conformance.clients.zenflux.player import Player
from conformance.clients.zenflux.sinks import WRITER, SocketSink, StreamSink
from conformance.faults.zenflux.resources import BASE
from conformance.faults.zenflux.server import LARGEST, ZenfluxServer
from conformance.faults.zenflux.state import Body, Conversation, Session, event_time

CODES = {400: "VALIDATION_ERROR", 429: "RATE_LIMITED", 500: "INTERNAL_ERROR", 503: "OVERLOADED"}


class ZenfluxScriptedServer:
    """Plays situations over ZenFlux."""

    mount = BASE
    cancels_requests = True

    def __init__(self) -> None:
        self.reply_queue = ReplyQueue()
        self._server = ZenfluxServer()
        self._player = Player(self.reply_queue)
        self._sockets = 0
        self._runs: set[asyncio.Task[None]] = set()

    def app(self) -> web.Application:
        @web.middleware
        async def answering(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._server.front.answer(request, handler)

        record = recorder(self.reply_queue, self.mount, _refusal)
        app = web.Application(middlewares=[record, answering], client_max_size=LARGEST)
        own = [web.get("/ws/chat", self._get_socket), web.post("/chat", self._post_chat)]
        taken = {(route.method, route.path) for route in own}
        for route in (*own, *(it for it in self._server.routes() if (it.method, it.path) not in taken)):
            app.router.add_route(route.method, BASE + route.path, route.handler)
        return app

    # -- the socket ----------------------------------------------------------------------------------------------------

    async def _get_socket(self, request: web.Request) -> web.StreamResponse:
        if self.reply_queue.option("refuse_after_cut") and self.reply_queue.traffic.cuts:
            return _refusal(503, "There are no connections now.")
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self._sockets += 1
        sink = SocketSink(request, socket, self.reply_queue, self._sockets)
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                await self._receive(sink, message.data)
        return socket

    async def _receive(self, sink: SocketSink, text: str) -> None:
        frame = _parsed(text)
        name = str(frame.get("method", frame.get("type"))) if isinstance(frame, dict) else ""
        self.reply_queue.traffic.note_frame(sink.number, name, frame if isinstance(frame, dict) else {"text": text})
        params = frame.get("params") if isinstance(frame, dict) else None
        match name:
            case "ping":
                await sink.frame(WRITER.pong())
            case "chat.send":
                await self._chat(sink, frame, params if isinstance(params, dict) else {})
            case "chat.abort":
                await self._abort(sink, frame, params if isinstance(params, dict) else {})
            case _ if isinstance(frame, dict):
                words = "METHOD_NOT_FOUND", f"There is no method {name}."
                await sink.frame(WRITER.error_frame(str(frame.get("id")), *words))

    async def _chat(self, sink: SocketSink, frame: Body, params: Body) -> None:
        name = str(frame.get("id") or uuid4())
        match self.reply_queue.next_reply():
            case Refuse(status):
                self.reply_queue.traffic.mark("refused")
                await sink.frame(WRITER.error_frame(name, CODES.get(status, "ERROR"), f"Refused with {status}."))
            case Drop():
                self.reply_queue.traffic.note_cut()
                hang_up(sink.request)
            case actions:
                session = self._begin(params)
                about = {"session_id": session.id, "conversation_id": session.conversation.id}
                about |= {"status": "streaming", "message_id": session.message_id}
                await sink.frame(WRITER.response_frame(name, about | self.reply_queue.members))
                self._spawn(self._player.play(session, actions, sink))

    async def _abort(self, sink: SocketSink, frame: Body, params: Body) -> None:
        session = self._server.state.sessions.get(str(params.get("session_id")))
        if session is not None:
            self._server.chats.stop(session)
        about = {"session_id": params.get("session_id"), "status": "stopped", "stopped_at": event_time()}
        await sink.frame(WRITER.response_frame(str(frame.get("id")), about))

    # -- the chat over HTTP --------------------------------------------------------------------------------------------

    async def _post_chat(self, request: web.Request) -> web.StreamResponse:
        body = request[ENTRY].body
        params = self._server.streams.spelled(body if isinstance(body, dict) else {})
        match self.reply_queue.next_reply():
            case Refuse(status, seconds):
                self.reply_queue.traffic.mark("refused")
                return _refusal(status, f"Refused with {status}.", seconds)
            case Drop():
                self.reply_queue.traffic.note_cut()
                hang_up(request)
                return web.Response()
            case actions:
                return await self._streamed(request, params, actions)

    async def _streamed(self, request: web.Request, params: Body, actions: Reply) -> web.StreamResponse:
        assert isinstance(actions, tuple), "refusals are answered before"
        session, sink = self._begin(params), StreamSink(request, self.reply_queue)
        if params.get("stream") is False:
            await self._player.play(session, actions, _Nowhere())
            return self._server.front.reply(self._server.streams.whole(session))
        await sink.open()
        await asyncio.shield(self._spawn(self._player.play(session, actions, sink)))
        await sink.done()
        return sink.response

    # -- runs ----------------------------------------------------------------------------------------------------------

    def _begin(self, params: Body) -> Session:
        """A run, in the conversation that is named, or else in a new one."""
        talks = self._server.state.conversations
        name, user = params.get("conversation_id"), str(params.get("user_id") or "local")
        talk = talks.get(str(name)) or self._server.chats.add_conversation(Conversation(user, "New conversation"))
        message = params.get("message")
        session = Session(user, talk, message if isinstance(message, str) else "")
        self._server.state.sessions[session.id] = session
        talk.add("user", session.message, None)
        self.reply_queue.traffic.meta.setdefault("assigned", []).append((session.id, talk.id))
        return session

    def _spawn(self, work: Any) -> "asyncio.Task[None]":
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._runs.add(task)
        task.add_done_callback(self._runs.discard)
        return task


class _Nowhere:
    """The events of a run that nobody streams."""

    async def send(self, envelope: Body) -> None: ...
    async def beat(self) -> None: ...
    async def cut(self, envelope: Body | None) -> None: ...


def _refusal(status: int, words: str, seconds: int | None = None) -> web.Response:
    return reply({"code": status, "message": words, "data": None}, status, retry_after(seconds))


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
