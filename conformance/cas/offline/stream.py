"""Section stream: frames, cursors, gaps, pieces, and that it stays."""

from collections.abc import Iterator
from itertools import pairwise

from conformance.cas.deltas import RAW, add_up
from conformance.cas.examination import error_in
from conformance.cas.offline.view import CasView, Stream, about_the_request, fits
from conformance.cas.run import Run, is_piece
from conformance.cas.stream import is_framed
from conformance.kit import expect
from conformance.offline.recording import Ending, Exchange, mapping, mappings
from conformance.offline.rule import rule

Found = Iterator[Exchange | str]
INTERVAL = 10.0
PATIENCE = 3 * INTERVAL
STREAM = "GET /sessions/{}/events/stream"


@rule("CAS-SSE-01", needs="stream")
def a_stream_is_a_stream_whatever_is_accepted(view: CasView) -> Found:
    """GET …/events/stream is a text/event-stream, and a comment comes before any event."""
    for item, _ in view.recording.of(STREAM):
        if item.status is not None and item.status < 300:
            yield item
            expect.equal("the content type", "text/event-stream", item.content_type)
            orders = [comment.order for comment in item.comments]
            events = [told.order for told in item.events]
            if events:
                first = min(orders, default=0)
                expect.that(bool(orders) and first <= events[0], "a comment at once", f"{len(orders)} comments")


@rule("CAS-SSE-02", needs="event of a stream")
def frames_have_id_event_and_data(view: CasView) -> Found:
    """Each frame has its own id, its event and one line of data, which repeats both."""
    for stream in view.streams:
        for heard in stream.heard:
            if not is_piece({"type": "", **heard.body}):
                yield heard.place
                expect.that(bool(heard.body), "an object as data", heard.frame.data)
                expect.subset("the data", ["id", "type"], heard.body)
                is_framed(heard.frame, heard.body)


@rule("CAS-SSE-03", needs="stream after a cursor, with the list of events after it")
def a_stream_resumes_after_its_cursor(view: CasView) -> Found:
    """The first event is the one that follows the cursor in the list."""
    for stream in view.streams:
        names = _listed(view, stream)
        if stream.cursor is None or stream.thread is not None or stream.cursor not in names or not stream.wholes:
            continue
        yield stream.exchange
        following = names[names.index(stream.cursor) + 1 :][:1]
        expect.equal("the first event", following, [stream.wholes[0]["id"]])


def _listed(view: CasView, stream: Stream) -> list[str]:
    """The ids of all events of the session, as they were listed after this stream."""
    last = max((heard.order for heard in stream.heard), default=0)
    return [str(event.get("id")) for event in view.listed(stream.session, last) or []]


@rule("CAS-SSE-03", needs="cursor that was refused")
def an_unknown_cursor_is_refused(view: CasView) -> Found:
    """A stream that is refused for its cursor is a 400."""
    for item, (session,) in view.recording.of(STREAM):
        has_cursor = item.param("after_id") is not None or "Last-Event-ID" in item.headers
        is_there = session in view.created and not view.gone(session, item.ended or item.order)
        if has_cursor and is_there and item.is_refused and about_the_request(item):
            yield item
            error_in(expect.status(item.reply, 400))


@rule("CAS-SSE-04", needs="stream without a cursor of a session with a history")
def a_stream_begins_with_a_turn(view: CasView) -> Found:
    """Of what was listed before it was opened, a stream without a cursor tells all, one turn, or nothing."""
    for stream in view.streams:
        if stream.cursor is not None or stream.thread is not None or not stream.wholes:
            continue
        before = [it for it, name in view.pages if name == stream.session and it.ended < stream.exchange.order]
        listed = [event for page in before for event in mappings(mapping(page.json).get("data"))]
        old = {str(event.get("id")): event.get("turn_id") for event in listed}
        told = {str(event["id"]) for event in stream.wholes}
        if old:
            yield stream.exchange
            missing = [name for name in old if name not in told]
            turns = {turn for name, turn in old.items() if name in told} - {None}
            expect.that(not missing or len(turns) <= 1, "the whole history, one turn or nothing of it", missing)


@rule("CAS-SSE-05", needs="stream with the list of events after it")
def there_is_no_gap_and_no_repetition(view: CasView) -> Found:
    """From its first event to its last a stream tells exactly what the list has."""
    for stream in view.streams:
        names, told = _listed(view, stream), [event["id"] for event in stream.wholes]
        if stream.thread is not None or not told or told[0] not in names or told[-1] not in names:
            continue
        yield stream.exchange
        wanted = names[names.index(told[0]) : names.index(told[-1]) + 1]
        expect.equal("the events from first to last", wanted, told)


@rule("CAS-SSE-06", needs="heartbeat")
def a_stream_has_a_heartbeat(view: CasView) -> Found:
    """A stream is never silent for long: comments `heartbeat` come at their interval."""
    for stream in view.streams:
        beats = [comment for comment in stream.comments if "heartbeat" in comment.text]
        times = [stream.exchange.at, *(it.at for it in stream.comments), *(it.at for it in stream.heard)]
        times.sort()
        gaps = [after - before for before, after in pairwise(times)]
        if beats or any(gap > PATIENCE for gap in gaps):
            yield stream.exchange
            expect.that(max(gaps, default=0.0) <= PATIENCE, f"something every {INTERVAL:g} s", f"{max(gaps):.0f} s")


@rule("CAS-SSE-07", needs="stream over the end of a turn")
def a_stream_stays_open(view: CasView) -> Found:
    """The server does not end a stream after a turn, only when the session is deleted, terminated or archived."""
    for stream in view.streams:
        kinds = [str(event.get("type")) for event in stream.wholes]
        if "session.status_idle" in kinds:
            yield stream.exchange
            over = {"session.deleted", "session.status_terminated"} & set(kinds)
            is_ended = stream.exchange.ending in (Ending.WHOLE, Ending.CUT) and not over and not _is_har(stream)
            gone = view.gone(stream.session, stream.exchange.ended + 1)
            archived = [it for it, (name,) in view.recording.of("POST /sessions/{}/archive") if name == stream.session]
            gone = gone or any(it.order < stream.exchange.ended and it.is_done for it in archived)
            expect.that(not is_ended or gone, "the stream to stay open", f"it ended after {kinds[-1:]}")


def _is_har(stream: Stream) -> bool:
    """A HAR file does not say who ended a stream."""
    return stream.exchange.place.startswith("entry")


@rule("CAS-SSE-08", needs="stream that asked for event deltas, and got some")
def deltas_add_up(view: CasView) -> Found:
    """Pieces come before their event, bear its id and add up to it."""
    for stream in view.streams:
        run = Run(stream.exchange.asked, [], [it.body for it in stream.heard if fits(it.body)])
        started = {it["event"]["id"] for it in run.of("event_start")} if stream.cursor is None else set()
        for final in run.of("agent.message", "agent.thinking"):
            if final["id"] in started:
                yield stream.exchange
                add_up(run, final)


@rule("CAS-SSE-08", needs="stream without event deltas")
def only_the_asked_kinds_come_in_pieces(view: CasView) -> Found:
    """A stream gets pieces of the kinds it asked for, and no others."""
    for stream in view.streams:
        started = [it.body for it in stream.heard if it.body.get("type") == "event_start"]
        yield stream.exchange
        kinds = {str(mapping(it.get("event")).get("type")) for it in started}
        expect.equal("kinds that were not asked for", [], sorted(kinds - set(stream.deltas)))


@rule("CAS-SSE-08", needs="list of events")
def pieces_are_never_listed(view: CasView) -> Found:
    """No list of events has pieces."""
    for item, _ in view.pages:
        yield item
        kinds = [str(event.get("type")) for event in mappings(mapping(item.json).get("data"))]
        expect.that(not {"event_start", "event_delta"} & set(kinds), "a list without pieces", kinds)


@rule("CAS-SSE-09", needs="stream of a session with incremental streaming")
def a_session_can_stream_incrementally(view: CasView) -> Found:
    """message_start to message_stop come before the message they tell, and their text adds up to it."""
    for stream in view.streams:
        run = Run(stream.exchange.asked, [], [it.body for it in stream.heard if fits(it.body)])
        if not run.of(*RAW) or stream.cursor is not None:
            continue
        yield stream.exchange
        expect.equal("event deltas on the same connection", [], run.of("event_delta"))
        said = [event["delta"].get("text", "") for event in run.of("agent.content_block_delta")]
        expect.equal("the sum of the deltas", run.text, "".join(said))
        steps = _steps(run)
        expect.equal("starts, stops and messages in turn", [RAW[0], RAW[2], "agent.message"] * (len(steps) // 3), steps)


def _steps(run: Run) -> list[str]:
    """Starts, stops and messages in turn; one that says nothing, and only calls tools, is followed by no message."""
    steps, has_text = [], False
    for event in run.events:
        match event["type"]:
            case "agent.message_start":
                has_text = False
            case "agent.content_block_delta":
                has_text = has_text or bool(event["delta"].get("text"))
            case "agent.message_stop" if has_text:
                steps += [RAW[0], RAW[2]]
            case "agent.message" if steps[-1:] != ["agent.message"]:
                steps.append("agent.message")
    return steps


@rule("CAS-SSE-09", needs="stream of a session without incremental streaming")
def others_have_no_pieces(view: CasView) -> Found:
    """A session that was created without incremental streaming has none of its events."""
    for stream in view.streams:
        made = view.created.get(stream.session)
        if made is not None and not made.sent.get("incremental_streaming_enabled"):
            yield stream.exchange
            raw = [it.body["type"] for it in stream.heard if it.body.get("type") in RAW]
            expect.equal("pieces nobody asked for", [], raw)
