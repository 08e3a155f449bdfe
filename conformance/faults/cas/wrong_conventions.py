"""CAS servers that are wrong in general: keys, errors, request ids, ids, bodies, lists and repeated requests."""

from typing import Any
from uuid import uuid4

from aiohttp import web

from conformance.faults.cas.front import LARGEST_PAGE, REQUEST_ID, reply
from conformance.faults.cas.memory import Body, Talk
from conformance.faults.cas.server import CasServer
from conformance.faults.fault import fault
from conformance.faults.ledger import Refusal

KEYS = "conventions.a_missing_key_is_refused conventions.a_wrong_key_is_refused"
UNKNOWN, WRONG = "conventions.an_unknown_session_is_not_found", "conventions.wrong_requests_have_matching_errors"
KEPT, GIVEN = "conventions.a_request_id_is_kept", "conventions.a_request_id_is_given"
PREFIXES = "conventions.ids_have_prefixes_and_times_are_utc"
TOO_LARGE = "conventions.a_body_that_is_too_large_is_refused"
FOLLOW, EVENTS = "listing.pages_follow_each_other", "listing.events_come_in_pages"


@fault("CAS-GEN-01", cases=KEYS)
class AnyKeyTaken(CasServer):
    """Keys are not looked at."""

    def authorize(self, request: web.Request) -> None:
        return None


@fault("CAS-GEN-01", cases=KEYS)
class WrongKeyForbidden(CasServer):
    """A wrong key is a 403."""

    def authorize(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != f"Bearer {self.key}":
            raise Refusal(403, "Not you.")


@fault("CAS-GEN-02", cases=f"{UNKNOWN} {WRONG}")
class BareErrors(CasServer):
    """Errors are {error} with words."""

    def refusal(self, request: web.Request, status: int, words: str) -> web.Response:
        return reply({"error": words}, status)


@fault("CAS-GEN-02", cases=f"{UNKNOWN} {WRONG}")
class OneErrorType(CasServer):
    """Every error is an api_error."""

    def refusal(self, request: web.Request, status: int, words: str) -> web.Response:
        error = {"type": "api_error", "message": words}
        return reply({"type": "error", "request_id": request[REQUEST_ID], "error": error}, status)


@fault("CAS-GEN-02", cases=UNKNOWN)
class NamelessNotFound(CasServer):
    """A session that is not found is not named."""

    def find(self, request: web.Request) -> Talk:
        if request.match_info["id"] not in self.talks:
            raise Refusal(404, "It was not found.")
        return super().find(request)


@fault("CAS-GEN-02", "CAS-SESS-12", cases=f"{WRONG} sessions.an_archived_session_is_read_only")
class ConflictIs400(CasServer):
    """What comes too late is said to be wrong."""

    def check_open(self, talk: Talk) -> None:
        if talk.view["archived_at"] is not None:
            raise Refusal(400, "Session is archived.")


@fault("CAS-GEN-03", cases=f"{KEPT} {GIVEN}")
class NoRequestId(CasServer):
    """There is no x-request-id."""

    async def stamp(self, request: web.Request, response: web.StreamResponse) -> None:
        return None


@fault("CAS-GEN-03", cases=KEPT)
class RequestIdReplaced(CasServer):
    """The request's own id is replaced."""

    def request_id(self, request: web.Request) -> str:
        return f"req_{uuid4().hex}"


@fault("CAS-GEN-03", cases=GIVEN)
class OneRequestId(CasServer):
    """Requests without an id all get the same."""

    def request_id(self, request: web.Request) -> str:
        return request.headers.get("x-request-id", "req_1")


@fault("CAS-GEN-06", cases=PREFIXES)
class PlainSessionIds(CasServer):
    """Session ids have no prefix."""

    def new(self, body: Body) -> Talk:
        talk = super().new(body)
        talk.view["id"] = uuid4().hex
        return talk


@fault("CAS-GEN-06", cases=PREFIXES)
class TimesWithoutZone(CasServer):
    """Times do not say that they are UTC."""

    def event(self, talk: Talk, kind: str, **told: Any) -> Body:
        event = super().event(talk, kind, **told)
        return event | {"created_at": event["created_at"].removesuffix("Z")}


@fault("CAS-GEN-06", cases="conventions.agents_and_the_like_have_prefixes")
class PlainVaultIds(CasServer):
    """Vault ids have no prefix."""

    def put_down(self, kind: str, prefix: str, named: str, body: Body) -> Body:
        return super().put_down(kind, "safe" if kind == "vaults" else prefix, named, body)


@fault("CAS-GEN-06", cases="conventions.files_and_mounts_have_prefixes")
class PlainFileIds(CasServer):
    """File ids have no prefix."""

    def put_down(self, kind: str, prefix: str, named: str, body: Body) -> Body:
        return super().put_down(kind, "blob" if kind == "files" else prefix, named, body)


@fault("CAS-GEN-07", cases="conventions.a_body_that_is_not_json_is_refused")
class UnreadableIs500(CasServer):
    """A body that is not JSON breaks the server."""

    async def read(self, request: web.Request) -> Body:
        try:
            return await super().read(request)
        except Refusal:
            raise Refusal(500, "Something broke.") from None


@fault("CAS-GEN-07", cases=TOO_LARGE)
class TooLargeIs413(CasServer):
    """A body that is too large is a 413."""

    def too_large(self, request: web.Request) -> web.Response:
        return self.refusal(request, 413, "Too large.")


@fault("CAS-GEN-07", cases=TOO_LARGE)
class SmallBodiesOnly(CasServer):
    """A body of 1 MiB is too large."""

    async def read(self, request: web.Request) -> Body:
        if len(await request.read()) > 500_000:
            raise Refusal(400, "Too large.")
        return await super().read(request)


@fault("CAS-GEN-04", "CAS-EV-11", cases=f"{FOLLOW} {EVENTS}")
class PagesOverlap(CasServer):
    """The last entry of a page is the first of the next."""

    def page(self, request: web.Request, items: list[Body]) -> Body:
        cursor, limit = self.cursor(request), self.limit(request)
        if cursor is None or cursor[0] == "before_id":
            return super().page(request, items)
        place = [item["id"] for item in items].index(cursor[1])
        return self.envelope(items[place : place + limit], has_more=place + limit < len(items))


@fault("CAS-GEN-04", "CAS-EV-11", cases=f"{FOLLOW} {EVENTS} listing.a_page_has_twenty_unless_asked")
class NoNextPage(CasServer):
    """next_page is always null."""

    def envelope(self, data: list[Body], has_more: bool) -> Body:
        return super().envelope(data, has_more) | {"next_page": None}


@fault("CAS-GEN-04", cases="listing.pages_lead_back")
class BeforeIgnored(CasServer):
    """before_id is ignored."""

    def cursor(self, request: web.Request) -> tuple[str, str] | None:
        found = super().cursor(request)
        return None if found and found[0] == "before_id" else found


@fault("CAS-GEN-04", cases="listing.a_page_has_twenty_unless_asked")
class FiftyPerPage(CasServer):
    """A page has 50 entries unless asked."""

    def limit(self, request: web.Request) -> int:
        return super().limit(request) if "limit" in request.query else 50


@fault("CAS-GEN-04", cases="listing.limits_are_kept")
class LimitsClamped(CasServer):
    """A limit that is out of range is brought into it."""

    def limit(self, request: web.Request) -> int:
        try:
            return super().limit(request)
        except Refusal:
            return 20


@fault("CAS-GEN-04", cases="listing.a_page_has_twenty_unless_asked")
class LargeLimitsRefused(CasServer):
    """A limit above 100 is a 400."""

    def limit(self, request: web.Request) -> int:
        if request.query.get("limit", "").isdigit() and int(request.query["limit"]) > LARGEST_PAGE:
            raise Refusal(400, f"limit must be at most {LARGEST_PAGE}.")
        return super().limit(request)


@fault("CAS-GEN-04", cases="listing.cursors_exclude_each_other")
class CursorsMix(CasServer):
    """Of several cursors the first is taken."""

    def cursor(self, request: web.Request) -> tuple[str, str] | None:
        given = [(name, request.query[name]) for name in ("after_id", "before_id", "page") if name in request.query]
        return given[0] if given else None


@fault("CAS-GEN-04", cases="listing.an_empty_list_is_a_list")
class EmptyIds(CasServer):
    """A list of nothing has empty ids."""

    def envelope(self, data: list[Body], has_more: bool) -> Body:
        told = super().envelope(data, has_more)
        return told if data else told | {"first_id": "", "last_id": ""}


@fault(
    "CAS-GEN-05",
    cases="""repetition.a_repeated_creation_is_one repetition.another_body_is_a_conflict
    repetition.a_repeated_message_is_said_once repetition.a_repeated_deletion_is_answered_again""",
)
class RepetitionsExecuted(CasServer):
    """Idempotency keys are ignored."""

    def repeat_key(self, request: web.Request) -> str | None:
        return None


@fault("CAS-GEN-05", cases="repetition.a_repeated_creation_is_one")
class OneHeaderOnly(CasServer):
    """X-Idempotency-Key is ignored."""

    def repeat_key(self, request: web.Request) -> str | None:
        return request.headers.get("Idempotency-Key")


@fault("CAS-GEN-05", cases="repetition.another_body_is_a_conflict")
class KeysStandForAnything(CasServer):
    """Another body under the same key is answered like the first."""

    def again(self, key: str, asked: Any) -> web.Response:
        return super().again(key, self.first_answers[key][0])


@fault("CAS-GEN-02", cases="conventions.unknown_things_are_not_found")
class UnknownThingsAreWrong(CasServer):
    """An unknown environment, file, vault or memory store is a 400."""

    def thing(self, kind: str, name: str) -> Body:
        try:
            return super().thing(kind, name)
        except Refusal as refusal:
            raise Refusal(400, refusal.words) from None
