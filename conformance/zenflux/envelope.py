"""Section envelope: the fields around every event, on the socket and in the stream."""

from datetime import datetime
from uuid import UUID

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.run import Run
from conformance.zenflux.run_contents import Event
from conformance.zenflux.sample_runs import everything, good, short

LEVELS = {
    "session_start": 0,
    "conversation_start": 1,
    "message_start": 2,
    "content_start": 3,
    "content_delta": 4,
    "content_stop": 4,
    "message_delta": 3,
    "message_stop": 3,
    "session_end": 1,
}
STEPS = {"start": 1, "stop": -1}


@requirement("ZF-ENV-01", "ZF-ENV-08")
async def every_event_is_in_its_envelope(exam: ZenfluxExamination) -> None:
    """Each event has event_uuid, seq, type, session_id, conversation_id, timestamp and an object as data."""
    for run in await short(exam):
        expect.subset(f"the events of {run.asked}", ["session_start", "message_start"], run.names)


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


@requirement("ZF-ENV-04", "ZF-ENV-09")
async def types_are_those_of_the_hierarchy(exam: ZenfluxExamination) -> None:
    """Ordinary runs have events of session, conversation, message and content, rightly nested."""
    for run in await good(exam):
        is_nested(run)


def is_nested(run: Run) -> None:
    """Expect events inside what holds them, and all four levels."""
    deepest = 0
    for event in (event for event in run.events if event.type in LEVELS):
        level = LEVELS[event.type]
        expect.that(level <= deepest, f"{event.type} inside what holds it, in {run.asked}", run.names)
        deepest = level + STEPS.get(event.type.partition("_")[2], 0)
    kinds = {event.type.partition("_")[0] for event in run.events}
    expect.subset(f"the levels of {run.asked}", ["session", "conversation", "message", "content"], kinds)


@requirement("ZF-ENV-05")
async def events_belong_to_their_run(exam: ZenfluxExamination) -> None:
    """All events of a run carry the session_id and conversation_id of its session_start; each run has its own."""
    sessions: list[str] = []
    for run in await everything(exam):
        start = run.events[0].data
        own = {(start.get("session_id"), start.get("conversation_id"))}
        seen = {(event.session_id, event.payload["conversation_id"]) for event in run.events}
        expect.equal(f"the owners of the events of {run.asked}", sorted(map(list, own)), sorted(map(list, seen)))
        sessions.append(run.session_id)
    expect.that(len(set(sessions)) == len(sessions), "a session per run", sessions)


@requirement("ZF-ENV-06")
async def a_message_id_is_that_of_the_message(exam: ZenfluxExamination) -> None:
    """message_id may be left out; on events of a message, where it is given, it is the id of that message."""
    for run in await short(exam):
        names_its_message(run)


def names_its_message(run: Run) -> None:
    """Expect a message_id, where given, to be that of the message."""
    current: str | None = None
    for event in run.events:
        current = event.payload["message"]["id"] if event.type == "message_start" else current
        told = event.payload.get("message_id")
        if told is not None and event.type.startswith(("message_", "content_")):
            expect.equal(f"the message_id of {event.type}", current, told)


@requirement("ZF-ENV-07")
async def times_are_iso(exam: ZenfluxExamination) -> None:
    """timestamp is a time in ISO 8601, with or without a zone, and never goes back within a run."""
    for run in await short(exam):
        is_timed(run)


def is_timed(run: Run) -> None:
    """Expect times in ISO 8601 that never go back."""
    times = [_time(event) for event in run.events]
    expect.that(times == sorted(times), f"the times of {run.asked} in order", [str(item) for item in times])


def _time(event: Event) -> datetime:
    told = event.payload["timestamp"]
    try:
        return datetime.fromisoformat(told)
    except ValueError:
        return expect.fail("a timestamp in ISO 8601", told)


@requirement("G-ZF-05")
async def frames_and_envelopes_count_alike(exam: ZenfluxExamination) -> None:
    """On the socket the seq of a frame is that of its envelope, 1, 2, 3 and so on without gaps."""
    for run in await short(exam):
        counts_alike(run)


def counts_alike(run: Run) -> None:
    """Expect 1, 2, 3 and so on, in frames and envelopes alike."""
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
        expect.that(bool(event.payload.get("message_id")), f"message_id in {event.type}", dict(event.payload))


@requirement("G-ZF-33")
async def event_times_look_like_the_example(exam: ZenfluxExamination) -> None:
    """Events say the time without a zone and with microseconds; objects say it with Z."""
    for run in await short(exam):
        for event in run.events:
            told = event.payload["timestamp"]
            expect.that(len(told) == len("2025-01-01T00:00:00.000000"), "a time as in the example", told)
    made = await exam.conversation()
    expect.that(made["created_at"].endswith("Z"), "a time with Z in an object", made)
