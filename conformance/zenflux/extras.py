"""Section extras: rollback and the confirmation of long tasks, as events and as endpoints."""

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.sample_runs import continued, rolled_back, told


@requirement("ZF-EV-37", "ZF-EV-38", "ZF-HTTP-3.1-04")
async def a_rollback_is_offered_and_done(exam: ZenfluxExamination) -> None:
    """rollback_options has task_id and options; POST /session/{id}/rollback leads to rollback_completed."""
    found = await rolled_back(exam)
    found.answers["posted"].done()
    names = found.run.names
    expect.that("rollback_completed" in names, "rollback_completed after a rollback", names, "ZF-EV-38")


@requirement("ZF-EV-39", "ZF-HTTP-3.1-03")
async def a_long_task_asks_and_goes_on(exam: ZenfluxExamination) -> None:
    """long_running_confirm has turn and message; after POST …/confirm_continue the run goes on to its end."""
    found = await continued(exam)
    found.answers["posted"].done()
    goes_on = found.run.names[-1] != "long_running_confirm"
    expect.that(goes_on, "the run to go on after confirm_continue", found.run.names, "ZF-HTTP-3.1-03")


@requirement("G-ZF-27")
async def a_long_task_waits(exam: ZenfluxExamination) -> None:
    """The run says nothing until confirm_continue; stopping it instead ends it; with nothing to confirm it is a 200."""
    expect.equal("events while the user is asked", [], (await continued(exam)).meanwhile)
    async with exam.line() as line:
        run = await line.tell("long_run")
        await run.until("long_running_confirm")
        await exam.post(f"/session/{run.session_id}/stop")
        await run.until("session_stopped", "session_end", owner="ZF-HTTP-3.1-02")
    done = await told(exam, "text")
    answer = await exam.ask("POST", f"/session/{done.session_id}/confirm_continue")
    expect.that(answer.is_done, "confirm_continue with nothing to confirm to be a 200", answer.reply.told)


@requirement("G-ZF-28")
async def a_rollback_tells_what_it_did(exam: ZenfluxExamination) -> None:
    """The data of a rollback is {session_id, messages}, file_paths may be given, and without a snapshot it is a 404."""
    found = await rolled_back(exam)
    data = found.answers["posted"].done()
    exam.schemas.fit("rolled_back", data, "the data of a rollback")
    expect.equal("session_id", found.run.session_id, data["session_id"])
    done = await told(exam, "text")
    answer = await exam.ask("POST", f"/session/{done.session_id}/rollback", {})
    answer.missing("there is nothing to roll back to")
