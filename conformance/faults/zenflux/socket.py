"""The socket of the ZenFlux reference server: frames in, responses and numbered event frames out."""

import asyncio
from contextlib import suppress
from typing import Any
from uuid import uuid4

import orjson
from aiohttp import WSMsgType, web

from conformance.faults.zenflux.chats import Chats
from conformance.faults.zenflux.player import Player, RunEvent
from conformance.faults.zenflux.state import Body, Refusal, Session, State, event_time
from conformance.faults.zenflux.writer import Writer

TICK_EVERY = 30.0


class Line:
    """One connection, and the run whose events are sent over it."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self.socket = socket
        self.session: Session | None = None
        self.tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


class Socket:
    """Answers the frames of a socket; every rule is a step that a fault can change."""

    tick_every = TICK_EVERY

    def __init__(self, state: State, player: Player, chats: Chats, writer: Writer) -> None:
        self.state = state
        self.player = player
        self.chats = chats
        self.writer = writer

    async def get_socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        line = Line(socket)
        line.spawn(self.tick(line))
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    await self.receive(line, message.data)
        finally:
            for task in list(line.tasks):
                task.cancel()
        return socket

    async def tick(self, line: Line) -> None:
        while True:
            await asyncio.sleep(self.tick_every)
            await self.send(line, self.writer.tick_frame())

    async def send(self, line: Line, frame: Body) -> None:
        with suppress(ConnectionResetError, RuntimeError):
            await line.socket.send_str(orjson.dumps(frame).decode())

    async def receive(self, line: Line, text: str) -> None:
        try:
            frame = orjson.loads(text)
        except orjson.JSONDecodeError:
            return await self.malformed(line)
        match frame:
            case {"type": "ping"}:
                await self.send(line, self.writer.pong())
            case {"type": "req"}:
                await self.respond(line, frame)
            case _:
                await self.malformed(line)
        return None

    async def malformed(self, line: Line) -> None:
        """A frame that makes no sense is ignored."""

    async def respond(self, line: Line, frame: Body) -> None:
        name = self.request_id(frame)
        try:
            payload = await self.obey(line, frame.get("method"), frame.get("params"))
        except Refusal as refusal:
            await self.send(line, self.writer.error_frame(name, refusal.code, refusal.words))
            return
        await self.send(line, self.writer.response_frame(name, payload))
        self.start(line, payload)

    def request_id(self, frame: Body) -> str:
        return frame.get("id") or str(uuid4())

    async def obey(self, line: Line, method: Any, params: Any) -> Body:
        if method == "chat.send":
            return self.chat_send(line, params)
        if method == "chat.abort":
            return self.chat_abort(params)
        raise Refusal(404, "METHOD_NOT_FOUND", f"There is no method {method}.")

    def chat_send(self, line: Line, params: Any) -> Body:
        session = self.chats.begin(self.chats.check(params), has_rounds=True)
        self.leave(line)
        line.session = session
        about = {"session_id": session.id, "conversation_id": session.conversation.id}
        return {"status": "streaming", **about, "message_id": session.message_id}

    def leave(self, line: Line) -> None:
        """A chat on a busy line stops the one before."""
        if line.session is not None and not line.session.is_over:
            self.chats.stop(line.session)

    def chat_abort(self, params: Any) -> Body:
        session = self.chats.session(params.get("session_id") if isinstance(params, dict) else None)
        if not session.is_over:
            self.chats.stop(session)
        return {"session_id": session.id, "status": "stopped", "stopped_at": event_time()}

    def start(self, line: Line, payload: Body) -> None:
        """After the response to a chat its events follow."""
        if payload["status"] == "streaming":
            line.spawn(self.send_run(line, self.state.sessions[payload["session_id"]]))

    async def send_run(self, line: Line, session: Session) -> None:
        async for event in self.writer.throttled(self.player.play(session)):
            await self.deliver(line, session, event)

    async def deliver(self, line: Line, session: Session, event: RunEvent) -> None:
        await self.send(line, self.writer.event_frame(self.writer.envelope(session, event)))
