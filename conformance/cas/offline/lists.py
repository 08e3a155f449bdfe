"""Section conventions, lists: envelopes, limits, cursors and orders."""

from collections.abc import Iterator
from typing import Any

from conformance.cas.conversation import sound
from conformance.cas.examination import error_in
from conformance.cas.listing import USUAL
from conformance.cas.offline.view import CURSORS, CasView, about_the_request
from conformance.cas.requirement_owners import SCHEMAS
from conformance.kit import expect
from conformance.offline.recording import Exchange, mapping, mappings
from conformance.offline.rule import rule

Found = Iterator[Exchange | str]
ROUTES = ("GET /sessions", "GET /agents", "GET /environments", "GET /files", "GET /sessions/{}/events")
MOST = 100


def _lists(view: CasView) -> list[Exchange]:
    found = [item for route in ROUTES for item, _ in view.recording.of(route) if item.status and not item.is_stream]
    return sorted(found, key=lambda item: item.order)


def _pages(view: CasView) -> list[Exchange]:
    """Lists that were given and have their envelope."""
    return [item for item in _lists(view) if item.is_done and not SCHEMAS.problems("page", item.json)]


@rule("CAS-GEN-04", needs="list")
def envelopes_are_sound(view: CasView) -> Found:
    """first_id and last_id are those of the data, next_page is there exactly if has_more, and no page is too long."""
    for item in _pages(view):
        yield item
        page = sound(item.json)
        limit = item.param("limit")
        most = min(int(limit), MOST) if limit and limit.isdigit() else USUAL
        expect.that(len(page["data"]) <= most, f"at most {most} entries", len(page["data"]))


@rule("CAS-GEN-04", needs="list with a limit or cursors that are not allowed")
def wrong_questions_are_refused(view: CasView) -> Found:
    """A limit below 1, or two cursors at once, is a 400."""
    for item in _lists(view):
        limit = item.param("limit")
        is_wrong = limit is not None and not (limit.isdigit() and int(limit) >= 1)
        if about_the_request(item) and (is_wrong or sum(item.param(name) is not None for name in CURSORS) > 1):
            yield item
            error_in(expect.status(item.reply, 400))


@rule("CAS-GEN-04", needs="second page of a list")
def pages_follow_each_other(view: CasView) -> Found:
    """What follows a page by after_id=last_id or page=next_page repeats nothing of it."""
    pages = _pages(view)
    for item in pages:
        before = [it for it in pages if it.ended < item.order and it.path == item.path and _leads(it.json, item)]
        if before:
            yield item
            names = {entry.get("id") for entry in mappings(before[-1].json["data"])}
            again = [entry["id"] for entry in mappings(item.json["data"]) if entry.get("id") in names]
            expect.equal("entries that were on the page before", [], again)


def _leads(page: dict[str, Any], item: Exchange) -> bool:
    by_id = item.param("after_id") is not None and item.param("after_id") == page["last_id"]
    return by_id or (item.param("page") is not None and item.param("page") == page["next_page"])


@rule("CAS-SESS-10", needs="list of several sessions")
def the_newest_session_comes_first(view: CasView) -> Found:
    """GET /sessions is newest first, order=asc oldest first."""
    for item, _ in view.recording.of("GET /sessions"):
        times = [entry.get("created_at") for entry in mappings(mapping(item.json).get("data"))]
        if item.is_done and len(times) > 1 and all(isinstance(time, str) for time in times):
            yield item
            is_rising = item.param("order") == "asc"
            expect.that(times == sorted(times, key=str, reverse=not is_rising), "the order asked for", times)


@rule("CAS-SESS-10", needs="list after a session was archived")
def archived_sessions_are_hidden(view: CasView) -> Found:
    """A session that is archived is listed only with include_archived=true."""
    gone = [(item, name) for item, (name,) in view.recording.of("POST /sessions/{}/archive") if item.is_done]
    for item, _ in view.recording.of("GET /sessions"):
        before = {name for it, name in gone if it.ended < item.order}
        if item.is_done and before and item.param("include_archived") != "true":
            yield item
            names = [str(entry.get("id")) for entry in mappings(mapping(item.json).get("data"))]
            expect.equal("archived sessions in the list", [], [name for name in names if name in before])


@rule("CAS-SESS-10", needs="list narrowed by agent_id, statuses[] or created_at")
def sessions_are_filtered(view: CasView) -> Found:
    """What does not fit the filter is not listed."""
    for item, _ in view.recording.of("GET /sessions"):
        agent, statuses = item.param("agent_id"), [value for name, value in item.query if name == "statuses[]"]
        bounds = {name[11:-1]: value for name, value in item.query if name.startswith("created_at[")}
        if item.is_done and (agent or statuses or bounds):
            yield item
            for entry in mappings(mapping(item.json).get("data")):
                expect.that(agent in (None, entry.get("agent_id")), f"sessions of {agent}", entry)
                expect.that(not statuses or entry.get("status") in statuses, f"sessions that are {statuses}", entry)
                made = str(entry.get("created_at"))
                late = any(made < value for name, value in bounds.items() if name.startswith("gt"))
                early = any(made > value for name, value in bounds.items() if name.startswith("lt"))
                expect.that(not late and not early, f"sessions made {bounds}", made)


@rule("CAS-EV-11", needs="list of several events")
def events_are_listed_in_order(view: CasView) -> Found:
    """Events come oldest first, or newest first with order=desc."""
    for item, _ in view.pages:
        times = [str(event.get("created_at")) for event in mappings(mapping(item.json).get("data"))]
        if len(times) > 1:
            yield item
            is_falling = item.param("order") == "desc"
            expect.that(times == sorted(times, reverse=is_falling), "the order asked for", times)


@rule("CAS-EV-11", needs="list of events narrowed by type")
def events_are_filtered(view: CasView) -> Found:
    """With type or types[] only events of these types are listed."""
    for item, _ in view.pages:
        wanted = [value for name, value in item.query if name in ("type", "types[]", "types")]
        if wanted:
            yield item
            kinds = {str(event.get("type")) for event in mappings(mapping(item.json).get("data"))}
            expect.equal("events of other types", [], sorted(kinds - set(wanted)))


@rule("CAS-EV-11", needs="list of events that was asked for as a stream")
def a_list_is_a_stream_if_asked(view: CasView) -> Found:
    """Under `Accept: text/event-stream` the list is the stream."""
    for item, _ in view.recording.of("GET /sessions/{}/events"):
        if item.headers.get("Accept", "").startswith("text/event-stream") and (item.status or 0) < 400:
            yield item
            expect.equal("the content type", "text/event-stream", item.content_type)
