"""Sample runs: one of every kind that the profile can bring about, on sockets and in streams, each read to its end."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
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
    """Runs of these situations over POST /chat, all at once."""
    return await _together([_streamed(exam, situation) for situation in given(exam, *situations)])


async def _streamed(exam: ZenfluxExamination, situation: str) -> list[Run]:
    return [await exam.streamed(situation)]


async def short(exam: ZenfluxExamination) -> list[Run]:
    """An ordinary reply and one with a tool, on a line and in streams."""
    return await _together([on_a_line(exam, "text", "tool"), in_streams(exam, "text", "tool")])


async def good(exam: ZenfluxExamination) -> list[Run]:
    """Good runs of every kind, on a line and in streams."""
    return await _together([on_a_line(exam, *PLAIN), in_streams(exam, *STREAMED)])


async def everything(exam: ZenfluxExamination) -> list[Run]:
    """Good runs, and those that wait for the user, are stopped, or break."""
    return await _together([good(exam), eventful(exam)])


async def eventful(exam: ZenfluxExamination) -> list[Run]:
    """Runs that wait for the user, are stopped, or break: each on a line of its own; the broken one as a stream too."""
    known = [name for name in RIDES if getattr(exam.profile.prompts, name) is not None]
    streams = [in_streams(exam, "fail")] if "fail" in known else []
    return await _together([*(_ridden(exam, name) for name in known), *streams])


async def _ridden(exam: ZenfluxExamination, situation: str) -> list[Run]:
    """The run; none if it does not reach its end, which is for the cases about this situation to say."""
    with suppress(Failed):
        async with exam.line() as line:
            return [await line.settle(await RIDES[situation](exam, line))]
    return []


async def _together(works: Iterable[Awaitable[list[Run]]]) -> list[Run]:
    """The runs of all of these, each waited for; the first failure is told when none is under way any more."""
    runs: list[Run] = []
    for found in await asyncio.gather(*works, return_exceptions=True):
        if isinstance(found, BaseException):
            raise found
        runs += found
    return runs


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
