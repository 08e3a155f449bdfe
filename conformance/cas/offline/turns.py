"""Section events, turns: the order of the runs in the recording, their ends, and what carries which id."""

from collections.abc import Iterator

from conformance.cas.offline.view import CasView
from conformance.cas.run import ANSWERED_BY, Run, is_piece
from conformance.cas.turns import carries, in_spans, spans_are_whole
from conformance.kit import expect
from conformance.offline.recording import Exchange, mapping, mappings
from conformance.offline.rule import rule

Found = Iterator[Exchange | str]
CALLS = ("agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use")
ERROR = "session.error"
RESULTS = ("agent.tool_result", "agent.mcp_tool_result")


@rule("CAS-EV-10", needs="run of a turn")
def a_turn_has_one_id(view: CasView) -> Found:
    """The answer to the post and every event up to the idle carry the same turn_id."""
    for item, run, _ in view.runs:
        if run.accepted[0]["type"] == "user.message":
            yield item
            turn = run.accepted[0].get("turn_id")
            expect.that(isinstance(turn, str), "the accepted message to have a turn_id", run.accepted[0])
            carries(Run(run.asked, run.accepted, [it for it in run.events if not is_piece(it)]), str(turn))


@rule("CAS-EV-10", needs="second turn of a session")
def another_turn_has_another_id(view: CasView) -> Found:
    """No two messages of a session have one turn_id."""
    seen: dict[str, set[str]] = {}
    for item, session, data in view.accepted:
        turns = {str(it["turn_id"]) for it in data if it.get("type") == "user.message" and it.get("turn_id")}
        known = seen.setdefault(session, set())
        if known and turns and "Idempotency-Key" not in item.headers and "X-Idempotency-Key" not in item.headers:
            yield item
            expect.equal("turn_ids of earlier turns", [], sorted(known & turns))
        known |= turns


@rule("CAS-EV-12", needs="turn that came to its end")
def a_turn_is_told_in_order(view: CasView) -> Found:
    """user.message, status_running, spans around what the agent says and calls, and one status_idle at the end."""
    for item, run, _ in view.runs:
        is_plain = run.accepted[0]["type"] == "user.message" and run.stop == "end_turn"
        if is_plain and not run.of("session.error"):
            yield item
            kinds = [event["type"] for event in run.root if event["type"] != "session.updated"]
            expect.equal("the first two events", ["user.message", "session.status_running"], kinds[:2])
            in_spans(kinds)


@rule("CAS-EV-13", needs="status_idle")
def idle_says_why(view: CasView) -> Found:
    """requires_action names what is pending, and what it names was told before."""
    for item, run, stream in view.runs:
        yield item
        if run.stop == "requires_action":
            names = run.idle["stop_reason"]["event_ids"]
            known = [str(event["id"]) for event in view.told(stream.session)]
            expect.that(bool(names), "event_ids", run.idle)
            expect.subset("the events told so far", names, known)


@rule("CAS-EV-20", needs="turn that ended with session.error")
def a_failure_is_no_natural_end(view: CasView) -> Found:
    """A turn whose last word is session.error does not say end_turn."""
    for item, run, _ in view.runs:
        said = [event["type"] for event in run.root if event["type"].startswith("agent.") or event["type"] == ERROR]
        if said[-1:] == [ERROR]:
            yield item
            expect.that(run.stop != "end_turn", "another stop reason than end_turn", run.idle)


@rule("CAS-EV-14", needs="message or thought")
def what_is_said_says_something(view: CasView) -> Found:
    """A message has text, a thought has thinking."""
    for item, run, _ in view.runs:
        for event in run.of("agent.thinking"):
            yield item
            expect.that(bool(event["thinking"]), "a thought that says something", event)
        for event in run.of("agent.message"):
            yield item
            expect.that(bool(event["content"]), "a message that says something", event)


@rule("CAS-EV-15", needs="result of a tool")
def results_name_the_event_of_the_call(view: CasView) -> Found:
    """tool_use_id is the event id of a call that was told before."""
    for stream in view.streams:
        if stream.cursor is not None or stream.thread is not None:
            continue
        own = {str(event["id"]) for event in stream.wholes}
        known = {str(event["id"]) for event in view.told(stream.session) if event.get("type") in CALLS} - own
        for event in stream.wholes:
            if event.get("type") in CALLS:
                known.add(str(event["id"]))
            elif event.get("type") in RESULTS and "tool_use_id" in event:
                yield stream.exchange
                expect.member(f"tool_use_id of {event['type']}", known, event["tool_use_id"])


@rule("CAS-EV-15", needs="answer to a call")
def answers_name_the_event_of_the_call(view: CasView) -> Found:
    """What a client answers with the event id of a call is taken and echoed with it."""
    fields = dict(ANSWERED_BY.values())
    for item, _, data in view.accepted:
        for given, echoed in zip(mappings(mapping(item.sent).get("events")), data, strict=False):
            field = fields.get(str(echoed.get("type")))
            if field is not None:
                yield item
                expect.equal(field, given.get(field), echoed.get(field))


@rule("CAS-EV-16", needs="turn that stopped with requires_action")
def every_pending_call_is_listed(view: CasView) -> Found:
    """event_ids has every call that waits and none that ran."""
    for item, run, _ in view.runs:
        if run.stop == "requires_action" and run.accepted[0]["type"] == "user.message":
            yield item
            ran = {event.get("tool_use_id") for event in run.of(*RESULTS)}
            asking = [it for it in run.of(*CALLS) if it.get("evaluated_permission", "ask") == "ask"]
            waiting = [it for it in asking if it["id"] not in ran]
            listed = run.idle["stop_reason"]["event_ids"]
            expect.equal("event_ids", sorted(it["id"] for it in waiting), sorted(listed))


@rule("CAS-EV-16", needs="turn that went on after it was answered")
def a_resumed_turn_keeps_its_id(view: CasView) -> Found:
    """When all is answered the same turn runs again: status_running once, under its turn_id, after the answers."""
    last: dict[str, object] = {}
    for item, run, stream in view.runs:
        if run.accepted[0]["type"] in ("user.tool_confirmation", "user.custom_tool_result"):
            before = last.get(stream.session)
            if run.of("session.status_running"):
                yield item
                expect.equal("the turn", before or run.idle.get("turn_id"), run.idle.get("turn_id"))
                expect.equal("the starts", 1, len(run.of("session.status_running")))
        if run.stop == "requires_action":
            last[stream.session] = run.idle.get("turn_id")
        else:
            last.pop(stream.session, None)


@rule("CAS-EV-17", needs="turn with model requests")
def spans_name_their_starts(view: CasView) -> Found:
    """Each span ends with the id of its start and without error, unless the turn failed."""
    for item, run, _ in view.runs:
        is_whole = run.accepted[0]["type"] == "user.message" and run.stop == "end_turn"
        if is_whole and not run.of("session.error") and run.of("span.model_request_start"):
            yield item
            spans_are_whole(run)


@rule("CAS-EV-18", needs="turn that failed")
def a_failed_turn_ends_well(view: CasView) -> Found:
    """session.error comes before the idle, with the turn's id."""
    for item, run, _ in view.runs:
        for error in run.of("session.error"):
            yield item
            expect.equal("the turn_id of the error", run.accepted[0].get("turn_id"), error.get("turn_id"))


@rule("CAS-EV-18", needs="stream")
def streams_have_no_event_error(view: CasView) -> Found:
    """No stream has an SSE `event: error`."""
    for stream in view.streams:
        yield stream.exchange
        expect.that("error" not in [it.frame.event for it in stream.heard], "no `event: error`", "there was one")


@rule("CAS-EV-19", needs="stream of a session that was deleted meanwhile")
def a_deleted_session_closes_its_streams(view: CasView) -> Found:
    """session.deleted is the last event of a stream."""
    for stream in view.streams:
        kinds = [event.get("type") for event in stream.wholes]
        if "session.deleted" in kinds:
            yield stream.exchange
            expect.equal("the last event", "session.deleted", kinds[-1])
