"""Sections envelope and lifecycle: the order of the runs in the recording, judged as the live cases judge them."""

from collections import Counter
from collections.abc import Callable, Iterator
from uuid import UUID

from conformance.kit import expect
from conformance.offline.recording import Exchange
from conformance.offline.rule import Rule, rule
from conformance.zenflux import envelope, event_shapes, lifecycle
from conformance.zenflux.offline.view import RecordedRun, ZenfluxView, hold
from conformance.zenflux.run import TOOL_USES, Run

Found = Iterator[Exchange | str]
EXTENSIONS = ("long_running_confirm", "rollback_options", "rollback_completed")


def _every(ids: str, what: str, judge: Callable[[Run], None], fits: Callable[[RecordedRun], bool]) -> Rule:
    """A rule that puts every run of a kind to the judge of a live case."""

    def check(view: ZenfluxView) -> Found:
        for spoken in view.spoken:
            if fits(spoken):
                yield spoken.exchange
                judge(spoken.run)

    check.__name__ = judge.__name__
    check.__doc__ = judge.__doc__
    return rule(*ids.split(), needs=what)(check)


def _over(spoken: RecordedRun) -> bool:
    return spoken.is_over


def _completed(spoken: RecordedRun) -> bool:
    return spoken.is_completed


def _on_socket(spoken: RecordedRun) -> bool:
    return spoken.is_completed and spoken.run.is_socket


def _new(spoken: RecordedRun) -> bool:
    return _on_socket(spoken) and bool(spoken.asked) and not spoken.asked.get("conversation_id")


def _opening(spoken: RecordedRun) -> bool:
    """In a new conversation, and nothing is asked before the first message: the life cycle has no place for that."""
    return _new(spoken) and all(event.type not in EXTENSIONS for event in spoken.run.events[:3])


def _with_tool(spoken: RecordedRun) -> bool:
    return _on_socket(spoken) and len(spoken.run.blocks(*TOOL_USES)) == 1 and bool(spoken.run.blocks("tool_result"))


JUDGED = (
    _every("ZF-SEQ-01 ZF-SEQ-02 ZF-SEQ-03", "run in a new conversation", lifecycle.opens_in_order, _opening),
    _every("ZF-SEQ-04", "run", lifecycle.is_dense, _completed),
    _every("ZF-SEQ-05", "run on a socket", lifecycle.closes_in_order, _on_socket),
    _every("ZF-SEQ-06 ZF-SEQ-07", "run with a tool call", lifecycle.goes_on_after_a_tool, _with_tool),
    _every("ZF-SEQ-08", "run on a socket", lifecycle.ends_last, lambda it: it.is_over and it.run.is_socket),
    _every("ZF-SEQ-09", "run", lifecycle.does_not_interleave, _completed),
    _every("G-ZF-15", "run on a socket", lifecycle.conversation_events_are_placed, _on_socket),
    _every("ZF-ENV-03", "run", envelope.is_numbered, _completed),
    _every("ZF-ENV-09", "run with text", envelope.is_nested, lambda it: _new(it) and bool(it.run.text)),
    _every("ZF-ENV-06", "run", envelope.names_its_message, _over),
    _every("ZF-ENV-07", "run", envelope.is_timed, _over),
    _every("G-ZF-39", "run", envelope.goes_on_in_time, _over),
    _every("G-ZF-05", "run", envelope.counts_alike, _completed),
    _every("G-ZF-06", "run", envelope.names_every_message, _over),
)


@rule("ZF-ENV-01", "ZF-ENV-04", "ZF-ENV-08", needs="event")
def every_event_is_in_its_envelope(view: ZenfluxView) -> Found:
    """Each event has event_uuid, seq, type, session_id, conversation_id, timestamp and an object as data."""
    for place, payload in view.payloads:
        yield place
        hold("envelope", payload, "an envelope", event_shapes.ENVELOPE, event_shapes.ENVELOPE_MEMBERS)


@rule("ZF-ENV-02", needs="event")
def event_ids_are_unique(view: ZenfluxView) -> Found:
    """event_uuid is a UUID, and no two events share one."""
    seen: set[str] = set()
    for place, payload in view.payloads:
        yield place
        told = payload.get("event_uuid") if isinstance(payload, dict) else None
        try:
            name = str(UUID(str(told)))
        except ValueError:
            expect.fail("a UUID as event_uuid", told)
        expect.that(name not in seen, "an event_uuid that no other event has", name)
        seen.add(name)


@rule("ZF-ENV-05", needs="run")
def events_belong_to_their_run(view: ZenfluxView) -> Found:
    """All events of a run carry one session_id and one conversation_id; each run has a session of its own."""
    for spoken in view.over:
        yield spoken.exchange
        envelope.has_one_owner(spoken.run)
    counted = Counter(spoken.run.session_id for spoken in view.over)
    expect.equal("sessions of several runs", [], sorted(name for name, count in counted.items() if count > 1))


@rule("G-ZF-33", needs="event")
def event_times_look_like_the_example(view: ZenfluxView) -> Found:
    """Events say the time without a zone and with microseconds."""
    for spoken in view.over:
        yield spoken.exchange
        for event in spoken.run.events:
            told = event.payload["timestamp"]
            expect.that(len(told) == len("2025-01-01T00:00:00.000000"), "a time as in the example", told)


@rule("ZF-SEQ-08", needs="run on a socket with something after it")
def nothing_comes_after_the_end(view: ZenfluxView) -> Found:
    """No event of a run follows its session_end, and there is one."""
    for spoken in view.over:
        if spoken.run.is_socket:
            yield spoken.exchange
            names = [event.type for event in spoken.run.events]
            expect.equal("events after session_end", [], names[names.index("session_end") + 1 :])


@rule("ZF-SEQ-10", needs="run that is over")
def every_run_has_its_end_signal(view: ZenfluxView) -> Found:
    """A run that is over has any of the signals by which a client sees it."""
    for spoken in view.over:
        yield spoken.exchange
        lifecycle.has_an_end(spoken.run)


@rule("G-ZF-04", needs="run with a tool call")
def rounds_share_their_indexes(view: ZenfluxView) -> Found:
    """Over the rounds of one run no index comes twice, and the stream of POST /chat is a single message."""
    for spoken in view.completed:
        run = spoken.run
        if run.blocks(*TOOL_USES):
            yield spoken.exchange
            indexes = [block.index for block in run.blocks()]
            expect.equal(f"the indexes of {run.asked}", list(range(len(indexes))), indexes)
            if not run.is_socket:
                expect.equal("messages in the stream", 1, len(run.of("message_start")))
            for event in run.of("message_start") if run.is_socket else []:
                expect.equal("data.session_id of message_start", run.session_id, event.data.get("session_id"))


@rule("G-ZF-11", needs="run that was cancelled")
def an_abort_closes_what_is_open(view: ZenfluxView) -> Found:
    """A cancelled run closes its block and message, says session_stopped and then session_end."""
    for spoken in view.over:
        run = spoken.run
        if spoken.ends and spoken.ends[-1].data.get("status") == "cancelled" and run.is_socket:
            yield spoken.exchange
            is_told = "session_stopped" in run.names
            expect.that(is_told, "session_stopped in a run that was cancelled", run.names, "ZF-EV-02")
            ends = ["session_stopped", "session_end"]
            expect.equal("how it ended", ends, [name for name in run.names if name in ends][-2:])
            opened = [len(run.of(f"{kind}_start")) - len(run.of(f"{kind}_stop")) for kind in ("content", "message")]
            expect.equal("blocks and messages left open", [0, 0], opened)


@rule("G-ZF-12", needs="second chat on a busy line")
def a_second_chat_takes_the_place_of_the_first(view: ZenfluxView) -> Found:
    """When a chat begins while another of the line runs, the first ends with session_stopped."""
    for spoken in view.over:
        for other in view.over:
            is_here = other.exchange is spoken.exchange and other is not spoken and other.run.is_socket
            if is_here and spoken.orders[0] < other.orders[0] < spoken.orders[-1]:
                yield spoken.exchange
                expect.that("session_stopped" in spoken.run.names, "session_stopped of the first", spoken.run.names)


@rule("G-ZF-13", needs="run that failed")
def a_failed_run_is_closed(view: ZenfluxView) -> Found:
    """After error comes session_end with status failed."""
    for spoken in view.over:
        if spoken.run.is_socket and spoken.run.of("error"):
            yield spoken.exchange
            ends = [name for name in spoken.run.names if name in ("error", "session_end")]
            expect.equal("the end", ["error", "session_end"], ends)
            expect.equal("the status at the end", "failed", spoken.ends[-1].data["status"])


@rule("G-ZF-14", needs="run in a conversation that was known")
def a_known_conversation_is_introduced_too(view: ZenfluxView) -> Found:
    """Each run in a conversation begins with conversation_start."""
    for spoken in view.completed:
        if spoken.run.is_socket and spoken.asked.get("conversation_id"):
            yield spoken.exchange
            expect.equal("the second event", "conversation_start", spoken.run.events[1].type)


@rule("G-ZF-18", needs="run on a socket with stream false")
def without_streaming_a_block_is_one_delta(view: ZenfluxView) -> Found:
    """With stream false every block is content_start, at most one content_delta and content_stop."""
    for spoken in view.completed:
        if spoken.run.is_socket and spoken.asked.get("stream") is False:
            yield spoken.exchange
            counts = [len(block.deltas) for block in spoken.run.blocks()]
            expect.that(max(counts, default=0) <= 1, "one delta for each block", counts)


@rule("G-ZF-26", needs="run that asked the user")
def the_stream_waits_with_the_user(view: ZenfluxView) -> Found:
    """While a request waits no further event comes: the next one comes after an answer, or a stop, was sent."""
    posts = [item for item in view.recording.exchanges if item.method in ("POST", "DELETE")]
    answers = [item for item in posts if not item.path.endswith("/chat")]
    for spoken in view.spoken:
        for place, event in enumerate(spoken.run.events[:-1]):
            if event.type == "message_delta" and event.data.get("type") == "confirmation_request":
                yield spoken.exchange
                start, end = spoken.orders[place], spoken.orders[place + 1]
                sent = [it.order for it in spoken.exchange.frames if it.is_sent]
                between = any(start < item.order < end for item in answers) or any(start < it < end for it in sent)
                expect.that(between, "no event before the user has answered", spoken.run.events[place + 1].type)
