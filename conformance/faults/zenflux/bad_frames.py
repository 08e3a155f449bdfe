"""Servers whose frames, responses and refusals on the socket are wrong."""

from typing import Any

import orjson
from aiohttp import web

from conformance.faults.fault import fault
from conformance.faults.zenflux.memory import Body, Conversation, Refusal, Session
from conformance.faults.zenflux.server import ZenfluxServer
from conformance.faults.zenflux.socket import Line

ABORT = "frames.an_abort_names_a_session"
NEEDED = "frames.a_message_is_needed frames.a_user_is_needed"
REFUSED = f"{ABORT} {NEEDED} frames.other_methods_are_refused"
RESPONSE = "frames.a_response_has_the_id_of_its_request"
CODES = "responses.errors_have_their_codes"


@fault("ZF-WS-01", "ZF-GEN-01", cases="frames.the_endpoint_opens")
class NoSocket(ZenfluxServer):
    """The chat endpoint is not a WebSocket."""

    async def get_socket(self, request: web.Request) -> web.WebSocketResponse:
        raise web.HTTPNotFound


@fault("ZF-WS-02", cases="frames.every_frame_is_one_json_object")
class BinaryFrames(ZenfluxServer):
    """Frames are binary."""

    async def send(self, line: Line, frame: Body) -> None:
        await line.socket.send_bytes(orjson.dumps(frame))


@fault("ZF-WS-02", cases="frames.every_frame_is_one_json_object")
class UnknownFrames(ZenfluxServer):
    """There are frames of a type of the server's own."""

    async def send(self, line: Line, frame: Body) -> None:
        await super().send(line, {"type": "log", "text": "sending"})
        await super().send(line, frame)


@fault("ZF-WS-03", "ZF-WS-14", cases=RESPONSE)
class OtherIds(ZenfluxServer):
    """Responses have ids of their own."""

    def request_id(self, frame: Body) -> str:
        return super().request_id({})


@fault("ZF-WS-14", cases=RESPONSE)
class AnsweredTwice(ZenfluxServer):
    """Each response is sent twice."""

    async def send(self, line: Line, frame: Body) -> None:
        await super().send(line, frame)
        if frame["type"] == "res":
            await super().send(line, frame)


@fault("ZF-WS-14", cases=RESPONSE)
class NoPayload(ZenfluxServer):
    """An ok response has no payload."""

    def response_frame(self, name: str, payload: Body) -> Body:
        return {"type": "res", "id": name, "ok": True}


@fault("ZF-WS-04", cases="frames.other_methods_are_refused")
class AnyMethodChats(ZenfluxServer):
    """Every method is chat.send."""

    async def obey(self, line: Line, method: Any, params: Any) -> Body:
        return await super().obey(line, method if method == "chat.abort" else "chat.send", params)


@fault("ZF-WS-05", cases="frames.a_message_is_needed")
class MessageNotNeeded(ZenfluxServer):
    """A chat without a message is a chat."""

    def check_needed(self, params: Body, name: str) -> None:
        if name == "message":
            params.setdefault("message", "Hello")
        super().check_needed(params, name)


@fault("ZF-WS-06", cases="frames.a_user_is_needed")
class UserNotNeeded(ZenfluxServer):
    """A chat without a user is somebody's."""

    def check_needed(self, params: Body, name: str) -> None:
        if name == "user_id":
            params.setdefault("user_id", "local")
        super().check_needed(params, name)


@fault("ZF-WS-15", cases=REFUSED)
class ErrorAsText(ZenfluxServer):
    """The error of a response is a string."""

    def error_frame(self, name: str, code: str, words: str) -> Body:
        return super().error_frame(name, code, words) | {"error": words}


@fault("ZF-WS-15", cases=REFUSED)
class ErrorWithoutCode(ZenfluxServer):
    """The error of a response has no code."""

    def error_frame(self, name: str, code: str, words: str) -> Body:
        return super().error_frame(name, code, words) | {"error": {"message": words}}


@fault("ZF-WS-07", cases="frames.a_conversation_is_continued_or_new")
class AlwaysNew(ZenfluxServer):
    """Every chat is in a new conversation."""

    def talk(self, params: Body) -> Conversation:
        return super().talk(params | {"conversation_id": None})


@fault("ZF-WS-07", cases="frames.a_conversation_is_continued_or_new")
class OneConversation(ZenfluxServer):
    """A user has one conversation for all chats that name none."""

    def talk(self, params: Body) -> Conversation:
        owned = self.owned(params["user_id"])
        return owned[0] if owned and not params.get("conversation_id") else super().talk(params)


@fault("ZF-WS-08", cases="frames.the_agent_can_be_chosen")
class AnyAgent(ZenfluxServer):
    """The agent's name is not looked at."""

    def check_agent(self, params: Body) -> None:
        pass


@fault("ZF-WS-09", cases="frames.streaming_can_be_chosen")
class NothingWithoutStreaming(ZenfluxServer):
    """A chat that is not streamed is refused."""

    def begin(self, params: Body, has_rounds: bool) -> Session:
        if params.get("stream") is False and has_rounds:
            raise Refusal(400, "VALIDATION_ERROR", "Only streams.")
        return super().begin(params, has_rounds)


class _Refusing(ZenfluxServer):
    """Refuses chats that have a certain parameter."""

    unwanted = ""

    def check(self, params: Any) -> Body:
        if isinstance(params, dict) and params.get(self.unwanted):
            raise Refusal(400, "VALIDATION_ERROR", f"No {self.unwanted}, please.")
        return super().check(params)


@fault("ZF-WS-10", cases="frames.tasks_and_variables_are_taken")
class NoTasks(_Refusing):
    """background_tasks are refused."""

    unwanted = "background_tasks"


@fault("ZF-WS-12", cases="frames.tasks_and_variables_are_taken")
class NoVariables(_Refusing):
    """variables are refused."""

    unwanted = "variables"


@fault("ZF-WS-11", "ZF-TYPE-02", "ZF-HTTP-3.4-01", cases="frames.files_are_taken files.an_upload_can_be_sent_along")
class NoFiles(_Refusing):
    """files are refused."""

    unwanted = "files"


@fault("ZF-WS-13", cases=ABORT)
class AbortsAnything(ZenfluxServer):
    """An abort that names nobody is ok."""

    def chat_abort(self, params: Any) -> Body:
        try:
            return super().chat_abort(params)
        except Refusal:
            return {"status": "stopped"}


@fault("ZF-WS-13", cases=ABORT)
class AbortsNothing(ZenfluxServer):
    """An abort is ok and does nothing."""

    def stop(self, session: Session) -> None:
        pass


@fault("ZF-WS-16", cases="frames.an_event_frame_names_its_event")
class AlwaysMessage(ZenfluxServer):
    """The event of every frame is `message`."""

    def event_frame(self, envelope: Body) -> Body:
        return super().event_frame(envelope) | {"event": "message"}


@fault("ZF-WS-16", cases="frames.an_event_frame_names_its_event")
class NoFrameNumbers(ZenfluxServer):
    """All frames have the number 0."""

    def event_frame(self, envelope: Body) -> Body:
        return super().event_frame(envelope) | {"seq": 0}


@fault("G-ZF-07", cases="responses.the_response_comes_first")
class BareResponse(ZenfluxServer):
    """The response to a chat does not say which session it is."""

    def response_frame(self, name: str, payload: Body) -> Body:
        return super().response_frame(name, {"status": payload["status"]})


@fault("G-ZF-08", cases=CODES)
class OneCode(ZenfluxServer):
    """All errors have the same code."""

    def error_frame(self, name: str, code: str, words: str) -> Body:
        return super().error_frame(name, "ERROR", words)


@fault("G-ZF-09", cases="responses.files_may_stand_for_words")
class WordsNeeded(ZenfluxServer):
    """An empty message is refused, files or not."""

    def check(self, params: Any) -> Body:
        is_empty = isinstance(params, dict) and not params.get("message")
        return super().check(params | {"files": []} if is_empty else params)


@fault("ZF-WS-15", cases="frames.requests_of_the_wrong_shape_are_refused")
class WrongParamsUnanswered(ZenfluxServer):
    """A request whose params are a list has no answer."""

    async def respond(self, line: Line, frame: Body) -> None:
        if not isinstance(frame.get("params"), list):
            await super().respond(line, frame)
