"""Chats of the ZenFlux reference server: their parameters, and the conversations and sessions they name."""

from typing import Any

from conformance.faults.zenflux.state import Body, Conversation, Refusal, Request, Session, State

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


class Chats:
    """Checks chats, begins them in their conversations, finds and stops them."""

    def __init__(self, state: State) -> None:
        self.state = state

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
        if params.get("agent_id") and params["agent_id"] not in (*AGENTS, *self.state.agents):
            raise Refusal(400, "AGENT_NOT_FOUND", "There is no such agent.")

    def begin(self, params: Body, has_rounds: bool) -> Session:
        """A session for a chat, in the conversation it names or in a new one."""
        talk = self.talk(params)
        session = Session(params["user_id"], talk, params["message"], params.get("stream", True), has_rounds)
        self.state.sessions[session.id] = session
        talk.add("user", params["message"], params.get("message_id"))
        return session

    def talk(self, params: Body) -> Conversation:
        if name := params.get("conversation_id"):
            return self.conversation(name)
        return self.add_conversation(Conversation(params["user_id"], "New conversation"))

    def add_conversation(self, talk: Conversation) -> Conversation:
        self.state.conversations[talk.id] = talk
        return talk

    def conversation(self, name: str) -> Conversation:
        try:
            return self.state.conversations[name]
        except KeyError:
            raise Refusal(404, "CONVERSATION_NOT_FOUND", "There is no such conversation.") from None

    def session(self, name: Any) -> Session:
        if not isinstance(name, str):
            raise Refusal(400, "VALIDATION_ERROR", "session_id is required.")
        try:
            return self.state.sessions[name]
        except KeyError:
            raise Refusal(404, "SESSION_NOT_FOUND", "There is no such session.") from None

    def stop(self, session: Session) -> None:
        session.stopping.set()

    def request(self, name: str) -> Request:
        """The open request of this id, or of the session of this id."""
        for session in self.state.sessions.values():
            if session.request and not session.request.answer.done() and name in (session.id, session.request.id):
                return session.request
        raise Refusal(404, "REQUEST_NOT_FOUND", "There is no such request.")
