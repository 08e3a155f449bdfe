"""Section envelope: the fields around every event, on the socket and in the stream."""

from datetime import datetime
from uuid import UUID

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.run import Run
from conformance.zenflux.run_contents import Event
from conformance.zenflux.sample_runs import everything, good, short

OPENINGS = {"session_start": "ZF-SEQ-01", "conversation_start": "ZF-SEQ-02", "message_start": "ZF-SEQ-03"}
"""What begins each level of the hierarchy, and whose it is that it comes."""


@requirement("ZF-ENV-01", "ZF-ENV-04", "ZF-ENV-08")
async def every_event_is_in_its_envelope(exam: ZenfluxExamination) -> None:
    """Each event has event_uuid, seq, type, session_id, conversation_id, timestamp and an object as data."""
    for run in await everything(exam):
        expect.that(bool(run.events), f"events in {run.asked}", run.names)


@requirement("ZF-ENV-02")
async def event_ids_are_unique(exam: ZenfluxExamination) -> None:
    """event_uuid is a UUID, and no two events of any runs share one."""
    names: list[str] = []
    for run in await everything(exam):
        names += [str(UUID(event.payload["event_uuid"])) for event in run.events]
    twice = sorted({name for name in names if names.count(name) > 1})
    expect.equal("ids that more than one event has", [], twice)


@requirement("ZF-ENV-03")
async def events_are_numbered(exam: ZenfluxExamination) -> None:
    """seq begins at 1 in every run and goes up by one; only where deltas were merged may numbers be left out."""
    for run in await everything(exam):
        is_numbered(run)


def is_numbered(run: Run) -> None:
    """Expect seq to begin at 1 and go up by one, except where deltas were merged."""
    expect.equal(f"the first seq of {run.asked}", 1, run.events[0].seq)
    for before, after in zip(run.events, run.events[1:], strict=False):
        merged = run.is_socket and "content_delta" in (before.type, after.type)
        follows = after.seq > before.seq if merged else after.seq == before.seq + 1
        seen = f"{after.seq} ({after.type})"
        expect.that(follows, f"seq to go up by one after {before.seq} ({before.type})", seen)


@requirement("ZF-ENV-09")
async def types_are_those_of_the_hierarchy(exam: ZenfluxExamination) -> None:
    """Ordinary runs have events of session, conversation, message and content, rightly nested."""
    for run in await good(exam):
        is_nested(run)


def is_nested(run: Run) -> None:
    """Expect content inside messages, messages inside the conversation, and the conversation inside the session."""
    for name, owner in OPENINGS.items():
        expect.that(bool(run.of(name)), f"{name} in {run.asked}", run.names, owner)
    is_open = dict.fromkeys(("session", "conversation", "message"), False)
    inside = {"conversation": "session", "message": "conversation", "content": "message"}
    for event in run.events:
        level, _, step = event.type.partition("_")
        if step == "start" or level == "content":
            outer = inside.get(level)
            is_right = outer is None or is_open[outer]
            expect.that(is_right, f"{event.type} inside a {outer}, in {run.asked}", run.names)
        if step == "start" or event.type == "message_stop":
            is_open[level] = step == "start"


@requirement("ZF-ENV-05")
async def events_belong_to_their_run(exam: ZenfluxExamination) -> None:
    """All events of a run carry one session_id and one conversation_id; each run has a session of its own."""
    sessions: list[str] = []
    for run in await everything(exam):
        has_one_owner(run)
        sessions.append(run.session_id)
    expect.that(len(set(sessions)) == len(sessions), "a session per run", sessions)


def has_one_owner(run: Run) -> None:
    """Expect one session and one conversation in all envelopes of a run."""
    seen = {(event.session_id, str(event.payload["conversation_id"])) for event in run.events}
    expect.that(len(seen) == 1, f"one session and one conversation in {run.asked}", sorted(map(list, seen)))


@requirement("ZF-ENV-06")
async def a_message_id_is_that_of_the_message(exam: ZenfluxExamination) -> None:
    """message_id may be left out; on events of a message, where it is given, it is the id of that message."""
    for run in await short(exam):
        names_its_message(run)


def names_its_message(run: Run) -> None:
    """Expect a message_id, where given, to be that of the message."""
    current: str | None = None
    for event in run.events:
        current = event.message_id if event.type == "message_start" else current
        told = event.payload.get("message_id")
        if told is not None and current is not None and event.type.startswith(("message_", "content_")):
            expect.equal(f"the message_id of {event.type}", current, told)


@requirement("ZF-ENV-07")
async def times_are_iso(exam: ZenfluxExamination) -> None:
    """timestamp is a time in ISO 8601, with or without a zone."""
    for run in await short(exam):
        is_timed(run)


def is_timed(run: Run) -> None:
    """Expect times in ISO 8601."""
    for event in run.events:
        _time(event)


def _time(event: Event) -> datetime:
    told = event.payload["timestamp"]
    try:
        return datetime.fromisoformat(told)
    except (TypeError, ValueError):
        return expect.fail("a timestamp in ISO 8601", told, "ZF-ENV-07")


@requirement("G-ZF-39")
async def times_do_not_go_back(exam: ZenfluxExamination) -> None:
    """The times of the events of a run never go back."""
    for run in await short(exam):
        goes_on_in_time(run)


def goes_on_in_time(run: Run) -> None:
    """Expect times that never go back."""
    times = [_time(event) for event in run.events]
    expect.that(times == sorted(times), f"the times of {run.asked} in order", [str(item) for item in times])


@requirement("G-ZF-05")
async def frames_and_envelopes_count_alike(exam: ZenfluxExamination) -> None:
    """On the socket the seq of a frame is that of its envelope, 1, 2, 3 and so on without gaps."""
    runs = await short(exam)
    with expect.owned("ZF-ENV-03"):
        for run in runs:
            is_numbered(run)
    for run in runs:
        counts_alike(run)


def counts_alike(run: Run) -> None:
    """Expect 1, 2, 3 and so on, in frames and envelopes alike."""
    with expect.owned("ZF-ENV-03"):
        is_numbered(run)
    expect.equal(f"seq in {run.asked}", list(range(1, len(run.events) + 1)), [event.seq for event in run.events])
    frames = [event.frame_seq for event in run.events if event.frame_seq is not None]
    expect.equal(f"seq of the frames of {run.asked}", [event.seq for event in run.events][: len(frames)], frames)


@requirement("G-ZF-06")
async def events_of_a_message_name_it(exam: ZenfluxExamination) -> None:
    """Every event from message_start to message_stop carries the message_id in its envelope."""
    for run in await short(exam):
        names_every_message(run)


def names_every_message(run: Run) -> None:
    """Expect message_id on every event of a message."""
    for event in run.of("message_start", "content_start", "content_delta", "content_stop", "message_stop"):
        seen = {"event_uuid": event.payload["event_uuid"], **event.payload}
        expect.that(bool(event.payload.get("message_id")), f"message_id in {event.type}", seen)


@requirement("G-ZF-33")
async def event_times_look_like_the_example(exam: ZenfluxExamination) -> None:
    """Events say the time without a zone and with microseconds; objects say it with Z."""
    for run in await short(exam):
        for event in run.events:
            _time(event)
            told = event.payload["timestamp"]
            expect.that(len(told) == len("2025-01-01T00:00:00.000000"), "a time as in the example", told)
    made = await exam.conversation()
    expect.that(made["created_at"].endswith("Z"), "a time with Z in an object", made)
