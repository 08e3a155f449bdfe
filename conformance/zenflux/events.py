"""Section events: what the events of session, conversation and system say."""

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.sse import ServerEvent
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.run import Run

NEVER_ON_A_SOCKET = ("ping", "done", "tick")


async def _stopped(exam: ZenfluxExamination) -> Run:
    """A run that was aborted while it spoke, read up to session_stopped."""
    async with exam.line() as line:
        run = await line.tell("slow")
        await run.until("content_start")
        await line.accepted("chat.abort", {"session_id": run.session_id})
        await line.caught(run)
        await run.until("session_stopped")
        return run


@requirement("ZF-EV-01")
async def session_start_introduces_the_run(exam: ZenfluxExamination) -> None:
    """session_start names the user, and the session and conversation of the envelopes."""
    for run in (await exam.told("text"), await exam.streamed("text")):
        (start,) = run.of("session_start")[:1] or expect.fail("session_start", run.names)
        told = {name: start.data[name] for name in ("session_id", "user_id", "conversation_id")}
        wanted = {"session_id": run.session_id, "user_id": exam.user, "conversation_id": run.conversation_id}
        expect.equal("the data of session_start", wanted, told)


@requirement("ZF-EV-02")
async def session_stopped_says_why(exam: ZenfluxExamination) -> None:
    """session_stopped has session_id, stopped_at, and user_requested as the reason when a user stopped the run."""
    run = await _stopped(exam)
    told = {name: run.events[-1].data[name] for name in ("session_id", "reason")}
    expect.equal("the data of session_stopped", {"session_id": run.session_id, "reason": "user_requested"}, told)


@requirement("ZF-EV-03")
async def session_end_says_how_it_went(exam: ZenfluxExamination) -> None:
    """session_end has session_id, duration_ms and status, which is completed for a good run."""
    run = await exam.told("slow")
    end = run.events[-1].data
    expect.equal("the session", run.session_id, end["session_id"])
    expect.that(end["duration_ms"] < 600_000, "a duration in milliseconds", end)


@requirement("ZF-EV-04")
async def pings_are_for_streams_only(exam: ZenfluxExamination) -> None:
    """No ping, done or tick comes as an event of a run on the socket; a stream's pings are {type: ping}."""
    async with exam.line() as line:
        for situation in ("slow", "tool"):
            run = await (await line.tell(situation)).completed()
            expect.equal("events that are not for sockets", [], [event.type for event in run.of(*NEVER_ON_A_SOCKET)])
    await exam.streamed("slow")


@requirement("ZF-EV-05")
async def conversation_start_describes_the_conversation(exam: ZenfluxExamination) -> None:
    """conversation_start has the id, title, times and metadata of the conversation, which the REST half knows too."""
    run = await exam.told("text")
    (start,) = run.of("conversation_start")[:1] or expect.fail("conversation_start in a new conversation", run.names)
    expect.equal("its conversation", run.conversation_id, start.data["conversation_id"])
    kept = await exam.read("conversation", f"/conversations/{run.conversation_id}")
    expect.equal("the conversation", run.conversation_id, kept["id"])


@requirement("ZF-EV-06")
async def conversation_delta_says_what_changed(exam: ZenfluxExamination) -> None:
    """Every conversation_delta has the conversation's id and, beside it, title, metadata or compressed."""
    for situation in ("title", "compact"):
        run = await exam.told(situation)
        deltas = run.of("conversation_delta")
        expect.that(bool(deltas), f"a conversation_delta in {run.asked}, as the profile says", run.names)
        for delta in deltas:
            expect.equal("its conversation", run.conversation_id, delta.data["conversation_id"])


@requirement("ZF-EV-07")
async def a_new_title_is_told_and_kept(exam: ZenfluxExamination) -> None:
    """A title update is {conversation_id, title}, and the conversation then has that title."""
    run = await exam.told("title")
    titles = [event.data["title"] for event in run.of("conversation_delta") if "title" in event.data]
    expect.that(bool(titles), "a conversation_delta with a title, as the profile says", run.names)
    kept = await exam.read("conversation", f"/conversations/{run.conversation_id}")
    expect.equal("the title of the conversation", titles[-1], kept["title"])


@requirement("ZF-EV-08", "ZF-EV-10")
async def rarer_conversation_events_fit(exam: ZenfluxExamination) -> None:
    """Wherever metadata updates and conversation_stop are sent, they carry an object and a known final_status."""
    for situation in ("annotate", "title", "compact"):
        run = await exam.told(situation)
        for event in run.of("conversation_delta", "conversation_stop"):
            expect.equal("its conversation", run.conversation_id, event.data["conversation_id"])
        for event in run.of("conversation_stop"):
            expect.equal("the final status of a good run", "completed", event.data["final_status"])


@requirement("ZF-EV-09")
async def a_compression_is_told(exam: ZenfluxExamination) -> None:
    """A compression notice is {conversation_id, compressed: {summary, trimmed_count}}."""
    run = await exam.told("compact")
    found = [event for event in run.of("conversation_delta") if "compressed" in event.data]
    expect.that(bool(found), "a conversation_delta with compressed, as the profile says", run.names)


@requirement("ZF-EV-35")
async def an_error_says_what_went_wrong(exam: ZenfluxExamination) -> None:
    """A run that breaks says error {type, message}, with one of the five types, on the socket and in the stream."""
    async with exam.line() as line:
        await (await line.tell("fail")).until("error")
    async with exam.sse(exam.profile.prompt("fail")) as (run, _):
        await run.until("error")


@requirement("ZF-EV-36")
async def done_ends_a_stream(exam: ZenfluxExamination) -> None:
    """A stream of POST /chat ends with the server-sent event named done, after message_stop, and nothing after it."""
    for situation in ("text", "tool"):
        names = await _names(exam, situation)
        expect.that("message_stop" in names, "message_stop before the end", names)
        expect.equal("the last event, and how often", ["done", 1], [*names[-1:], names.count("done")])
    if exam.profile.prompts.fail is not None:
        names = await _names(exam, "fail")
        expect.that("done" not in names[:-1], "nothing after done", names)


async def _names(exam: ZenfluxExamination, situation: str) -> list[str]:
    """What comes in a stream up to its very end: done, or the types of its events."""
    found, _ = await exam.framed(situation)
    return ["done" if event.event == "done" else _type(event) for event in found]


def _type(found: ServerEvent) -> str:
    payload = expect.parsed(found.data, "the data of a server-sent event")
    return str(payload.get("type")) if isinstance(payload, dict) else found.event
