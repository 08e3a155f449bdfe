"""Tours: runs of every kind that the profile can bring about, on lines and in streams, each read to its end."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from conformance.kit import expect
from conformance.kit.expect import Failed
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.line import Line
from conformance.zenflux.run import Run

PLAIN = ("text", "thinking", "tool", "slow", "burst", "annotate", "title", "compact")
STREAMED = ("text", "thinking", "tool", "annotate")
SIGNALS = ("message_stop", "session_stopped", "session_end", "error")
Ride = Callable[[ZenfluxExamination, Line], Awaitable[Run]]


def given(exam: ZenfluxExamination, *situations: str) -> list[str]:
    """Those of the situations that the profile can bring about, which must be one at least."""
    found = [name for name in situations if getattr(exam.profile.prompts, name) is not None]
    return found or [situations[0]]


async def on_a_line(exam: ZenfluxExamination, *situations: str) -> list[Run]:
    """Good runs of these situations, one after the other on one line, and nothing after them."""
    async with exam.line() as line:
        runs = [await (await line.tell(situation)).completed() for situation in given(exam, *situations)]
        await line.ping()
        expect.equal("events after session_end", [], line.unread)
    return runs


async def in_streams(exam: ZenfluxExamination, *situations: str) -> list[Run]:
    """Runs of these situations over POST /chat."""
    return [await exam.streamed(situation) for situation in given(exam, *situations)]


async def good(exam: ZenfluxExamination) -> list[Run]:
    """Good runs of every kind, on a line and in streams."""
    return [*await on_a_line(exam, *PLAIN), *await in_streams(exam, *STREAMED)]


async def everything(exam: ZenfluxExamination) -> list[Run]:
    """Good runs, and those that wait for the user, are stopped, or break."""
    return [*await good(exam), *await eventful(exam)]


async def eventful(exam: ZenfluxExamination) -> list[Run]:
    """Runs that wait for the user, are stopped, or break: each on a line of its own; the broken one as a stream too.

    What keeps such a run from its end is for the cases about it to say; here it is left out.
    """
    runs = []
    for situation in (name for name in RIDES if getattr(exam.profile.prompts, name) is not None):
        with suppress(Failed):
            async with exam.line() as line:
                runs.append(await line.settle(await RIDES[situation](exam, line)))
    broken = exam.profile.prompts.fail is not None
    return [*runs, await exam.streamed("fail")] if broken else runs


async def _allowed(exam: ZenfluxExamination, line: Line) -> Run:
    run = await line.tell("permit")
    await run.until_note("confirmation_request")
    await exam.post(f"/human-confirmation/{run.session_id}", {"response": "approve"})
    return await run.completed()


async def _continued(exam: ZenfluxExamination, line: Line) -> Run:
    run = await line.tell("long_run")
    await run.until("long_running_confirm")
    await exam.post(f"/session/{run.session_id}/confirm_continue")
    return await run.completed()


async def _rolled_back(exam: ZenfluxExamination, line: Line) -> Run:
    run = await line.tell("rollback")
    await run.until("rollback_options")
    await exam.post(f"/session/{run.session_id}/rollback", {})
    await run.until("rollback_completed")
    await run.until(*SIGNALS)
    return run


async def _stopped(exam: ZenfluxExamination, line: Line) -> Run:
    run = await line.tell("slow")
    await run.until("content_start")
    await line.accepted("chat.abort", {"session_id": run.session_id})
    await run.until("session_stopped")
    return run


async def _broken(exam: ZenfluxExamination, line: Line) -> Run:
    run = await line.tell("fail")
    await run.until("error")
    return run


RIDES: dict[str, Ride] = {
    "permit": _allowed,
    "long_run": _continued,
    "rollback": _rolled_back,
    "slow": _stopped,
    "fail": _broken,
}
