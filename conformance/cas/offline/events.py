"""Section events: what clients posted, what was echoed, and what was refused."""

from collections.abc import Iterator
from typing import Any

from conformance.cas.conventions import LIMIT
from conformance.cas.events import BUSY
from conformance.cas.examination import error_in
from conformance.cas.offline.view import CasView, about_the_request, schema_of
from conformance.cas.requirement_owners import SCHEMAS
from conformance.cas.run import texts
from conformance.kit import expect
from conformance.offline.recording import Exchange, mapping, mappings
from conformance.offline.rule import rule

Found = Iterator[Exchange | str]
KNOWN = (
    "user.message", "user.interrupt", "user.tool_confirmation", "user.custom_tool_result", "user.define_outcome",
)  # fmt: skip


def _pairs(view: CasView, kind: str) -> Iterator[tuple[Exchange, dict[str, Any], dict[str, Any]]]:
    """Every accepted event of this kind: as it was sent and as it was echoed."""
    for item, _, data in view.accepted:
        sent = mappings(mapping(item.sent).get("events"))
        for given, echoed in zip(sent, data, strict=False):
            if given.get("type") == kind and echoed.get("type") == kind:
                yield item, given, echoed


def _posted(view: CasView) -> Iterator[tuple[Exchange, str, Any]]:
    """Every post that was answered for what it says."""
    for item, session in view.posts:
        if about_the_request(item) and isinstance(item.sent, dict):
            yield item, session, item.sent.get("events")


@rule("CAS-EV-01", needs="event")
def every_event_has_its_fields(view: CasView) -> Found:
    """Every event that is streamed, listed or accepted fits the schema of its type."""
    for place, event in view.every_event:
        if event.get("type") not in ("event_start", "event_delta"):
            yield place
            SCHEMAS.fit(schema_of(event), event, f"the event {event.get('type')}")


@rule("CAS-EV-01", needs="stream or list of a session")
def events_are_of_their_session(view: CasView) -> Found:
    """session_id is that of the session, and no event is listed twice."""
    told = [(stream.exchange, stream.session, stream.wholes) for stream in view.streams]
    told += [(item, name, mappings(mapping(item.json).get("data"))) for item, name in view.pages]
    for item, session, events in told:
        yield item
        expect.equal("the sessions of the events", [], sorted({str(it.get("session_id")) for it in events} - {session}))
        names = [it.get("id") for it in events]
        expect.equal("events that come twice", [], sorted({str(name) for name in names if names.count(name) > 1}))


@rule("CAS-EV-01", needs="event that was both streamed and listed")
def a_streamed_event_is_the_listed_one(view: CasView) -> Found:
    """An event is the same wherever it is told; only processed_at may be set later."""
    listed = {str(it.get("id")): it for item, _ in view.pages for it in mappings(mapping(item.json).get("data"))}
    for stream in view.streams:
        for event in stream.wholes:
            if (name := str(event["id"])) in listed:
                yield stream.exchange
                expect.equal(f"the event {name}", _shown(listed[name]), _shown(event))


def _shown(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name != "processed_at"}


@rule("CAS-EV-02", needs="post that was accepted")
def events_are_accepted_in_order(view: CasView) -> Found:
    """The answer has the posted events, in order."""
    for item, _, data in view.accepted:
        sent = mappings(mapping(item.sent).get("events"))
        yield item
        expect.equal("the accepted types", [it.get("type") for it in sent], [it.get("type") for it in data])


@rule("CAS-EV-02", needs="post without events")
def there_must_be_an_event(view: CasView) -> Found:
    """An empty list, no list, or something else than events is a 400."""
    for item, _, events in _posted(view):
        is_list = isinstance(events, list) and bool(events) and all(isinstance(it, dict) for it in events)
        if not is_list and item.status not in (404, 409):
            yield item
            error_in(expect.status(item.reply, 400))


@rule("CAS-EV-03", needs="user.message that was accepted")
def a_message_is_echoed_as_blocks(view: CasView) -> Found:
    """A string and blocks are both echoed as blocks with the same text."""
    for item, given, echoed in _pairs(view, "user.message"):
        yield item
        expect.that(isinstance(echoed.get("content"), list), "content as blocks", echoed)
        expect.equal("the text blocks", texts(given.get("content")), texts(echoed["content"]))


@rule("CAS-EV-03", needs="run of a message")
def a_message_starts_a_turn(view: CasView) -> Found:
    """After a user.message a turn runs: status_running comes, once."""
    for item, run, _ in view.runs:
        if run.accepted[-1]["type"] == "user.message":
            yield item
            kinds = [event["type"] for event in run.root]
            expect.equal("the starts of the turn", 1, kinds.count("session.status_running"))


@rule("CAS-EV-03", needs="user.message without content")
def a_message_needs_content(view: CasView) -> Found:
    """A message whose content is neither string nor blocks is a 400."""
    for item, _, events in _posted(view):
        wrong = [it for it in mappings(events) if it.get("type") == "user.message"]
        if any(not isinstance(it.get("content"), (str, list)) for it in wrong) and item.status not in (404, 409):
            yield item
            error_in(expect.status(item.reply, 400))


@rule("CAS-EV-04", needs="message that was posted while a turn ran")
def one_turn_at_a_time(view: CasView) -> Found:
    """A message while a turn runs is a 409 in the words clients look for."""
    for item, session, events in _posted(view):
        is_message = any(it.get("type") == "user.message" for it in mappings(events))
        if is_message and view.known_state(session, item.order, item.answered) == "running":
            yield item
            expect.equal("the words", BUSY, error_in(expect.status(item.reply, 409))["error"]["message"])


@rule("CAS-EV-05", needs="user.interrupt that was accepted, with a stream after it")
def an_interrupt_ends_the_turn(view: CasView) -> Found:
    """The next idle after an interrupt of a running turn has the stop reason cancelled or end_turn, and its turn."""
    for item, session, data in view.accepted:
        if not data or data[0].get("type") != "user.interrupt":
            continue
        for stream in view.streams_of(session):
            later = [it.body for it in stream.heard if it.order > item.order]
            turns = (None, data[0].get("turn_id"))  # a stream may still tell of an earlier turn that failed
            idles = [it for it in later if it.get("type") == "session.status_idle" and it.get("turn_id") in turns]
            if idles:
                yield item
                reason = mapping(idles[0].get("stop_reason")).get("type")
                expect.member("the stop reason", ("cancelled", "end_turn"), reason)


@rule("CAS-EV-06", needs="decision on a call")
def a_decision_is_allow_or_deny(view: CasView) -> Found:
    """A result other than allow and deny is a 400; one that was taken is one of them."""
    for item, _, events in _posted(view):
        for it in mappings(events):
            if it.get("type") == "user.tool_confirmation" and item.status not in (404, 409):
                yield item
                if it.get("result") not in ("allow", "deny") or "tool_use_id" not in it:
                    error_in(expect.status(item.reply, 400))


@rule("CAS-EV-07", needs="custom tool's result that was accepted")
def a_result_is_kept_as_blocks(view: CasView) -> Found:
    """Content is echoed as text blocks, whether it was a string, blocks or nothing."""
    for item, given, echoed in _pairs(view, "user.custom_tool_result"):
        yield item
        expect.equal("the text of the result", texts(given.get("content")), texts(echoed.get("content")))
        expect.that(isinstance(echoed.get("content", []), list), "content as blocks", echoed)
        expect.equal("custom_tool_use_id", given["custom_tool_use_id"], echoed.get("custom_tool_use_id"))
        if "is_error" in given:
            expect.equal("is_error", given["is_error"], echoed.get("is_error"))


@rule("CAS-EV-08", needs="user.define_outcome")
def an_outcome_keeps_what_it_is_given(view: CasView) -> Found:
    """user.define_outcome needs no field, and keeps those it is given."""
    for item, given, echoed in _pairs(view, "user.define_outcome"):
        yield item
        expect.equal("the fields of the outcome", given, {name: echoed.get(name) for name in given})
    for item, session, events in _posted(view):
        kinds = {it.get("type") for it in mappings(events)}
        if kinds == {"user.define_outcome"} and session in view.created and item.status == 400:
            yield item
            is_large = len(item.body or b"") > LIMIT or item.is_short
            expect.that(is_large, "an outcome to be taken", item.reply.told)


@rule("CAS-EV-09", needs="event of an unknown type")
def strange_events_are_refused(view: CasView) -> Found:
    """An event of an unknown type, or without one, is a 400 or 409."""
    for item, _, events in _posted(view):
        strange = [it for it in mappings(events) if it.get("type") not in KNOWN]
        if strange and item.status != 404:
            yield item
            error_in(expect.status(item.reply, 400, 409))
