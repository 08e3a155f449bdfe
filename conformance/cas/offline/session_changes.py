"""Section sessions, what changes them: updated, archived, cancelled, deleted, and what is mounted into them."""

from collections.abc import Iterator
from typing import Any

from conformance.cas.examination import error_in
from conformance.cas.offline.view import CasView, about_the_request
from conformance.kit import expect
from conformance.offline.recording import Exchange, mapping, mappings
from conformance.offline.rule import rule

Found = Iterator[Exchange | str]


@rule("CAS-SESS-11", needs="update of a session")
def an_update_changes_what_it_names(view: CasView) -> Found:
    """The answer has the title and metadata that were sent, and what was not named is as it was."""
    last: dict[str, dict[str, Any]] = {}
    for item, body in view.looks:
        if item.method == "POST" and item.path == f"/sessions/{body['id']}":
            yield item
            sent, before = mapping(item.sent), last.get(body["id"])
            if isinstance(sent.get("title"), str):
                expect.equal("title", sent["title"], body["title"])
            for name, value in mapping(sent.get("metadata")).items():
                expect.equal(f"metadata.{name}", value, body["metadata"].get(name))
            for name in ("title", "metadata"):
                expect.that(name in sent or before is None or before[name] == body[name], f"{name} as it was", body)
        last[body["id"]] = body


@rule("CAS-SESS-12", needs="session that was archived")
def an_archived_session_is_read_only(view: CasView) -> Found:
    """It has archived_at, and takes no more messages (409)."""
    for item, body in view.looks:
        if item.path.endswith("/archive"):
            yield item
            expect.that(body["archived_at"] is not None, "archived_at to be set", body)
            for it, name in view.posts:
                if name == body["id"] and it.order > item.ended and about_the_request(it) and it.status != 404:
                    yield it
                    error_in(expect.status(it.reply, 409))


@rule("CAS-SESS-12", needs="request for a session that was deleted")
def a_deleted_session_is_gone(view: CasView) -> Found:
    """After its deletion a session and its events are a 404, and the answer to the deletion named it."""
    for item, (name,) in view.recording.of("DELETE /sessions/{}"):
        if item.is_done:
            expect.equal("the id", name, mapping(item.json).get("id"))
    for route in ("GET /sessions/{}", "GET /sessions/{}/events", "POST /sessions/{}/events"):
        for item, (name,) in view.recording.of(route):
            if view.gone(name, item.order) and about_the_request(item):
                yield item
                error_in(expect.status(item.reply, 404))


@rule("CAS-SESS-13", needs="cancellation of a session whose state a stream shows")
def a_cancellation_says_whether_a_turn_ran(view: CasView) -> Found:
    """cancel is a 202 while a turn runs, and a 200 while none does."""
    for item, (name,) in view.recording.of("POST /sessions/{}/cancel"):
        if not item.is_done:
            continue
        before = [it for it in view.posts if it[1] == name and it[0].order < item.order]
        state = view.known_state(name, item.order, item.answered)
        told = state or ("idle" if name in view.created and not before else None)
        if told is not None:
            yield item
            expect.status(item.reply, 202 if told == "running" else 200)


@rule("CAS-SESS-13", needs="turn that was cancelled")
def a_cancelled_turn_ends(view: CasView) -> Found:
    """After a 202 the stream tells status_idle with the stop reason cancelled."""
    for item, (name,) in view.recording.of("POST /sessions/{}/cancel"):
        open_then = [it for it in view.streams_of(name) if it.exchange.order < item.order]
        for stream in open_then if item.status == 202 else []:
            later = [it.body for it in stream.heard if it.order > item.order]
            idles = [it for it in later if it.get("type") == "session.status_idle"]
            if idles:
                yield item
                expect.equal("the stop reason", {"type": "cancelled"}, idles[0].get("stop_reason"))


@rule("CAS-SESS-14", needs="resource that was added to a session")
def resources_come_and_go(view: CasView) -> Found:
    """What was added is listed until it is removed."""
    for item, (session,) in view.recording.of("POST /sessions/{}/resources"):
        name = mapping(item.json).get("id") if item.is_done else None
        removals = view.recording.of("DELETE /sessions/{}/resources/{}")
        removed = [it for it, names in removals if names == (session, str(name))]
        for it, names in view.recording.of("GET /sessions/{}/resources"):
            if name and names == (session,) and it.is_done and it.order > item.ended:
                yield it
                listed = name in [entry.get("id") for entry in mappings(mapping(it.json).get("data"))]
                if not any(gone.order < it.ended for gone in removed):
                    expect.that(listed, f"{name} in the list", it.reply.told)
                elif any(gone.is_done and gone.ended < it.order for gone in removed):
                    expect.that(not listed, f"{name} no longer in the list", it.reply.told)


@rule("CAS-SESS-15", needs="cancel, archive or DELETE with the body {}")
def an_empty_object_is_accepted(view: CasView) -> Found:
    """cancel, archive and DELETE of a session that is there take the body {}."""
    for route in ("POST /sessions/{}/cancel", "POST /sessions/{}/archive", "DELETE /sessions/{}"):
        for item, (name,) in view.recording.of(route):
            is_there = name in view.created and not view.gone(name, item.ended)
            if about_the_request(item) and item.sent == {} and is_there and item.status != 409:
                yield item
                expect.status(item.reply, 200, 202)
