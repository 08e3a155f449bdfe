"""The socket of the ZenFlux reference server: frames in, responses and numbered event frames out."""

import asyncio
from contextlib import suppress
from time import time
from typing import Any
from uuid import uuid4

import orjson
from aiohttp import WSMsgType, web

from conformance.faults.zenflux.front import Front
from conformance.faults.zenflux.player import Telling, Told
from conformance.faults.zenflux.state import Body, Refusal, Session, event_time

THROTTLE = 0.15


class Line:
    """One connection and the run it tells."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self.socket = socket
        self.session: Session | None = None
        self.tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


class Sockets(Front):
    """Answers the frames of a socket; every rule is a step that a fault can change."""

    tick_every = 30.0

    async def get_socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        line = Line(socket)
        line.spawn(self.tick(line))
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    await self.hear(line, message.data)
        finally:
            for task in list(line.tasks):
                task.cancel()
        return socket

    async def tick(self, line: Line) -> None:
        while True:
            await asyncio.sleep(self.tick_every)
            await self.send(line, self.tick_frame())

    def tick_frame(self) -> Body:
        return {"type": "event", "event": "tick", "payload": {"ts": int(time() * 1000)}, "seq": 0}

    async def send(self, line: Line, frame: Body) -> None:
        with suppress(ConnectionResetError, RuntimeError):
            await line.socket.send_str(orjson.dumps(frame).decode())

    async def hear(self, line: Line, text: str) -> None:
        try:
            frame = orjson.loads(text)
        except orjson.JSONDecodeError:
            return await self.malformed(line)
        match frame:
            case {"type": "ping"}:
                await self.send(line, self.pong())
            case {"type": "req"}:
                await self.respond(line, frame)
            case _:
                await self.malformed(line)
        return None

    async def malformed(self, line: Line) -> None:
        """What makes no sense is ignored."""

    def pong(self) -> Body:
        return {"type": "pong", "ts": int(time() * 1000)}

    async def respond(self, line: Line, frame: Body) -> None:
        name = self.request_id(frame)
        try:
            payload = await self.obey(line, frame.get("method"), frame.get("params"))
        except Refusal as refusal:
            await self.send(line, self.error_frame(name, refusal.code, refusal.words))
            return
        await self.send(line, self.response_frame(name, payload))
        self.start(line, payload)

    def request_id(self, frame: Body) -> str:
        return frame.get("id") or str(uuid4())

    def response_frame(self, name: str, payload: Body) -> Body:
        return {"type": "res", "id": name, "ok": True, "payload": payload}

    def error_frame(self, name: str, code: str, words: str) -> Body:
        return {"type": "res", "id": name, "ok": False, "error": {"code": code, "message": words}}

    async def obey(self, line: Line, method: Any, params: Any) -> Body:
        if method == "chat.send":
            return self.chat_send(line, params)
        if method == "chat.abort":
            return self.chat_abort(params)
        raise Refusal(404, "METHOD_NOT_FOUND", f"There is no method {method}.")

    def chat_send(self, line: Line, params: Any) -> Body:
        session = self.begin(self.check(params), has_rounds=True)
        self.leave(line)
        line.session = session
        about = {"session_id": session.id, "conversation_id": session.conversation.id}
        return {"status": "streaming", **about, "message_id": session.message_id}

    def leave(self, line: Line) -> None:
        """A chat on a busy line stops the one before."""
        if line.session is not None and not line.session.is_over:
            self.stop(line.session)

    def chat_abort(self, params: Any) -> Body:
        session = self.session(params.get("session_id") if isinstance(params, dict) else None)
        if not session.is_over:
            self.stop(session)
        return {"session_id": session.id, "status": "stopped", "stopped_at": event_time()}

    def start(self, line: Line, payload: Body) -> None:
        """After the response to a chat its events follow."""
        if payload["status"] == "streaming":
            line.spawn(self.tell(line, self.sessions[payload["session_id"]]))

    async def tell(self, line: Line, session: Session) -> None:
        async for told in self.throttled(self.play(session)):
            await self.deliver(line, session, told)

    async def deliver(self, line: Line, session: Session, told: Told) -> None:
        await self.send(line, self.event_frame(self.envelope(session, told)))

    def event_frame(self, envelope: Body) -> Body:
        return {"type": "event", "event": envelope["type"], "payload": envelope, "seq": envelope["seq"]}

    def envelope(self, session: Session, told: Told) -> Body:
        session.seq += 1
        about = {"event_uuid": str(uuid4()), "seq": session.seq, "type": told.type, "session_id": session.id}
        about |= {"conversation_id": session.conversation.id, "message_id": session.message_id}
        about |= {"timestamp": event_time(), "data": told.data}
        return about | ({"message": told.message} if told.message is not None else {})

    async def throttled(self, telling: Telling) -> Telling:
        """Deltas that follow each other within 150 ms are merged; anything else lets go what was held."""
        last, held, index = 0.0, "", 0
        async for told in telling:
            if told.type != "content_delta":
                if held:
                    yield Told("content_delta", {"index": index, "delta": held})
                held = ""
                yield told
                continue
            index, held = told.data["index"], held + told.data["delta"]
            if asyncio.get_running_loop().time() - last >= THROTTLE:
                yield Told("content_delta", {"index": index, "delta": held})
                last, held = asyncio.get_running_loop().time(), ""
