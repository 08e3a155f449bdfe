"""Section events: what the events of session, conversation and system say."""

from collections.abc import Mapping
from typing import Any

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable
from conformance.kit.sse import ServerEvent
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.run import Run
from conformance.zenflux.sample_runs import STREAM, aborted, broken, on_a_line, told

NEVER_ON_A_SOCKET = ("ping", "done", "tick")


@requirement("ZF-EV-01")
async def session_start_introduces_the_run(exam: ZenfluxExamination) -> None:
    """session_start names the user, and the session and conversation of the envelopes."""
    for run in (await told(exam, "text"), await told(exam, "text", STREAM)):
        expect.that(bool(run.of("session_start")), "session_start", run.names, "ZF-SEQ-01")
        start = run.of("session_start")[0]
        said = {name: start.data[name] for name in ("session_id", "user_id", "conversation_id")}
        wanted = {"session_id": start.session_id, "user_id": run.user}
        wanted["conversation_id"] = start.payload["conversation_id"]
        expect.equal("the data of session_start", wanted, said)


@requirement("ZF-EV-02")
async def session_stopped_says_why(exam: ZenfluxExamination) -> None:
    """session_stopped has session_id, stopped_at, and user_requested as the reason when a user stopped the run."""
    found = await aborted(exam)
    run = found.run
    expect.that(not found.is_completed, "a run that was aborted to be cut short", run.names, "ZF-WS-13")
    expect.that(bool(run.of("session_stopped")), "session_stopped in an aborted run", run.names)
    stop = run.of("session_stopped")[0].data
    said = {name: stop[name] for name in ("session_id", "reason")}
    expect.equal("the data of session_stopped", {"session_id": run.session_id, "reason": "user_requested"}, said)


@requirement("ZF-EV-03")
async def session_end_says_how_it_went(exam: ZenfluxExamination) -> None:
    """session_end has session_id, duration_ms and status, which is completed for a good run; a stream may have none."""
    runs = await on_a_line(exam, "text", "slow")
    for run in runs:
        expect.that(bool(run.of("session_end")), "session_end", run.names, "ZF-SEQ-08")
    for run in (*runs, await told(exam, "text", STREAM)):
        for event in run.of("session_end"):
            expect.equal("the session", run.session_id, event.data["session_id"])
            expect.that(event.data["duration_ms"] < 600_000, "a duration in milliseconds", event.data)


@requirement("ZF-EV-04")
async def pings_are_for_streams_only(exam: ZenfluxExamination) -> None:
    """No ping, done or tick comes as an event of a run on the socket; a stream's pings are {type: ping}."""
    for run in await on_a_line(exam, "slow", "tool", "text"):
        expect.equal("events that are not for sockets", [], [event.type for event in run.of(*NEVER_ON_A_SOCKET)])
    await told(exam, "text", STREAM)


@requirement("ZF-EV-05")
async def conversation_start_describes_the_conversation(exam: ZenfluxExamination) -> None:
    """conversation_start has the id, title, times and metadata of the conversation."""
    for run in (await told(exam, "text"), await told(exam, "text", STREAM)):
        expect.that(bool(run.of("conversation_start")), "conversation_start", run.names, "ZF-SEQ-02")
        start = run.of("conversation_start")[0]
        expect.equal("its conversation", start.payload["conversation_id"], start.data["conversation_id"])


def _updates(run: Run) -> list[Mapping[str, Any]]:
    """The data of the conversation_delta events of a run; the profile promises that there are some."""
    found = [event.data for event in run.of("conversation_delta")]
    if not found:
        raise NotTestable(f"{run.asked} brings about no conversation_delta, as the profile says: {run.names}")
    return found


@requirement("ZF-EV-06")
async def conversation_delta_says_what_changed(exam: ZenfluxExamination) -> None:
    """Every conversation_delta has the conversation's id and, beside it, title, metadata or compressed."""
    for situation in ("title", "compact"):
        run = await told(exam, situation)
        for data in _updates(run):
            expect.equal("its conversation", run.conversation_id, data["conversation_id"])


def _update(run: Run, member: str) -> Any:
    """What the last update of this member says; if the updates are of another form, that is whose it is."""
    updates = _updates(run)
    found = [data[member] for data in updates if member in data]
    is_formed = all({"title", "metadata", "compressed"} & set(data) for data in updates)
    expect.that(is_formed, f"a conversation_delta with {member} beside the id", updates, "ZF-EV-06")
    if not found:
        raise NotTestable(f"{run.asked} brings about no update of {member}, as the profile says: {updates}")
    return found[-1]


@requirement("ZF-EV-07")
async def a_new_title_is_told_and_kept(exam: ZenfluxExamination) -> None:
    """A title update is {conversation_id, title}, and the conversation then has that title."""
    run = await told(exam, "title")
    title = _update(run, "title")
    shown = await exam.read("conversation", f"/conversations/{run.conversation_id}")
    expect.equal("the title of the conversation", title, shown["title"])


@requirement("ZF-EV-08", "ZF-EV-10")
async def rarer_conversation_events_fit(exam: ZenfluxExamination) -> None:
    """Wherever metadata updates and conversation_stop are sent, they carry an object and a known final_status."""
    for run in await on_a_line(exam, "annotate", "title", "compact"):
        for event in run.of("conversation_stop"):
            own = {"conversation_id": run.conversation_id, "final_status": "completed"}
            said = {name: event.data[name] for name in own}
            expect.that(said == own, f"conversation_stop of a good run, with {own}", said, "ZF-EV-10")


@requirement("ZF-EV-09")
async def a_compression_is_told(exam: ZenfluxExamination) -> None:
    """A compression notice is {conversation_id, compressed: {summary, trimmed_count}}."""
    _update(await told(exam, "compact"), "compressed")


@requirement("ZF-EV-35")
async def an_error_says_what_went_wrong(exam: ZenfluxExamination) -> None:
    """A run that breaks says error {type, message}, with one of the five types, on the socket and in the stream."""
    for run in (await broken(exam), await told(exam, "fail", STREAM)):
        expect.that(bool(run.of("error")), f"an error in {run.asked}", run.names)


@requirement("ZF-EV-36")
async def done_ends_a_stream(exam: ZenfluxExamination) -> None:
    """A stream of POST /chat ends with the server-sent event named done, after message_stop, and nothing after it."""
    for situation in ("text", "tool"):
        run = await told(exam, situation, STREAM)
        names = ["done" if event.event == "done" else _type(event) for event in run.told]
        expect.that("message_stop" in names, "message_stop before the end", names, "ZF-EV-23")
        expect.equal("the last event, and how often", ["done", 1], [*names[-1:], names.count("done")])
        ends = [name for name in names if name in ("message_stop", "done")]
        expect.equal("done after message_stop", ["message_stop", "done"], ends[-2:])
    if exam.profile.prompts.fail is not None:
        _expect_nothing_after_done(await told(exam, "fail", STREAM))


def _expect_nothing_after_done(run: Run) -> None:
    """Where a stream that broke has a done, it is the end of that stream too."""
    names = ["done" if event.event == "done" else _type(event) for event in run.told]
    after = names[names.index("done") + 1 :] if "done" in names else []
    expect.equal(f"what comes after the done of {run.asked}", [], after)


def _type(found: ServerEvent) -> str:
    payload = expect.parsed(found.data, "the data of a server-sent event")
    return str(payload.get("type")) if isinstance(payload, dict) else found.event
