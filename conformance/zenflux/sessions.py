"""Section sessions: stopping, ending and listing them, and what the resolutions say of the answers."""

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.answer import listed
from conformance.zenflux.examination import ZenfluxExamination


@requirement("ZF-HTTP-3.1-02")
async def a_session_can_be_stopped(exam: ZenfluxExamination) -> None:
    """POST /session/{id}/stop ends a running run with session_stopped; its conversation can go on."""
    async with exam.line() as line:
        run = await line.tell("slow")
        await run.until("content_start")
        await exam.post(f"/session/{run.session_id}/stop")
        await line.caught(run, is_elsewhere=True)
        await run.until("session_stopped")
    async with exam.line() as line:
        await (await line.tell("text", conversation_id=run.conversation_id)).completed()
    (await exam.ask("POST", f"/session/{exam.stranger()}/stop")).refused("there is no such session")


@requirement("ZF-HTTP-3.1-06")
async def a_session_can_be_ended(exam: ZenfluxExamination) -> None:
    """DELETE /session/{id} ends the session: its run is cut short, and it is no longer among the active ones."""
    async with exam.line() as line:
        run = await line.tell("slow")
        await run.until("content_start")
        (await exam.ask("DELETE", f"/session/{run.session_id}")).done()
        await line.caught(run, is_elsewhere=True)
        end = await run.until("session_stopped", "session_end", "error")
        expect.that(end.data.get("status") != "completed", "the run to be cut short", dict(end.payload))
    active = [item["session_id"] for item in await _sessions(exam)]
    expect.that(run.session_id not in active, "an ended session not to be active", active)
    (await exam.ask("DELETE", f"/session/{exam.stranger()}")).refused("there is no such session")


@requirement("ZF-HTTP-3.1-07")
async def active_sessions_are_listed(exam: ZenfluxExamination) -> None:
    """GET /sessions lists a session while it runs, and no longer when it is over."""
    async with exam.line() as line:
        run = await line.tell("slow")
        await run.until("content_start")
        during = [item["session_id"] for item in await _sessions(exam)]
        await line.caught(run, is_elsewhere=True)
        await run.completed()
        after = [item["session_id"] for item in await _sessions(exam)]
    expect.that(run.session_id in during, "a running session in the list", during)
    expect.that(run.session_id not in after, "no session in the list that is over", after)


async def _sessions(exam: ZenfluxExamination) -> list[dict[str, object]]:
    found = listed(await exam.get("/sessions"), "sessions")
    for item in found:
        expect.that(isinstance(item.get("session_id"), str), "a session_id in each listed session", item)
    return found


@requirement("G-ZF-11")
async def a_stop_is_told_as_an_abort_is(exam: ZenfluxExamination) -> None:
    """The data of a stop is {session_id, status: stopped, stopped_at}; it can be repeated; the run is cancelled."""
    async with exam.line() as line:
        run = await line.tell("slow")
        await run.until("content_start")
        for _ in range(2):
            data = await exam.send("stopped", f"/session/{run.session_id}/stop")
            told = [data[name] for name in ("session_id", "status")]
            expect.equal("session_id and status", [run.session_id, "stopped"], told)
        await line.caught(run, is_elsewhere=True)
        await run.finish()
        expect.equal("the status at the end", "cancelled", run.events[-1].data["status"])


@requirement("G-ZF-11")
async def a_run_that_is_over_can_be_stopped(exam: ZenfluxExamination) -> None:
    """A stop of a run that has ended by itself succeeds, tells nobody anything, and leaves its conversation alone."""
    async with exam.line() as line:
        run = await (await line.tell("text")).completed()
        before = await exam.history(run.conversation_id)
        for _ in range(2):
            data = await exam.send("stopped", f"/session/{run.session_id}/stop")
            expect.equal("session_id", run.session_id, data["session_id"])
        await line.ping()
        expect.equal("events after the end", [], line.unread)
        expect.equal("the conversation", before, await exam.history(run.conversation_id))


@requirement("G-ZF-31")
async def the_list_of_sessions_is_counted(exam: ZenfluxExamination) -> None:
    """GET /sessions is {total, sessions}, each with SessionInfo, user_id and conversation_id."""
    async with exam.line() as line:
        run = await line.tell("slow")
        await run.until("content_start")
        data = await exam.read("session_page", "/sessions")
        expect.equal("total", len(data["sessions"]), data["total"])
        await line.caught(run, is_elsewhere=True)
        own = [item for item in data["sessions"] if item["session_id"] == run.session_id]
        told = [[item.get("user_id"), item.get("conversation_id")] for item in own]
        expect.equal("user and conversation", [[exam.user, run.conversation_id]], told)
        await run.completed()


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
        ("GET", f"/conversations/{name}/messages"),
        ("GET", f"/human-confirmation/{name}"),
    ):
        (await exam.ask(method, path)).missing("there is no such thing")
    for body in ({}, {"message": "", "userId": exam.user}, {"message": 7, "userId": exam.user}):
        answer = await exam.ask("POST", "/chat", body)
        expect.equal(f"status and code for {expect.show(body)}", [400, 400], [answer.reply.status, answer.code])


@requirement("G-ZF-34")
async def no_key_is_asked_for(exam: ZenfluxExamination) -> None:
    """Without an Authorization header the REST half and the socket answer all the same."""
    answer = await exam.ask("GET", "/conversations", query={"user_id": exam.user}, key=None)
    expect.that(answer.is_done, "an answer without a key", answer.reply.told)
