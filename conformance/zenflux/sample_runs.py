"""Sample runs: each kind that the profile can bring about is observed once in an examination, for all cases."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from conformance.kit import expect
from conformance.kit.expect import Failed, NotTestable, Unanswered
from conformance.zenflux.chat_socket import ChatSocket, Frame
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.rest_answer import Answer
from conformance.zenflux.run import Run
from conformance.zenflux.run_contents import as_text

PLAIN = ("text", "thinking", "tool", "slow", "burst", "annotate", "title", "compact")
STREAMED = ("text", "thinking", "tool", "annotate")
Work = Callable[[], Awaitable[Run]]
AT_ONCE = 5
"""How many runs are brought about at a time."""
CONFIRMATIONS = "/human-confirmation"
LINE, UNSTREAMED, STREAM = "on a line", "on a line without streaming", "in a stream"


async def told(exam: ZenfluxExamination, situation: str, way: str = LINE) -> Run:
    """The run of a situation that was told on a line, on a line without streaming, or in a stream."""
    exam.profile.prompt(situation)
    return await exam.once(f"{situation} {way}", lambda other: WAYS[way](other, situation))


async def _unstreamed(exam: ZenfluxExamination, situation: str) -> Run:
    return await exam.told(situation, "ZF-WS-09", stream=False)


WAYS: dict[str, Callable[[ZenfluxExamination, str], Awaitable[Run]]] = {
    LINE: lambda exam, situation: exam.told(situation),
    UNSTREAMED: _unstreamed,
    STREAM: lambda exam, situation: exam.streamed(situation),
}


def given(exam: ZenfluxExamination, *situations: str) -> list[str]:
    """Those of the situations that the profile can bring about, which must be one at least."""
    found = [name for name in situations if getattr(exam.profile.prompts, name) is not None]
    return found or [situations[0]]


async def on_a_line(exam: ZenfluxExamination, *situations: str) -> list[Run]:
    """Good runs of these situations, each on a line."""
    return await together(exam, [partial(told, exam, situation) for situation in given(exam, *situations)])


async def everywhere(exam: ZenfluxExamination, *situations: str) -> list[Run]:
    """The runs of these situations on a line, on a line without streaming, and in a stream."""
    return await together(exam, [partial(told, exam, situation, way) for situation in situations for way in WAYS])


async def short(exam: ZenfluxExamination) -> list[Run]:
    """An ordinary reply and one with a tool, on a line and in streams."""
    known = given(exam, "text", "tool")
    return await together(exam, [partial(told, exam, situation, way) for situation in known for way in (LINE, STREAM)])


async def good(exam: ZenfluxExamination) -> list[Run]:
    """Good runs of every kind, on a line and in streams."""
    return await together(exam, _good(exam))


def _good(exam: ZenfluxExamination) -> list[Work]:
    lines = [partial(told, exam, situation) for situation in given(exam, *PLAIN)]
    return [*lines, *(partial(told, exam, situation, STREAM) for situation in given(exam, *STREAMED))]


async def everything(exam: ZenfluxExamination) -> list[Run]:
    """Good runs, and those that wait for the user, are stopped, or break."""
    return await together(exam, [*_good(exam), *_eventful(exam)])


def _eventful(exam: ZenfluxExamination) -> list[Work]:
    known = [name for name in STORIES if getattr(exam.profile.prompts, name) is not None]
    streams = [partial(told, exam, "fail", STREAM)] if "fail" in known else []
    return [*(partial(STORIES[name], exam) for name in known), *streams]


async def together(exam: ZenfluxExamination, works: Iterable[Work]) -> list[Run]:
    """The runs of all of these that could be observed; what kept the others is noted, or raised if there is no run."""
    runs: list[Run] = []
    troubles: list[BaseException] = []
    places = asyncio.Semaphore(AT_ONCE)

    async def one(work: Work) -> Run:
        async with places:
            return await work()

    for found in await asyncio.gather(*map(one, works), return_exceptions=True):
        if isinstance(found, Run):
            runs.append(found)
        else:
            troubles.append(found)
    for trouble in troubles:
        if isinstance(trouble, Failed) and trouble.owner is not None and not isinstance(trouble, Unanswered) and runs:
            if not exam.departures.is_misled:
                exam.departures.note(trouble.owner, trouble.expected, trouble.seen)
        elif not isinstance(trouble, NotTestable) or not runs:
            raise trouble
    return runs


# -- runs that are stopped or break ------------------------------------------------------------------------------------


async def to_its_end(run: Run) -> Run:
    """Read to session_end, or as far as the run goes: one that was stopped, or broke, may end with that signal."""
    try:
        with run.waits.goal("session_end after another end"):
            while not run.of("session_end") and await run.next() is not None:
                pass
    except Unanswered:
        raise
    except Failed as failure:
        if failure.owner is not None or not run.events:
            raise
    return run


@dataclass
class Stopped:
    """A run that was stopped while it spoke: how that was answered, and what came of it."""

    run: Run
    responses: list[Frame] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)

    @property
    def is_completed(self) -> bool:
        """Whether the run went on as if nothing had been said."""
        is_stopped = bool(self.run.of("session_stopped"))
        return not is_stopped and any(it.data.get("status") == "completed" for it in self.run.of("session_end"))


async def aborted(exam: ZenfluxExamination) -> Stopped:
    """A run that is aborted twice with chat.abort."""
    exam.profile.prompt("slow")
    return await exam.once("slow, aborted", _aborted)


async def _aborted(exam: ZenfluxExamination) -> Stopped:
    async with exam.line() as line:
        run = await _begun(line)
        names = [await line.request("chat.abort", {"session_id": run.session_id}) for _ in range(2)]
        responses = [await line.response(name) for name in names]
        await line.caught(run)
        return Stopped(await _over(line, run), responses)


async def _begun(line: ChatSocket, situation: str = "slow") -> Run:
    """A run that has begun to speak."""
    run = await line.tell(situation)
    await run.until("content_start")
    return run


async def _over(line: ChatSocket, run: Run) -> Run:
    await to_its_end(run)
    return await line.watch_the_end(run)


async def stopped(exam: ZenfluxExamination) -> Stopped:
    """A run that is stopped twice with POST /session/{id}/stop."""
    exam.profile.prompt("slow")
    return await exam.once("slow, stopped", _stopped)


async def _stopped(exam: ZenfluxExamination) -> Stopped:
    async with exam.line() as line:
        run = await _begun(line)
        answers = [await exam.ask("POST", f"/session/{run.session_id}/stop") for _ in range(2)]
        await line.caught(run, is_elsewhere=True)
        return Stopped(await _over(line, run), answers=answers)


async def broken(exam: ZenfluxExamination) -> Run:
    """A run that breaks in the middle."""
    exam.profile.prompt("fail")
    return await exam.once("fail, to its end", _broken)


async def _broken(exam: ZenfluxExamination) -> Run:
    async with exam.line() as line:
        run = await line.tell("fail")
        return await _over(line, run)


# -- runs that are looked at, or wait for the user ---------------------------------------------------------------------


@dataclass
class Watched:
    """A run, the session as it was shown while it ran, and the lists of sessions at that time and afterwards."""

    run: Run
    info: Answer
    during: Answer
    after: Answer


async def watched(exam: ZenfluxExamination) -> Watched:
    """A run that is looked at while it speaks, and a ping in the middle of it."""
    exam.profile.prompt("slow")
    return await exam.once("slow, looked at", _watched)


async def _watched(exam: ZenfluxExamination) -> Watched:
    async with exam.line() as line:
        run = await _begun(line)
        info = await exam.ask("GET", f"/session/{run.session_id}")
        during = await exam.ask("GET", "/sessions")
        await line.caught(run, is_elsewhere=True)
        await run.completed()
        after = await exam.ask("GET", "/sessions")
        return Watched(await line.watch_the_end(run), info, during, after)


@dataclass
class Asked:
    """A run that asked the user, what came while it waited, and the answers to all that was done meanwhile."""

    run: Run
    meanwhile: list[str]
    answers: dict[str, Answer]


async def approved(exam: ZenfluxExamination) -> Asked:
    """A run that asks for permission, is looked at, and is permitted to go on."""
    return await _confirmed(exam, "permit", {"response": "approve", "metadata": {}})


async def rejected(exam: ZenfluxExamination) -> Asked:
    return await _confirmed(exam, "permit", {"response": "reject", "metadata": {"by": "examiners"}})


async def advised(exam: ZenfluxExamination, situation: str) -> Asked:
    """A run that asks, and is answered in words of one's own."""
    return await _confirmed(exam, situation, {"response": "只看前十行, please", "metadata": {}})


async def _confirmed(exam: ZenfluxExamination, situation: str, body: dict[str, Any]) -> Asked:
    async def make(other: ZenfluxExamination) -> Asked:
        async with other.line() as line:
            run = await line.tell(situation)
            await run.until_note("confirmation_request")
            meanwhile, shown = await _looked_at(other, line, run)
            shown["posted"] = await other.ask("POST", f"{CONFIRMATIONS}/{run.session_id}", body)
            shown["after"] = await other.ask("GET", f"{CONFIRMATIONS}/pending")
            if shown["posted"].is_done:
                await _gone_on(line, run, "ZF-HTTP-3.3-02")
            return Asked(run, meanwhile, shown)

    exam.profile.prompt(situation)
    return await exam.once(f"{situation}, answered with {body['response']}", make)


async def _gone_on(line: ChatSocket, run: Run, owner: str) -> None:
    """Read a run to its end after what was asked is answered; if nothing more comes, the answer did nothing."""
    with expect.owned(owner):
        await run.next()
    await run.completed()
    await line.watch_the_end(run)


async def _looked_at(exam: ZenfluxExamination, line: ChatSocket, run: Run) -> tuple[list[str], dict[str, Answer]]:
    """What comes while the user is asked, and how the request is shown."""
    shown = {
        "pending": await exam.ask("GET", f"{CONFIRMATIONS}/pending"),
        "request": await exam.ask("GET", f"{CONFIRMATIONS}/{run.request['request_id']}"),
    }
    await line.watch_the_end(run)
    return list(run.late), shown


async def cancelled(exam: ZenfluxExamination) -> Asked:
    """A run that asks for permission, and whose request is taken back."""
    exam.profile.prompt("permit")
    return await exam.once("permit, cancelled", _cancelled)


async def _cancelled(exam: ZenfluxExamination) -> Asked:
    async with exam.line() as line:
        run = await line.tell("permit")
        await run.until_note("confirmation_request")
        taken_back = await exam.ask("DELETE", f"{CONFIRMATIONS}/{run.request['request_id']}")
        after = await exam.ask("GET", f"{CONFIRMATIONS}/pending")
        if taken_back.is_done and run.request["request_id"] not in after.reply.text:
            with expect.owned("ZF-HTTP-3.3-04"):
                await run.next()
            await _over(line, run)
        return Asked(run, [], {"cancelled": taken_back, "after": after})


async def continued(exam: ZenfluxExamination) -> Asked:
    """A long task that asks whether to go on, and is told to."""
    exam.profile.prompt("long_run")
    return await exam.once("long_run, continued", _continued)


async def _continued(exam: ZenfluxExamination) -> Asked:
    async with exam.line() as line:
        run = await line.tell("long_run")
        await run.until("long_running_confirm")
        await line.watch_the_end(run)
        meanwhile = list(run.late)
        posted = await exam.ask("POST", f"/session/{run.session_id}/confirm_continue")
        if posted.is_done:
            await _gone_on(line, run, "ZF-HTTP-3.1-03")
        return Asked(run, meanwhile, {"posted": posted})


async def rolled_back(exam: ZenfluxExamination) -> Asked:
    """A run that offers to roll back, and is told to."""
    exam.profile.prompt("rollback")
    return await exam.once("rollback, done", _rolled_back)


async def _rolled_back(exam: ZenfluxExamination) -> Asked:
    async with exam.line() as line:
        run = await line.tell("rollback")
        await run.until("rollback_options")
        posted = await exam.ask("POST", f"/session/{run.session_id}/rollback", {"file_paths": ["a.txt"]})
        if posted.is_done:
            await _over(line, run)
        return Asked(run, [], {"posted": posted})


# -- chats over REST, and what is kept ---------------------------------------------------------------------------------


async def whole_chat(exam: ZenfluxExamination) -> Answer:
    """The answer to POST /chat without streaming."""
    exam.profile.prompt("text")
    return await exam.once("text, as one answer", _whole_chat)


async def _whole_chat(exam: ZenfluxExamination) -> Answer:
    return await exam.chat_at_once(exam.profile.prompt("text"))


async def kept(exam: ZenfluxExamination, situation: str, way: str = LINE) -> Sequence[dict[str, Any]]:
    """The messages that the conversation of a run keeps."""
    run = await told(exam, situation, way)
    return await exam.once(f"what is kept of {situation} {way}", lambda other: other.history(run.conversation_id))


def texts(history: Sequence[dict[str, Any]]) -> str:
    """What the assistant said, as a conversation keeps it."""
    return "".join(as_text(message["content"]) for message in history if message["role"] == "assistant")


STORIES: dict[str, Callable[[ZenfluxExamination], Awaitable[Run]]] = {}


def _story(situation: str, make: Callable[[ZenfluxExamination], Awaitable[Any]]) -> None:
    async def run(exam: ZenfluxExamination) -> Run:
        found = await make(exam)
        return found if isinstance(found, Run) else found.run

    STORIES[situation] = run


_story("permit", approved)
_story("long_run", continued)
_story("rollback", rolled_back)
_story("slow", aborted)
_story("fail", broken)
