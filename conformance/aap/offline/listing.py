"""Section sessions, the list and the end: pages that neither repeat nor skip, and sessions that are gone."""

from collections import Counter
from collections.abc import Iterator

from conformance.aap.examination import SCHEMAS
from conformance.aap.offline.view import AapView, denied, grouped
from conformance.kit import expect
from conformance.offline.recording import Exchange, mapping, mappings
from conformance.offline.rule import rule

Found = Iterator[Exchange | str]


@rule("AAP-SESS-09", needs="list of sessions")
def a_list_is_a_list(view: AapView) -> Found:
    """GET /sessions gives {sessions, next?}, no session twice on a page."""
    for item in view.lists:
        if item.status == 200:
            yield item
            SCHEMAS.fit("sessions", item.reply.json(), f"the answer to {item.asked}")
            is_last = not item.json["sessions"] and item.param("after") is not None
            expect.that(not is_last or "next" not in item.json, "no `next` after the last session", item.json)
            names = [session["sessionId"] for session in item.json["sessions"]]
            expect.equal("sessions listed more than once", len(names), len(set(names)))


@rule("AAP-SESS-09", needs="list of sessions of more than one page, read to its end")
def pages_neither_repeat_nor_skip(view: AapView) -> Found:
    """Over all pages of a list no session comes twice, and every one that was there all the time comes."""
    for pages in _walks(view):
        yield pages[-1]
        counted = Counter(session["sessionId"] for page in pages for session in page.json["sessions"])
        expect.equal("sessions listed more than once", [], [name for name, count in counted.items() if count > 1])
        start, end = pages[0].order, pages[-1].ended
        made = [name for name, item in view.created.items() if item.ended < start]
        there = [name for name in made if not view.leaves_before(name, end)]
        expect.equal("sessions that are on no page", [], [name for name in there if not counted[name]])


def _walks(view: AapView) -> Iterator[list[Exchange]]:
    """Lists that were read page by page, from the first to the last."""
    pages = [item for item in view.lists if item.status == 200 and not SCHEMAS.problems("sessions", item.json)]
    leading = grouped((item, str(item.json.get("next"))) for item in pages)
    for last in pages:
        walk = [last]
        while (cursor := walk[0].param("after")) is not None:
            found = [it for it in leading.get(cursor, []) if it.ended < walk[0].order]
            if not found:
                break
            walk.insert(0, found[-1])
        if len(walk) > 1 and walk[0].param("after") is None and "next" not in last.json:
            yield walk


@rule("AAP-SESS-10", needs="deletion of a session")
def a_session_is_deleted(view: AapView) -> Found:
    """DELETE of a session that is there gives 204."""
    for item, session in view.deletions:
        if session in view.created and not view.leaves_before(session, item.order) and not denied(item):
            yield item
            expect.status(item.reply, 204)


@rule("AAP-SESS-13", needs="request that was refused for its session")
def an_unknown_session_is_a_404(view: AapView) -> Found:
    """What is refused because its session was deleted, or is not there to be deleted or read, is a 404."""
    for item, session in [*view.deletions, *view.shown, *((turn.exchange, turn.session) for turn in view.turns)]:
        is_turn = item.method == "POST"
        is_gone = view.deleted_before(session, item.order)
        if item.is_refused and not denied(item) and (is_gone or not is_turn) and not _is_cached(item):
            yield item
            expect.status(item.reply, 404)


def _is_cached(item: Exchange) -> bool:
    return item.status in (304, 405, 406, 412)


@rule("AAP-SESS-10", needs="request for a session that was deleted")
def a_deleted_session_is_gone(view: AapView) -> Found:
    """After its deletion a session cannot be read, its history is a 404, and it is not listed."""
    for item, session in view.shown:
        if view.deleted_before(session, item.order) and not denied(item):
            yield item
            expect.refused(item.reply, "the session is deleted")
    for item, session in view.histories:
        if view.deleted_before(session, item.order) and not denied(item):
            yield item
            expect.status(item.reply, 404)
    for item in view.lists:
        if item.status == 200:
            yield item
            names = [str(it.get("sessionId")) for it in mappings(mapping(item.json).get("sessions"))]
            gone = [name for name in names if view.deleted_before(name, item.order)]
            expect.equal("deleted sessions in the list", [], gone)
