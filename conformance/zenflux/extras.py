"""Section extras: rollback and the confirmation of long tasks, as events and as endpoints."""

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.examination import ZenfluxExamination


@requirement("ZF-EV-37", "ZF-EV-38", "ZF-HTTP-3.1-04")
async def a_rollback_is_offered_and_done(exam: ZenfluxExamination) -> None:
    """rollback_options has task_id and options; POST /session/{id}/rollback leads to rollback_completed."""
    async with exam.line() as line:
        run = await line.tell("rollback")
        await run.until("rollback_options")
        await exam.post(f"/session/{run.session_id}/rollback", {})
        await run.until("rollback_completed")


@requirement("ZF-EV-39", "ZF-HTTP-3.1-03")
async def a_long_task_asks_and_goes_on(exam: ZenfluxExamination) -> None:
    """long_running_confirm has turn and message; after POST …/confirm_continue the run goes on to its end."""
    async with exam.line() as line:
        run = await line.tell("long_run")
        await run.until("long_running_confirm")
        await exam.post(f"/session/{run.session_id}/confirm_continue")
        await run.completed()


@requirement("G-ZF-27")
async def a_long_task_waits(exam: ZenfluxExamination) -> None:
    """The run says nothing until confirm_continue; stopping it instead ends it; with nothing to confirm it is a 200."""
    async with exam.line() as line:
        run = await line.tell("long_run")
        await run.until("long_running_confirm")
        await line.ping()
        expect.equal("events while the user is asked", [], line.unread)
        await exam.post(f"/session/{run.session_id}/stop")
        await run.until("session_stopped")
        done = await (await line.tell("text")).completed()
        await exam.post(f"/session/{done.session_id}/confirm_continue")


@requirement("G-ZF-28")
async def a_rollback_tells_what_it_did(exam: ZenfluxExamination) -> None:
    """The data of a rollback is {session_id, messages}, file_paths may be given, and without a snapshot it is a 404."""
    async with exam.line() as line:
        run = await line.tell("rollback")
        await run.until("rollback_options")
        path = f"/session/{run.session_id}/rollback"
        data = await exam.send("rolled_back", path, {"file_paths": ["a.txt"]})
        expect.equal("session_id", run.session_id, data["session_id"])
        await run.until("rollback_completed")
        done = await (await line.tell("text")).completed()
        answer = await exam.ask("POST", f"/session/{done.session_id}/rollback", {})
        answer.missing("there is nothing to roll back to")
