"""Servers whose chats and sessions over REST are wrong."""


from aiohttp import web

from conformance.faults.fault import fault
from conformance.faults.zenflux.memory import Body, Refusal, Session
from conformance.faults.zenflux.server import ZenfluxServer

ONCE = "chat.a_chat_is_answered_at_once"
COMPLETE = "chat.an_answer_at_once_is_complete"
FRAMED = "chat.streams_are_framed_plainly"
LOOK = "types.a_session_can_be_looked_at"
LONG = "extras.a_long_task_asks_and_goes_on"
WAITS = "extras.a_long_task_waits"
ROLLBACK = "extras.a_rollback_tells_what_it_did"


@fault("ZF-HTTP-3.1-01", cases="chat.a_chat_is_streamed")
class StreamAsText(ZenfluxServer):
    """A stream says that it is plain text."""

    def stream_type(self) -> str:
        return "text/plain"


@fault("ZF-HTTP-3.1-01", cases=ONCE)
class AlwaysAStream(ZenfluxServer):
    """Without streaming there is a stream all the same."""

    def spelled(self, body: Body) -> Body:
        return super().spelled(body) | {"stream": True}


@fault("ZF-HTTP-3.1-01", "G-ZF-19", cases=f"{ONCE} {COMPLETE}")
class OnlyWords(ZenfluxServer):
    """Without streaming the answer is the text alone."""

    def whole(self, session: Session) -> Body:
        return {"content": super().whole(session)["content"], "session_id": session.id}


@fault("G-ZF-19", cases=COMPLETE)
class OnlyTheTask(ZenfluxServer):
    """A completed chat is answered without its content."""

    def whole(self, session: Session) -> Body:
        return {name: value for name, value in super().whole(session).items() if name != "content"}


@fault("ZF-TYPE-07", cases="types.a_whole_chat_request_is_taken")
class SnakesOnly(ZenfluxServer):
    """POST /chat does not know conversationId."""

    def spelled(self, body: Body) -> Body:
        return super().spelled({name: value for name, value in body.items() if name != "conversationId"})


@fault("G-ZF-20", cases="chat.both_spellings_are_taken")
class CamelsOnly(ZenfluxServer):
    """POST /chat does not know user_id."""

    def spelled(self, body: Body) -> Body:
        return super().spelled({name: value for name, value in body.items() if "_" not in name})


@fault("G-ZF-20", cases="chat.both_spellings_are_taken")
class NamesItsOwnMessages(ZenfluxServer):
    """The id that the client gives a message is ignored."""

    def begin(self, params: Body, has_rounds: bool) -> Session:
        return super().begin(params | {"message_id": None}, has_rounds)


@fault("G-ZF-21", cases=FRAMED)
class CarriageReturns(ZenfluxServer):
    """Lines end in CRLF."""

    def chunk(self, envelope: Body) -> bytes:
        return super().chunk(envelope).replace(b"\n", b"\r\n")


@fault("G-ZF-21", cases=FRAMED)
class NamedEvents(ZenfluxServer):
    """Every event has an event line."""

    def chunk(self, envelope: Body) -> bytes:
        return b"event: message\n" + super().chunk(envelope)


@fault("G-ZF-04", cases="lifecycle.rounds_share_their_indexes")
class RoundsInStreams(ZenfluxServer):
    """A stream has a message for each round."""

    def begin(self, params: Body, has_rounds: bool) -> Session:
        return super().begin(params, has_rounds=True)


# -- sessions ----------------------------------------------------------------------------------------------------------


@fault("ZF-HTTP-3.1-02", cases="sessions.a_session_can_be_stopped")
class StopIsIgnored(ZenfluxServer):
    """A stop is answered and does nothing."""

    async def post_stop(self, request: web.Request) -> web.StreamResponse:
        return self.reply({"session_id": self.found(request).id, "status": "stopped"})


@fault("ZF-TYPE-04", "ZF-HTTP-3.1-05", cases=LOOK)
class SparseInfo(ZenfluxServer):
    """A session shows only its id."""

    def info(self, session: Session) -> Body:
        return {"session_id": session.id}


@fault("ZF-TYPE-04", "ZF-HTTP-3.1-05", cases=LOOK)
class NeverActive(ZenfluxServer):
    """No session is active."""

    def info(self, session: Session) -> Body:
        return super().info(session) | {"active": False}


@fault("ZF-HTTP-3.1-06", cases="sessions.a_session_can_be_ended")
class EndedButActive(ZenfluxServer):
    """An ended session runs on."""

    async def delete_session(self, request: web.Request) -> web.StreamResponse:
        return self.reply({"session_id": self.found(request).id})


@fault("ZF-HTTP-3.1-07", cases="sessions.active_sessions_are_listed")
class NothingActive(ZenfluxServer):
    """The list of sessions is always empty."""

    async def get_sessions(self, request: web.Request) -> web.StreamResponse:
        return self.reply({"total": 0, "sessions": []})


@fault("ZF-HTTP-3.1-07", cases="sessions.active_sessions_are_listed")
class AllSessions(ZenfluxServer):
    """The list of sessions has those that are over."""

    async def get_sessions(self, request: web.Request) -> web.StreamResponse:
        sessions = [self.info(session) for session in self.sessions.values()]
        return self.reply({"total": len(sessions), "sessions": sessions})


@fault("G-ZF-31", cases="sessions.the_list_of_sessions_is_counted")
class BareSessions(ZenfluxServer):
    """The list of sessions is a bare list."""

    async def get_sessions(self, request: web.Request) -> web.StreamResponse:
        return self.reply([self.info(session) for session in self.sessions.values() if not session.is_over])


@fault("ZF-HTTP-3.1-03", "ZF-EV-39", cases=LONG)
class ContinueIsIgnored(ZenfluxServer):
    """confirm_continue is answered and does nothing."""

    async def post_continue(self, request: web.Request) -> web.StreamResponse:
        return self.reply({"session_id": self.found(request).id})


@fault("G-ZF-27", cases=WAITS)
class NothingToContinue(ZenfluxServer):
    """confirm_continue with nothing to confirm is an error."""

    async def post_continue(self, request: web.Request) -> web.StreamResponse:
        if self.found(request).waits_for != "continue":
            raise Refusal(409, "NOTHING_PENDING", "Nothing is asked.")
        return await super().post_continue(request)


@fault("G-ZF-28", cases=ROLLBACK)
class RollsBackNothing(ZenfluxServer):
    """A rollback with nothing to roll back to is done."""

    async def post_rollback(self, request: web.Request) -> web.StreamResponse:
        session = self.found(request)
        session.going_on.set()
        return self.reply({"session_id": session.id, "messages": []})


@fault("G-ZF-20", cases="chat.a_message_has_the_id_it_was_given")
class MessageIdUnknown(ZenfluxServer):
    """messageId is not known by that spelling."""

    def spelled(self, body: Body) -> Body:
        return super().spelled({name: value for name, value in body.items() if name != "messageId"})


@fault("G-ZF-11", cases="sessions.a_run_that_is_over_can_be_stopped")
class OverIsUnknown(ZenfluxServer):
    """A run that is over cannot be stopped over REST."""

    async def post_stop(self, request: web.Request) -> web.StreamResponse:
        if self.found(request).is_over:
            raise Refusal(404, "SESSION_NOT_FOUND", "There is no such session.")
        return await super().post_stop(request)
