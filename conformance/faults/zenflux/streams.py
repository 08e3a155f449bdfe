"""Chats and sessions of the ZenFlux reference server over REST: streams, answers at once, stops and infos."""

from contextlib import suppress

from aiohttp import web

from conformance.faults.zenflux.chats import Chats
from conformance.faults.zenflux.front import Front
from conformance.faults.zenflux.player import Player, RunEvents
from conformance.faults.zenflux.state import Body, Refusal, Session, State, event_time, object_time
from conformance.faults.zenflux.writer import Writer

SPELLINGS = {
    "userId": "user_id",
    "conversationId": "conversation_id",
    "messageId": "message_id",
    "agentId": "agent_id",
    "backgroundTasks": "background_tasks",
}
USAGE = {"input_tokens": 3, "output_tokens": 5}


class Streams:
    """Answers POST /chat and requests below /session."""

    def __init__(self, state: State, player: Player, front: Front, chats: Chats, writer: Writer) -> None:
        self.state = state
        self.player = player
        self.front = front
        self.chats = chats
        self.writer = writer

    def spelled(self, body: Body) -> Body:
        """The body with its members in one of the two spellings."""
        return {SPELLINGS.get(name, name): value for name, value in body.items()}

    async def post_chat(self, request: web.Request) -> web.StreamResponse:
        params = self.chats.check(self.spelled(await self.front.read(request)))
        session = self.chats.begin(params, has_rounds=False)
        if session.is_streamed:
            return await self.stream(request, session)
        async for _ in self.player.play(session):
            pass
        return self.front.reply(self.whole(session))

    def whole(self, session: Session) -> Body:
        text = "".join(block.get("text", "") for block in session.blocks)
        about = {"task_id": session.id, "session_id": session.id, "conversation_id": session.conversation.id}
        return about | {"message_id": session.message_id, "content": text, "status": "completed", "usage": USAGE}

    async def stream(self, request: web.Request, session: Session) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": self.writer.stream_type()})
        await response.prepare(request)
        with suppress(ConnectionResetError):
            async for event in self.forwarded(session):
                await response.write(self.writer.chunk(self.writer.envelope(session, event)))
            await response.write(self.writer.last_chunk())
            await response.write_eof()
        return response

    def forwarded(self, session: Session) -> RunEvents:
        """The events of a run that go into the stream: all of them, not throttled."""
        return self.player.play(session)

    def found(self, request: web.Request) -> Session:
        return self.chats.session(request.match_info["id"])

    def info(self, session: Session) -> Body:
        messages = len(session.conversation.messages)
        about = {"session_id": session.id, "active": not session.is_over, "turns": 1, "message_count": messages}
        about |= {"has_plan": False, "start_time": session.start_time}
        return about | {"user_id": session.user_id, "conversation_id": session.conversation.id}

    async def get_session(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.info(self.found(request)))

    async def get_sessions(self, request: web.Request) -> web.StreamResponse:
        active = [self.info(session) for session in self.state.sessions.values() if not session.is_over]
        return self.front.reply({"total": len(active), "sessions": active})

    async def delete_session(self, request: web.Request) -> web.StreamResponse:
        session = self.found(request)
        self.chats.stop(session)
        del self.state.sessions[session.id]
        return self.front.reply({"session_id": session.id, "status": "completed", "end_time": object_time()})

    async def post_stop(self, request: web.Request) -> web.StreamResponse:
        session = self.found(request)
        if not session.is_over:
            self.chats.stop(session)
        return self.front.reply({"session_id": session.id, "status": "stopped", "stopped_at": event_time()})

    async def post_continue(self, request: web.Request) -> web.StreamResponse:
        session = self.found(request)
        if session.waits_for == "continue":
            session.going_on.set()
        return self.front.reply({"session_id": session.id})

    async def post_rollback(self, request: web.Request) -> web.StreamResponse:
        session = self.found(request)
        if session.waits_for != "rollback":
            raise Refusal(404, "SNAPSHOT_NOT_FOUND", "There is nothing to roll back to.")
        session.going_on.set()
        return self.front.reply({"session_id": session.id, "messages": ["Rolled back."]})
