"""Chats and sessions of the ZenFlux reference server over REST: streams, answers at once, stops and infos."""

from contextlib import suppress

import orjson
from aiohttp import web

from conformance.faults.zenflux.player import Telling
from conformance.faults.zenflux.socket import Sockets
from conformance.faults.zenflux.state import Body, Refusal, Session, event_time, object_time

SPELLINGS = {
    "userId": "user_id",
    "conversationId": "conversation_id",
    "messageId": "message_id",
    "agentId": "agent_id",
    "backgroundTasks": "background_tasks",
}
DONE = {"type": "done", "data": {"type": "done"}}
USAGE = {"input_tokens": 3, "output_tokens": 5}


class Streams(Sockets):
    """POST /chat and everything below /session."""

    def stream_routes(self) -> list[web.RouteDef]:
        return [
            web.post("/chat", self.post_chat),
            web.get("/sessions", self.get_sessions),
            web.get("/session/{id}", self.get_session),
            web.delete("/session/{id}", self.delete_session),
            web.post("/session/{id}/stop", self.post_stop),
            web.post("/session/{id}/confirm_continue", self.post_continue),
            web.post("/session/{id}/rollback", self.post_rollback),
        ]

    def spelled(self, body: Body) -> Body:
        """Either spelling in one."""
        return {SPELLINGS.get(name, name): value for name, value in body.items()}

    async def post_chat(self, request: web.Request) -> web.StreamResponse:
        params = self.check(self.spelled(await self.read(request)))
        session = self.begin(params, has_rounds=False)
        if session.is_streamed:
            return await self.stream(request, session)
        async for _ in self.play(session):
            pass
        return self.reply(self.whole(session))

    def whole(self, session: Session) -> Body:
        text = "".join(block.get("text", "") for block in session.blocks)
        about = {"task_id": session.id, "session_id": session.id, "conversation_id": session.conversation.id}
        return about | {"message_id": session.message_id, "content": text, "status": "completed", "usage": USAGE}

    async def stream(self, request: web.Request, session: Session) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": self.stream_type()})
        await response.prepare(request)
        with suppress(ConnectionResetError):
            async for told in self.forwarded(session):
                await response.write(self.chunk(self.envelope(session, told)))
            await response.write(self.last_chunk())
            await response.write_eof()
        return response

    def stream_type(self) -> str:
        return "text/event-stream"

    def forwarded(self, session: Session) -> Telling:
        """What of a run goes into the stream: all of it, not throttled."""
        return self.play(session)

    def chunk(self, envelope: Body) -> bytes:
        return b"data: %s\n\n" % orjson.dumps(envelope)

    def last_chunk(self) -> bytes:
        return b"event: done\ndata: %s\n\n" % orjson.dumps(DONE)

    # -- sessions ------------------------------------------------------------------------------------------------------

    def found(self, request: web.Request) -> Session:
        return self.session(request.match_info["id"])

    def info(self, session: Session) -> Body:
        messages = len(session.conversation.messages)
        about = {"session_id": session.id, "active": not session.is_over, "turns": 1, "message_count": messages}
        about |= {"has_plan": False, "start_time": session.start_time}
        return about | {"user_id": session.user_id, "conversation_id": session.conversation.id}

    async def get_session(self, request: web.Request) -> web.StreamResponse:
        return self.reply(self.info(self.found(request)))

    async def get_sessions(self, request: web.Request) -> web.StreamResponse:
        active = [self.info(session) for session in self.sessions.values() if not session.is_over]
        return self.reply({"total": len(active), "sessions": active})

    async def delete_session(self, request: web.Request) -> web.StreamResponse:
        session = self.found(request)
        self.stop(session)
        del self.sessions[session.id]
        return self.reply({"session_id": session.id, "status": "completed", "end_time": object_time()})

    async def post_stop(self, request: web.Request) -> web.StreamResponse:
        session = self.found(request)
        if not session.is_over:
            self.stop(session)
        return self.reply({"session_id": session.id, "status": "stopped", "stopped_at": event_time()})

    async def post_continue(self, request: web.Request) -> web.StreamResponse:
        session = self.found(request)
        if session.waits_for == "continue":
            session.going_on.set()
        return self.reply({"session_id": session.id})

    async def post_rollback(self, request: web.Request) -> web.StreamResponse:
        session = self.found(request)
        if session.waits_for != "rollback":
            raise Refusal(404, "SNAPSHOT_NOT_FOUND", "There is nothing to roll back to.")
        session.going_on.set()
        return self.reply({"session_id": session.id, "messages": ["Rolled back."]})
