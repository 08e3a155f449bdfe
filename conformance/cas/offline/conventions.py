"""Section conventions: keys, errors, request ids, times, repeated requests and bodies that cannot be read."""

import re
from collections.abc import Iterator

from conformance.cas.conventions import LIMIT
from conformance.cas.examination import ERRORS, error_in
from conformance.cas.idempotency import HEADERS, same
from conformance.cas.offline.view import CasView, about_the_request, fits
from conformance.cas.requirement_owners import SCHEMAS
from conformance.kit import expect
from conformance.offline.recording import Exchange
from conformance.offline.rule import rule

Found = Iterator[Exchange | str]
ID = "x-request-id"
SERVED = re.compile(r"/sessions(/[^/]+(/archive|/events|/events/stream)?)?/?$")  # what every server of CAS has


@rule("CAS-GEN-01", needs="request without a key, or with a wrong one, beside others with one")
def a_missing_key_is_refused(view: CasView) -> Found:
    """A request without Authorization is a 401, and every 401 is an authentication_error."""
    has_keys = any("Authorization" in item.headers and item.is_done for item in view.recording.exchanges)
    for item in view.recording.exchanges:
        if item.is_whole and (item.status == 401 or (has_keys and "Authorization" not in item.headers)):
            yield item
            error_in(expect.status(item.reply, 401))


@rule("CAS-GEN-02", needs="request that was refused")
def refusals_have_their_form(view: CasView) -> Found:
    """Every refusal below /sessions is {type "error", request_id, error {type, message}}, of the type of its status."""
    for item in view.recording.exchanges:
        if item.is_whole and item.status in ERRORS and SERVED.match(item.path):
            yield item
            error_in(item.reply)


@rule("CAS-GEN-02", needs="refusal of an unknown session")
def what_is_not_found_is_named(view: CasView) -> Found:
    """A 404 below /sessions/{id} says that something was not found."""
    for route in ("GET /sessions/{}", "DELETE /sessions/{}"):
        for item, (name,) in view.recording.of(route):
            if item.is_whole and item.is_refused and about_the_request(item) and item.status != 409:
                yield item
                expect.status(item.reply, 404)
                words = error_in(item.reply)["error"]["message"]
                is_said = name in words and "not found" in words
                expect.that(is_said, f"words such as Session '{name}' was not found.", words)


@rule("CAS-GEN-03", needs="answer")
def every_answer_has_a_request_id(view: CasView) -> Found:
    """x-request-id is on every answer, is the request's own where it has one, and a refusal repeats it."""
    seen: set[str] = set()
    for item in view.recording.exchanges:
        if item.status is None:
            continue
        yield item
        name, own = item.reply_headers.get(ID), item.headers.get(ID)
        expect.that(bool(name), f"the header {ID}", dict(item.reply_headers))
        if own is not None:
            expect.equal(ID, own, name)
        else:
            expect.that(name not in seen, f"a new {ID} on every answer", name)
            seen.add(str(name))
        if item.is_whole and item.status in ERRORS and not SCHEMAS.problems("error", item.json):
            expect.equal("request_id in the body", name, item.json["request_id"])


@rule("CAS-GEN-05", needs="request that was repeated under its Idempotency-Key")
def a_repeated_request_is_answered_again(view: CasView) -> Found:
    """The same key and body get the same answer; the same key with another body is a 409."""
    first: dict[tuple[str, str, str], Exchange] = {}
    for item in view.recording.exchanges:
        key = next((item.headers[name] for name in HEADERS if name in item.headers), None)
        if key is None or item.method not in ("POST", "DELETE") or not about_the_request(item):
            continue
        before = first.setdefault((key, item.method, item.path), item)
        if before is not item and before.is_done and before.ended < item.order:
            yield item
            if (before.body or b"") == (item.body or b""):
                same(before.reply, item.reply)
            else:
                error_in(expect.status(item.reply, 409))


@rule("CAS-GEN-06", needs="session")
def times_go_forward(view: CasView) -> Found:
    """created_at is not after updated_at or processed_at."""
    told = [(item.place, body) for item, body in view.looks]
    told += [(place, event) for place, event in view.every_event if fits(event) and "created_at" in event]
    for place, body in told:
        yield place
        latest = body.get("updated_at") or body.get("processed_at") or body["created_at"]
        expect.that(body["created_at"][:19] <= latest[:19], "created_at to be the earliest time", body)


@rule("CAS-GEN-06", needs="event")
def every_event_fits(view: CasView) -> Found:
    """Ids of events, sessions, turns and threads have their prefixes, and their times are in UTC."""
    for place, event in view.every_event:
        if event.get("type") in ("user.message", "session.status_running", "session.status_idle"):
            yield place
            SCHEMAS.fit(f"event.{event['type']}", event, f"the event {event['type']}")


@rule("CAS-GEN-07", needs="body that is not JSON")
def a_body_that_is_not_json_is_refused(view: CasView) -> Found:
    """A body that cannot be read as JSON, or is larger than 4 MiB, is a 400."""
    for item in [item for item, _ in (*view.recording.of("POST /sessions"), *view.posts)]:
        is_json = item.sent is not None or (item.body or b"").strip() in (b"", b"null")
        if about_the_request(item) and (not is_json or len(item.body or b"") > LIMIT) and not item.is_short:
            yield item
            error_in(expect.status(item.reply, 400))
