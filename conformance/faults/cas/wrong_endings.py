"""CAS servers that end wrongly: sessions that are archived or deleted, turns that are cancelled or fail."""

from aiohttp import web

from conformance.faults.cas.front import Handler, reply
from conformance.faults.cas.memory import Body, Talk
from conformance.faults.cas.server import CasServer
from conformance.faults.fault import fault
from conformance.faults.ledger import Refusal

READ_ONLY, GONE = "sessions.an_archived_session_is_read_only", "sessions.a_deleted_session_is_gone"
CANCELLED, HARMLESS = "sessions.a_cancelled_turn_ends", "sessions.cancelling_an_idle_session_is_harmless"
FAILED, CLOSED = "turns.a_failed_turn_ends_well", "turns.a_deleted_session_closes_its_streams"


@fault("CAS-SESS-12", cases=READ_ONLY)
class ArchivedTakesMessages(CasServer):
    """An archived session takes messages."""

    def check_open(self, talk: Talk) -> None:
        return None


@fault("CAS-SESS-12", cases=READ_ONLY)
class ArchivedIsGone(CasServer):
    """An archived session cannot be read."""

    def find(self, request: web.Request) -> Talk:
        talk = super().find(request)
        if talk.view["archived_at"] is not None and request.method == "GET":
            raise Refusal(404, f"Session '{talk.view['id']}' was not found.")
        return talk


@fault("CAS-SESS-12", cases=GONE)
class DeletedInSilence(CasServer):
    """A deletion is answered with nothing."""

    async def delete_session(self, request: web.Request) -> web.StreamResponse:
        await super().delete_session(request)
        return web.Response(status=204)


@fault("CAS-SESS-12", cases=GONE)
class DeletedStays(CasServer):
    """A deleted session is still there."""

    async def delete_session(self, request: web.Request) -> web.StreamResponse:
        return reply({"id": self.find(request).view["id"], "type": "session_deleted"})


@fault("CAS-SESS-13", cases=CANCELLED)
class CancelIs200(CasServer):
    """cancel is a 200 whether a turn ran or not."""

    async def post_cancel(self, request: web.Request) -> web.StreamResponse:
        response = await super().post_cancel(request)
        response.set_status(200)
        return response


@fault("CAS-SESS-13", cases=CANCELLED)
class CancelledIsEndTurn(CasServer):
    """A cancelled turn says it came to its end."""

    def idle(self, talk: Talk, reason: Body) -> Body:
        return super().idle(talk, {"type": "end_turn"} if reason["type"] == "cancelled" else reason)


@fault("CAS-SESS-13", "CAS-EV-05", cases=f"{CANCELLED} events.an_interrupt_ends_the_turn")
class Unstoppable(CasServer):
    """Neither cancel nor interrupt ends a turn."""

    def stop(self, talk: Talk) -> None:
        return None


@fault("CAS-SESS-13", "CAS-SESS-15", cases=f"{HARMLESS} sessions.an_empty_object_is_accepted")
class IdleCannotBeCancelled(CasServer):
    """cancel of an idle session is a 409."""

    async def post_cancel(self, request: web.Request) -> web.StreamResponse:
        if not self.find(request).is_busy:
            raise Refusal(409, "Nothing runs.")
        return await super().post_cancel(request)


@fault("CAS-SESS-15", cases="sessions.an_empty_object_is_accepted")
class BodiesRefused(CasServer):
    """cancel and DELETE take no body."""

    async def once(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        is_bare = request.method == "DELETE" or request.path.endswith("/cancel")
        if is_bare and await request.read():
            raise Refusal(400, "There must be no body.")
        return await super().once(request, handler)


@fault("CAS-EV-18", cases=FAILED)
class FailsInSilence(CasServer):
    """A failed turn ends without session.error."""

    def store(self, talk: Talk, event: Body) -> None:
        if event["type"] != "session.error":
            super().store(talk, event)


@fault("CAS-EV-18", cases=FAILED)
class BareFailure(CasServer):
    """session.error is only words."""

    def error(self) -> Body:
        return {"message": "The agent broke."}


@fault("CAS-EV-18", cases=FAILED)
class StreamError(CasServer):
    """A failed turn is told as an SSE error."""

    def frame(self, body: Body) -> bytes:
        return super().frame(body).replace(b"event: session.error", b"event: error")


@fault("CAS-EV-18", cases=FAILED)
class BrokenForGood(CasServer):
    """After a failure the session takes no more messages."""

    def error(self) -> Body:
        self.is_broken = True
        return super().error()

    def check_open(self, talk: Talk) -> None:
        super().check_open(talk)
        if getattr(self, "is_broken", False):
            raise web.HTTPInternalServerError


@fault("CAS-EV-19", cases=CLOSED)
class DeletedButOpen(CasServer):
    """The streams of a deleted session stay open."""

    def is_over(self, talk: Talk) -> bool:
        return False


@fault("CAS-EV-19", cases=CLOSED)
class ClosedInSilence(CasServer):
    """The streams of a deleted session end without a word."""

    def close(self, talk: Talk) -> None:
        talk.is_closed = True
        talk.wake()
