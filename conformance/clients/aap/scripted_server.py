"""The scripted AAP server: it keeps its state in memory, accepts what a client sends, and plays a situation."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from aiohttp import web

from conformance.clients.aap.player import Pause, Player, Turn
from conformance.clients.agent_actions import Action, Drop, Refuse
from conformance.clients.reply_queue import ReplyQueue
from conformance.clients.request_recorder import ENTRY, recorder, reply, retry_after
from conformance.clients.situation import SERVER_TOOL
from conformance.clients.sse import hang_up

LEAF: dict[str, Any] = {}
MODES = ("delta", "message", "none")


@dataclass
class Session:
    """One session, as its client made it."""

    id: str
    agent: dict[str, Any]
    tools: list[Any]
    history: list[dict[str, Any]]
    pending: dict[str, dict[str, Any]] = field(default_factory=dict)
    rest: Sequence[Action] = ()
    """What is still to be played when the pending calls are settled."""

    @property
    def info(self) -> dict[str, Any]:
        return {"sessionId": self.id, "agent": self.agent, "tools": self.tools}


class AapScriptedServer:
    """Plays situations over AAP."""

    mount = "/aap"
    cancels_requests = True

    def __init__(self) -> None:
        self.reply_queue = ReplyQueue()
        self._sessions: dict[str, Session] = {}
        self._player = Player(self.reply_queue)

    def app(self) -> web.Application:
        app = web.Application(middlewares=[recorder(self.reply_queue, self.mount, _refusal)])
        app.add_routes([
            web.get("/aap/meta", self._get_meta),
            web.post("/aap/sessions", self._post_session),
            web.get("/aap/sessions", self._get_sessions),
            web.get("/aap/sessions/{id}", self._get_session),
            web.delete("/aap/sessions/{id}", self._delete_session),
            web.get("/aap/sessions/{id}/history", self._get_history),
            web.post("/aap/sessions/{id}/turns", self._post_turn),
        ])  # fmt: skip
        return app

    async def _get_meta(self, request: web.Request) -> web.StreamResponse:
        tool = {"name": SERVER_TOOL, "description": "Calculates.", "parameters": {"type": "object"}}
        option = {"type": "text", "name": "tone", "default": "friendly"}
        capabilities = {
            "history": {"full": LEAF},
            "stream": dict.fromkeys(self.reply_queue.option("modes") or MODES, LEAF),
            "application": {"tools": LEAF},
        }
        about = {"name": "examiner", "title": "Examiner", "version": "1.0.0", "tools": [tool], "options": [option]}
        return reply({"version": 3, "agents": [about | {"capabilities": capabilities} | self.reply_queue.members]})

    async def _post_session(self, request: web.Request) -> web.StreamResponse:
        body = _object(request)
        history = [message for message in _list(body.get("messages")) if isinstance(message, dict)]
        agent = body.get("agent")
        session = Session(
            f"s-{uuid4().hex}", agent if isinstance(agent, dict) else {"name": "examiner"}, _list(body.get("tools")),
            history,
        )  # fmt: skip
        self._sessions[session.id] = session
        return reply({"sessionId": session.id} | self.reply_queue.members, 201)

    async def _get_sessions(self, request: web.Request) -> web.StreamResponse:
        return reply({"sessions": [session.info for session in self._sessions.values()]})

    async def _get_session(self, request: web.Request) -> web.StreamResponse:
        return reply(self._find(request).info)

    async def _delete_session(self, request: web.Request) -> web.StreamResponse:
        del self._sessions[self._find(request).id]
        return web.Response(status=204)

    async def _get_history(self, request: web.Request) -> web.StreamResponse:
        return reply({"history": {"full": self._find(request).history}})

    def _find(self, request: web.Request) -> Session:
        try:
            return self._sessions[request.match_info["id"]]
        except KeyError:
            raise web.HTTPNotFound(reason="there is no such session") from None

    # -- turns ---------------------------------------------------------------------------------------------------------

    async def _post_turn(self, request: web.Request) -> web.StreamResponse:
        """Play the next reply to a message, or go on with the one that waits for answers."""
        session, body = self._find(request), _object(request)
        self._configure(session, body)
        messages = [message for message in _list(body.get("messages")) if isinstance(message, dict)]
        answers = [message for message in messages if message.get("role") != "user"]
        if answers:
            self._settle(session, answers)
            return await self._play(request, session, body, session.rest)
        session.pending.clear()
        match self.reply_queue.next_reply():
            case Refuse(status, seconds):
                self.reply_queue.traffic.mark("refused")
                return reply({"error": f"refused with {status}"}, status, retry_after(seconds))
            case Drop():
                self.reply_queue.traffic.note_cut()
                hang_up(request)
                return web.Response()
            case actions:
                session.history += messages
                return await self._play(request, session, body, actions)

    def _configure(self, session: Session, body: dict[str, Any]) -> None:
        """What a turn declares takes the place of what the session was made with."""
        if isinstance(body.get("tools"), list):
            session.tools = body["tools"]
        if isinstance(body.get("agent"), dict):
            session.agent = session.agent | body["agent"]

    def _settle(self, session: Session, answers: Sequence[dict[str, Any]]) -> None:
        for answer in answers:
            call = session.pending.pop(str(answer.get("toolCallId")), None)
            if call is not None and answer.get("role") == "tool":
                session.history.append(answer)

    async def _play(
        self, request: web.Request, session: Session, body: dict[str, Any], actions: Sequence[Action]
    ) -> web.StreamResponse:
        mode = body.get("stream", "none")
        turn = Turn(mode if mode in MODES else "none", session.agent, session.tools, session.id)
        with self.reply_queue.playing():
            pause: Pause = await self._player.play(request, turn, actions, waiting=bool(session.pending))
        if pause.said:
            session.history.append({"role": "assistant", "content": pause.said})
        session.history += pause.results
        session.pending |= pause.pending
        session.rest = pause.rest
        if pause.is_cut:
            hang_up(request)
        return pause.response


def _refusal(status: int, words: str) -> web.Response:
    return reply({"error": words}, status)


def _object(request: web.Request) -> dict[str, Any]:
    body = request[ENTRY].body
    return body if isinstance(body, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
