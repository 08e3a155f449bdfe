"""Servers that ask the user wrongly, or make the wrong thing of the answer."""

from typing import Any

from aiohttp import web

from conformance.faults.fault import fault
from conformance.faults.zenflux.memory import Body, Refusal, Request, Session
from conformance.faults.zenflux.player import Telling
from conformance.faults.zenflux.server import ZenfluxServer

APPROVE = "confirmations.an_approval_lets_the_tool_run"
REJECT = "confirmations.a_rejection_keeps_the_tool_from_running"
OWN = "confirmations.words_of_ones_own_are_an_answer"
EITHER = "confirmations.either_id_will_do"
WAITS = "extras.a_long_task_waits"


@fault("ZF-HTTP-3.3-01", cases="confirmations.what_waits_is_listed")
class NothingPending(ZenfluxServer):
    """Nothing is ever pending."""

    def pending(self) -> list[Body]:
        return []


@fault("ZF-HTTP-3.3-02", cases=APPROVE)
class AlwaysDenied(ZenfluxServer):
    """An approved tool does not run."""

    def is_denied(self, session: Session) -> bool:
        return True


@fault("ZF-HTTP-3.3-02", "ZF-HTTP-3.3-04", cases=f"{REJECT} confirmations.a_request_can_be_cancelled")
class NeverDenied(ZenfluxServer):
    """A rejected tool runs."""

    def is_denied(self, session: Session) -> bool:
        return False


@fault("ZF-HTTP-3.3-02", cases=OWN)
class TwoWords(ZenfluxServer):
    """Only approve and reject are answers."""

    def response(self, body: Body) -> Any:
        if body.get("response") not in ("approve", "reject"):
            raise Refusal(400, "VALIDATION_ERROR", "Say approve or reject.")
        return super().response(body)


@fault("ZF-TYPE-08", cases="types.a_confirmation_is_a_response_with_metadata")
class SilenceIsConsent(ZenfluxServer):
    """A confirmation without a response is an approval."""

    def response(self, body: Body) -> Any:
        return body.get("response", "approve")


@fault("ZF-HTTP-3.3-03", cases="confirmations.a_request_can_be_looked_at")
class RequestAsText(ZenfluxServer):
    """A request shows only its question."""

    async def get_confirmation(self, request: web.Request) -> web.StreamResponse:
        return self.reply(self.request(request.match_info["id"]).content["question"])


@fault("ZF-HTTP-3.3-04", cases="confirmations.a_request_can_be_cancelled")
class CancelIsIgnored(ZenfluxServer):
    """A cancelled request still waits."""

    async def delete_confirmation(self, request: web.Request) -> web.StreamResponse:
        return self.reply({"request_id": self.request(request.match_info["id"]).id})


@fault("G-ZF-24", cases=EITHER)
class AnsweredAgain(ZenfluxServer):
    """A second answer is taken."""

    async def post_confirmation(self, request: web.Request) -> web.StreamResponse:
        try:
            return await super().post_confirmation(request)
        except Refusal:
            return self.reply({"response": self.response(await self.read(request))})


@fault("G-ZF-24", cases=EITHER)
class SessionsOnly(ZenfluxServer):
    """A request can only be named by its session."""

    def request(self, name: str) -> Request:
        return super().request(self.session(name).id)


@fault("G-ZF-25", cases="confirmations.a_request_can_be_shown_to_a_user")
class NoQuestion(ZenfluxServer):
    """A request has no question."""

    async def ask(self, *given: Any) -> Telling:
        async for told in super().ask(*given):
            about = {name: value for name, value in told.data["delta"]["content"].items() if name != "question"}
            yield self.note("confirmation_request", about)


@fault("G-ZF-26", "G-ZF-27", cases=f"confirmations.the_stream_waits_with_the_user {WAITS}")
class GoesOnTalking(ZenfluxServer):
    """While the user is asked, notes go on."""

    async def play(self, session: Session) -> Telling:
        async for told in super().play(session):
            yield told
            if told.data.get("type") == "confirmation_request" or told.type == "long_running_confirm":
                yield self.note("preface", "Still waiting.")
