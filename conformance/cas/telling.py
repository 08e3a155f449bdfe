"""Section stream, telling: over every kind of turn a stream tells what is listed, each event once, as it is listed."""

from conformance.cas.events import same_events, told_as_listed
from conformance.cas.examination import CasExamination
from conformance.cas.run import Body, answer, message
from conformance.cas.talk import Follower, Talk, is_idle
from conformance.cas.turns import carries
from conformance.kit import expect
from conformance.kit.case import requirement


class SessionStream:
    """One session, one stream from beginning to end, and all that was accepted meanwhile."""

    def __init__(self, talk: Talk, follower: Follower, before: int) -> None:
        self._talk = talk
        self._follower = follower
        self._before = before
        self._accepted: list[Body] = []

    async def say(self, *prompts: str) -> None:
        """Say these one after the other, and answer whatever is asked, to the end of each turn."""
        for prompt in prompts:
            await self.post(message(prompt))

    async def post(self, *events: Body) -> None:
        """Post these and see the turn of the last one through."""
        accepted = await self._talk.post(*events)
        self._accepted += accepted
        run = await self._follower.run("what was posted", accepted[-1:])
        carries(run, str(accepted[-1].get("turn_id")))
        if run.stop == "requires_action":
            await self.post(*map(answer, run.pending))

    async def interrupt(self, prompt: str) -> None:
        """Begin a turn and interrupt it."""
        self._accepted.append(await self._talk.begin(prompt, self._follower))
        self._accepted += await self._talk.post({"type": "user.interrupt"})
        await self._follower.until(is_idle, "session.status_idle")

    async def finish(self) -> None:
        """Expect what was told, what is listed and what was accepted to be the same."""
        told = self._follower.events
        await told_as_listed(self._talk, self._before, told)
        known = {event["id"]: event for event in told}
        expect.subset("the streamed events", [event["id"] for event in self._accepted], known)
        same_events("the accepted events", [known[event["id"]] for event in self._accepted], self._accepted)


async def _tell(exam: CasExamination, *prompts: str, interrupted: str | None = None) -> None:
    """Bring these about on one stream; a plain turn at the end shows what came too late."""
    talk = await exam.open()
    before = len(await talk.events())
    async with talk.follow() as follower:
        teller = SessionStream(talk, follower, before)
        await teller.say(*prompts)
        if interrupted is not None:
            await teller.interrupt(interrupted)
        await teller.post({"type": "user.define_outcome"}, message(exam.profile.prompt("text")))
        await teller.say(exam.profile.prompt("text"))
    await teller.finish()


@requirement("CAS-SSE-05", "CAS-EV-01", "CAS-EV-10")
async def thoughts_and_tools_are_told_as_listed(exam: CasExamination) -> None:
    """Turns with thoughts and with tools that run by themselves."""
    await _tell(exam, exam.profile.prompt("thinking"), exam.profile.prompt("busy"))


@requirement("CAS-SSE-05", "CAS-EV-01", "CAS-EV-10")
async def asks_and_answers_are_told_as_listed(exam: CasExamination) -> None:
    """Turns that wait for a permission, for a result, and for both."""
    await _tell(exam, *(exam.profile.prompt(name) for name in ("custom_tool", "parallel")))
    await _tell(exam, exam.profile.server_tool("asked_tool").prompt)


@requirement("CAS-SSE-05", "CAS-THR-03", "CAS-EV-10")
async def threads_are_told_as_listed(exam: CasExamination) -> None:
    """Turns that hand something to another agent, which answers or asks first."""
    await _tell(exam, exam.profile.prompt("fork"), exam.profile.prompt("fork_ask"))


@requirement("CAS-SSE-05", "CAS-EV-01", "CAS-EV-10")
async def broken_turns_are_told_as_listed(exam: CasExamination) -> None:
    """A turn that fails, one that is interrupted and, if the profile has them, one that is refused or cut off."""
    cut = filter(None, (exam.profile.prompts.refuse, exam.profile.prompts.max_tokens))
    await _tell(exam, exam.profile.prompt("fail"), *cut, interrupted=exam.profile.prompt("slow"))
