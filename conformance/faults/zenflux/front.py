"""The front of the ZenFlux reference server: wrapper, refusals, bodies, conversations and sessions by id."""

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from aiohttp import web

from conformance.faults.zenflux.player import Player
from conformance.faults.zenflux.state import Body, Conversation, Refusal, Request, Session

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
AGENTS = ("reference",)
TYPES: dict[str, type | tuple[type, ...]] = {
    "message": str,
    "user_id": str,
    "conversation_id": (str, type(None)),
    "agent_id": (str, type(None)),
    "stream": bool,
    "background_tasks": list,
    "files": list,
    "variables": dict,
}


class Front(Player):
    """What all parts of the server share."""

    def __init__(self) -> None:
        self.conversations: dict[str, Conversation] = {}
        self.sessions: dict[str, Session] = {}

    # -- answers -------------------------------------------------------------------------------------------------------

    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except Refusal as refusal:
            return self.refusal(refusal.status, refusal.words)
        except web.HTTPException as error:
            return self.refusal(error.status, error.reason)

    def refusal(self, status: int, words: str) -> web.Response:
        return self.wrap(status, words, None)

    def reply(self, data: Any) -> web.Response:
        return self.wrap(200, "success", data)

    def wrap(self, code: int, message: str, data: Any) -> web.Response:
        """The wrapper; what is in an object stands beside it too."""
        wrapper = {"code": code, "message": message, "data": data}
        flat = {**data, "success": True} if isinstance(data, dict) else {}
        body = orjson.dumps(wrapper | {name: value for name, value in flat.items() if name not in wrapper})
        return web.Response(body=body, status=code, content_type="application/json")

    async def read(self, request: web.Request) -> Body:
        try:
            body = orjson.loads(await request.read())
        except orjson.JSONDecodeError:
            raise Refusal(400, "VALIDATION_ERROR", "The body is not JSON.") from None
        if not isinstance(body, dict):
            raise Refusal(400, "VALIDATION_ERROR", "The body must be an object.")
        return body

    # -- chats ---------------------------------------------------------------------------------------------------------

    def check(self, params: Any) -> Body:
        """The parameters of a chat, if they make sense."""
        if not isinstance(params, dict):
            raise Refusal(400, "VALIDATION_ERROR", "There are no parameters.")
        for name in ("message", "user_id"):
            self.check_needed(params, name)
        for name, kind in TYPES.items():
            if name in params and not isinstance(params[name], kind):
                raise Refusal(400, "VALIDATION_ERROR", f"{name} has the wrong type.")
        if not params["message"] and not params.get("files"):
            raise Refusal(400, "VALIDATION_ERROR", "There is neither a message nor a file.")
        self.check_agent(params)
        return params

    def check_needed(self, params: Body, name: str) -> None:
        if not isinstance(params.get(name), str):
            raise Refusal(400, "VALIDATION_ERROR", f"{name} is required.")

    def check_agent(self, params: Body) -> None:
        if params.get("agent_id") and params["agent_id"] not in AGENTS:
            raise Refusal(400, "AGENT_NOT_FOUND", "There is no such agent.")

    def begin(self, params: Body, has_rounds: bool) -> Session:
        """A session for a chat, in the conversation it names or in a new one."""
        talk = self.talk(params)
        session = Session(params["user_id"], talk, params["message"], params.get("stream", True), has_rounds)
        self.sessions[session.id] = session
        talk.add("user", params["message"], params.get("message_id"))
        return session

    def talk(self, params: Body) -> Conversation:
        if name := params.get("conversation_id"):
            return self.conversation(name)
        return self.add_conversation(Conversation(params["user_id"], "New conversation"))

    def add_conversation(self, talk: Conversation) -> Conversation:
        self.conversations[talk.id] = talk
        return talk

    def conversation(self, name: str) -> Conversation:
        try:
            return self.conversations[name]
        except KeyError:
            raise Refusal(404, "CONVERSATION_NOT_FOUND", "There is no such conversation.") from None

    def session(self, name: Any) -> Session:
        if not isinstance(name, str):
            raise Refusal(400, "VALIDATION_ERROR", "session_id is required.")
        try:
            return self.sessions[name]
        except KeyError:
            raise Refusal(404, "SESSION_NOT_FOUND", "There is no such session.") from None

    def stop(self, session: Session) -> None:
        session.stopping.set()

    def request(self, name: str) -> Request:
        """What waits under this id, of the request or of its session."""
        for session in self.sessions.values():
            if session.request and not session.request.answer.done() and name in (session.id, session.request.id):
                return session.request
        raise Refusal(404, "REQUEST_NOT_FOUND", "There is no such request.")
