"""Section sessions: stopping, ending and listing them, and what the resolutions say of the answers."""

from typing import Any

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.management_common import UNKNOWN_CALL
from conformance.zenflux.responses import whose_end
from conformance.zenflux.rest_answer import listed
from conformance.zenflux.sample_runs import kept, stopped, to_its_end, told, watched


@requirement("ZF-HTTP-3.1-02")
async def a_session_can_be_stopped(exam: ZenfluxExamination) -> None:
    """POST /session/{id}/stop ends a running run; its conversation can go on."""
    found = await stopped(exam)
    found.answers[0].done()
    expect.that(not found.is_completed, "a run that was stopped to be cut short", found.run.names)
    async with exam.line() as line:
        await (await line.tell("text", conversation_id=found.run.conversation_id)).finish()


@requirement("ZF-HTTP-3.1-06")
async def a_session_can_be_ended(exam: ZenfluxExamination) -> None:
    """DELETE /session/{id} ends the session: its run is cut short, and it is no longer among the active ones."""
    async with exam.line() as line:
        run = await line.tell("slow")
        await run.until("content_start")
        (await exam.ask("DELETE", f"/session/{run.session_id}")).done()
        await line.caught(run, is_elsewhere=True)
        await to_its_end(run)
    ends = [event.data.get("status") for event in run.of("session_end")]
    expect.that("completed" not in ends, "the run to be cut short", run.names)
    after = (await exam.ask("GET", "/sessions")).done()
    if await _leaves_the_list(exam):
        expect.that(run.session_id not in _names(after), "an ended session not to be active", _names(after))


def _names(data: Any) -> list[str]:
    """The sessions in a list of them."""
    found = listed(data, "sessions", owner="ZF-HTTP-3.1-07")
    for item in found:
        is_named = isinstance(item.get("session_id"), str)
        expect.that(is_named, "a session_id in each listed session", item, "ZF-HTTP-3.1-07")
    return [str(item["session_id"]) for item in found]


async def _leaves_the_list(exam: ZenfluxExamination) -> bool:
    """Whether a session that has come to its end by itself is no longer listed."""
    found = await watched(exam)
    return found.run.session_id not in _names(found.after.done())


@requirement("ZF-HTTP-3.1-07")
async def active_sessions_are_listed(exam: ZenfluxExamination) -> None:
    """GET /sessions lists a session while it runs, and no longer when it is over."""
    found = await watched(exam)
    during, after = _names(found.during.done()), _names(found.after.done())
    expect.that(found.run.session_id in during, "a running session in the list", during)
    expect.that(found.run.session_id not in after, "no session in the list that is over", after)


@requirement("G-ZF-11")
async def a_stop_is_told_as_an_abort_is(exam: ZenfluxExamination) -> None:
    """The data of a stop is {session_id, status: stopped, stopped_at}; it can be repeated; the run is cancelled."""
    found = await stopped(exam)
    run = found.run
    expect.that(not found.is_completed, "a run that was stopped to be cut short", run.names, "ZF-HTTP-3.1-02")
    found.answers[0].done()
    expect.that(found.answers[1].is_done, "a second stop to succeed", found.answers[1].reply.told)
    for answer in found.answers:
        data = answer.done()
        exam.schemas.fit("stopped", data, f"the data of {answer.reply.asked}")
        said = [data[name] for name in ("session_id", "status")]
        expect.equal("session_id and status", [run.session_id, "stopped"], said)
    expect.that(bool(run.of("session_end")), "session_end after a stop", run.names, whose_end(await told(exam, "text")))
    expect.equal("the status at the end", "cancelled", run.status)


@requirement("G-ZF-11")
async def a_run_that_is_over_can_be_stopped(exam: ZenfluxExamination) -> None:
    """A stop of a run that has ended by itself succeeds, and leaves its conversation alone."""
    run = await told(exam, "text")
    before = await kept(exam, "text")
    if exam.profile.prompts.slow is not None:
        (await stopped(exam)).answers[0].done()
    for _ in range(2):
        answer = await exam.ask("POST", f"/session/{run.session_id}/stop")
        expect.that(answer.is_done, "a stop of a run that is over to succeed", answer.reply.told)
        exam.schemas.fit("stopped", answer.done(), f"the data of {answer.reply.asked}")
        expect.equal("session_id", run.session_id, answer.done()["session_id"])
    expect.equal("the conversation", before, await exam.history(run.conversation_id))


@requirement("G-ZF-31")
async def the_list_of_sessions_is_counted(exam: ZenfluxExamination) -> None:
    """GET /sessions is {total, sessions}, each with SessionInfo, user_id and conversation_id."""
    found = await watched(exam)
    during = _names(found.during.done())
    expect.that(found.run.session_id in during, "a running session in the list", during, "ZF-HTTP-3.1-07")
    data = found.during.done()
    is_right_elsewhere = exam.described("session_info", found.info.done(), "the data of GET /session/{id}")
    with expect.owned("G-ZF-31" if is_right_elsewhere else "ZF-TYPE-04"):
        exam.schemas.fit("session_page", data, "the data of GET /sessions")
    expect.equal("total", len(data["sessions"]), data["total"])
    own = [item for item in data["sessions"] if item["session_id"] == found.run.session_id]
    said = [[item.get("user_id"), item.get("conversation_id")] for item in own]
    expect.equal("user and conversation", [[found.run.user, found.run.conversation_id]], said)


@requirement("G-ZF-23")
async def the_status_says_what_the_code_says(exam: ZenfluxExamination) -> None:
    """The HTTP status of an error is its code: 404 for what does not exist, 400 for what makes no sense."""
    name = exam.stranger()
    for method, path in (
        ("GET", f"/session/{name}"),
        ("DELETE", f"/session/{name}"),
        ("POST", f"/session/{name}/stop"),
        ("GET", f"/conversations/{name}"),
        ("DELETE", f"/conversations/{name}"),
        ("PUT", f"/conversations/{name}?title=x"),
        ("GET", f"/conversations/{name}/messages"),
        ("POST", f"/conversations/{name}/preload"),
        ("GET", f"/conversations/{name}/summary"),
        *((method, f"/human-confirmation/{name}") for method in ("GET", "DELETE") if exam.profile.has_confirmations),
    ):
        answer = await exam.ask(method, path)
        expect.that(answer.code not in UNKNOWN_CALL, f"{method} {path} to be there", answer.reply.told, answer.owner)
        answer.missing("there is no such thing")
    for body in ({}, {"message": "", "userId": exam.user}, {"message": 7, "userId": exam.user}):
        answer = await exam.ask("POST", "/chat", body)
        expect.equal(f"status and code for {expect.show(body)}", [400, 400], [answer.reply.status, answer.code])


@requirement("G-ZF-34")
async def no_key_is_asked_for(exam: ZenfluxExamination) -> None:
    """Without an Authorization header the REST half and the socket answer all the same."""
    answer = await exam.ask("GET", "/conversations", query={"user_id": exam.user}, key=None)
    expect.that(answer.is_done, "an answer without a key", answer.reply.told)
