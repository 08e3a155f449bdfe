"""Section threads: their objects, their events, and what they say of each other."""

from collections.abc import Iterator
from typing import Any

from conformance.cas.examination import error_in
from conformance.cas.offline.view import CasView, about_the_request, fits
from conformance.cas.requirement_owners import SCHEMAS
from conformance.cas.run import text_of
from conformance.cas.threads import MESSAGES, OF_THREADS, ends, parties
from conformance.kit import expect
from conformance.offline.recording import Exchange, mapping, mappings
from conformance.offline.rule import rule

Found = Iterator[Exchange | str]


def _threads(view: CasView) -> Iterator[tuple[Exchange, str, dict[str, Any]]]:
    """Every well-formed thread that was shown."""
    for item, (session,) in view.recording.of("GET /sessions/{}/threads"):
        for thread in mappings(mapping(item.json).get("data")) if item.is_done else []:
            if not SCHEMAS.problems("thread", thread):
                yield item, session, thread
    for route in ("GET /sessions/{}/threads/{}", "POST /sessions/{}/threads/{}/archive"):
        for item, (session, _) in view.recording.of(route):
            if item.is_done and not SCHEMAS.problems("thread", item.json):
                yield item, session, item.json


@rule("CAS-THR-01", needs="thread")
def threads_say_whose_they_are(view: CasView) -> Found:
    """A thread names its session and its agent; the coordinator has no parent and no cause, a child has both."""
    for item, session, thread in _threads(view):
        yield item
        expect.equal("session_id", session, thread["session_id"])
        expect.equal("the agent's id", thread["agent_id"], thread["agent"]["id"])
        bare = (thread["parent_thread_id"], thread["created_by_tool_use_id"])
        if thread["role"] == "coordinator":
            expect.equal("parent and cause of the coordinator", (None, None), bare)
        else:
            expect.that(bare[0] is not None, "a child to have a parent", thread)


@rule("CAS-THR-01", needs="child thread whose creation was told")
def a_child_is_as_it_was_told(view: CasView) -> Found:
    """A child thread has the parent, agent and cause that session.thread_created told."""
    births = [event for _, event in view.every_event if event.get("type") == OF_THREADS[0] and fits(event)]
    told = {event["session_thread_id"]: event for event in births}
    for item, _, thread in _threads(view):
        created = told.get(thread["id"])
        if created is not None:
            yield item
            names = ("parent_thread_id", "agent_id", "agent_version", "created_by_tool_use_id")
            expect.equal("the child", {it: created[it] for it in names}, {it: thread[it] for it in names})


@rule("CAS-THR-02", needs="list of threads")
def the_coordinator_comes_first(view: CasView) -> Found:
    """A list of threads begins with the one coordinator."""
    for item, _ in view.recording.of("GET /sessions/{}/threads"):
        if item.is_done:
            yield item
            roles = [thread.get("role") for thread in mappings(mapping(item.json).get("data"))]
            seen = [*roles[:1], roles.count("coordinator")]
            expect.equal("the coordinator first, and once", ["coordinator", 1], seen)


@rule("CAS-THR-02", needs="events of a thread")
def a_thread_has_events_of_its_own(view: CasView) -> Found:
    """The list and the stream of a thread have events it takes part in, and no others."""
    told = [(stream.exchange, stream.thread, stream.wholes) for stream in view.streams if stream.thread is not None]
    for item, (_, thread) in view.recording.of("GET /sessions/{}/threads/{}/events"):
        told += [(item, thread, mappings(mapping(item.json).get("data")))] if item.is_done else []
    children = {event.get("session_thread_id") for _, event in view.every_event if event.get("type") == OF_THREADS[0]}
    for item, thread, events in told:
        if thread in children:
            yield item
            expect.equal("events of other threads", [], [it for it in events if thread not in parties(it)])


@rule("CAS-THR-02", needs="attempt to archive a coordinator")
def the_coordinator_cannot_be_archived(view: CasView) -> Found:
    """Archiving the coordinator is a 409."""
    roles = {thread["id"]: thread["role"] for _, _, thread in _threads(view)}
    for item, (_, thread) in view.recording.of("POST /sessions/{}/threads/{}/archive"):
        if roles.get(thread) == "coordinator" and about_the_request(item):
            yield item
            error_in(expect.status(item.reply, 409))


@rule("CAS-THR-03", needs="run with a child thread")
def a_childs_life_is_told(view: CasView) -> Found:
    """created, running and idle come in this order, each with the child's id."""
    for item, run, _ in view.runs:
        for created in run.of(OF_THREADS[0]):
            yield item
            child = created["session_thread_id"]
            told = [event["type"] for event in run.of(*OF_THREADS) if event["session_thread_id"] == child]
            first = [told.index(kind) if kind in told else -1 for kind in OF_THREADS]
            expect.that(-1 not in first and first == sorted(first), "created, running and idle in this order", told)


@rule("CAS-THR-03", needs="message between threads")
def messages_between_threads_name_their_ends(view: CasView) -> Found:
    """What is sent goes from the parent to the child, what is received comes back, and both say something."""
    for item, run, _ in view.runs:
        parents = {it["session_thread_id"]: it["parent_thread_id"] for it in run.of(OF_THREADS[0])}
        for event in run.of(*MESSAGES):
            source, target = ends(event)
            parent, child = (source, target) if event["type"] == MESSAGES[0] else (target, source)
            if child in parents or parent in parents:
                yield item
                expect.equal("the parent of the child", parents.get(child), parent)
                expect.that(bool(text_of(event["content"])), "a message that says something", event)


@rule("CAS-THR-04", needs="thread")
def stop_reasons_fit_the_status(view: CasView) -> Found:
    """stop_reason is {} while a thread runs and archive once it is archived."""
    for item, _, thread in _threads(view):
        yield item
        kind = thread["stop_reason"].get("type")
        if thread["status"] == "running":
            expect.equal("the stop reason while it runs", {}, thread["stop_reason"])
        elif thread["archived_at"] is not None:
            expect.equal("the stop reason of an archived thread", "archive", kind)


@rule("CAS-THR-04", needs="child thread that stopped")
def a_child_says_why_it_stopped(view: CasView) -> Found:
    """thread_status_idle has a stop reason, and the last one of a finished turn is end_turn."""
    for item, run, _ in view.runs:
        for child in {event["session_thread_id"] for event in run.of(OF_THREADS[2])}:
            yield item
            idles = [it for it in run.of(OF_THREADS[2]) if it["session_thread_id"] == child]
            reasons = [it["stop_reason"].get("type") for it in idles]
            if run.stop == "end_turn" and not run.of("session.error"):
                expect.equal("the last stop reason of the child", "end_turn", reasons[-1])
