"""Scenes: conversations that several cases judge, each played once in an examination, in a session of its own.

A scene is told on one stream from beginning to end; most end with a plain reply, by which whatever came late is seen.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from conformance.cas.conversation import Conversation, Follower, is_event, is_idle
from conformance.cas.examination import Body, CasExamination
from conformance.cas.object_comparison import in_listed_order, note_contradictions, unlisted
from conformance.cas.run import Run, answer, confirmation, message, tool_result
from conformance.kit import expect
from conformance.kit.expect import Failed, NotTestable
from conformance.kit.http import Query
from conformance.kit.sse import ServerEvent
from conformance.kit.unreadable_answers import reading

T = TypeVar("T")
Missing = Failed | NotTestable
FOUND = "The word means: found."
PARTS = ("  found \n", "\t«中文» 😀 ")
"""The blocks of a result, with blanks and line ends."""
NO = "The examiners say no."
QUOTED = ("\ttwo  blanks ", '"quoted" \\ «中文» \u2028 😀\r\n')
CUT = {"refuse": "refusal", "max_tokens": "max_tokens"}
"""Situations in which a turn is cut off, and the stop reason of each."""


def had(found: T | Missing) -> T:
    """What was found; if it could not be had, the failure that kept it."""
    if isinstance(found, Failed):
        raise found.again()
    if isinstance(found, NotTestable):
        raise type(found)(str(found))
    return found


async def caught(work: Callable[[], Awaitable[T]]) -> T | Missing:
    """What the work gives, or what kept it from giving anything."""
    try:
        return await work()
    except (Failed, NotTestable) as error:
        return error


@dataclass
class Scene:
    """One session, what came of each POST to it, all that its stream told, and all that is listed in the end."""

    session: Body
    before: int = 0
    """How many events were listed before anything was said."""
    accepted: list[Body] = field(default_factory=list)
    told: list[Body] = field(default_factory=list)
    frames: list[ServerEvent] = field(default_factory=list)
    """The frames in which the stream told these events."""
    _listed: list[Body] | Missing = field(default_factory=list)
    _runs: dict[str, Run] = field(default_factory=dict)
    _looks: dict[str, Body | Missing] = field(default_factory=dict)
    _threads: dict[str, list[Body] | Missing] = field(default_factory=dict)
    is_one_stream: bool = True
    """Whether the stream told all of it without being opened again."""
    _over: set[str] = field(default_factory=set)
    _ending: Missing | None = None

    def talk(self, exam: CasExamination) -> Conversation:
        """The session, to be asked about by another case."""
        return Conversation(exam, self.session)

    def run(self, name: str) -> Run:
        """What came of one POST; if the scene did not get so far, or the list has it otherwise, that failure."""
        found = self._done(name)
        if isinstance(self._listed, list):
            in_listed_order(found.events, self._listed)
        return found

    def _done(self, name: str) -> Run:
        if (found := self._runs.get(name) or self._ending) is None:
            raise NotTestable(f"the profile does not say how to bring about `{name}`")
        return had(found)

    @property
    def runs(self) -> list[Run]:
        """What came of every POST; a scene that broke off has none."""
        if self._ending is not None:
            had(self._ending)
        return [self.run(name) for name in self._runs]

    @property
    def listed(self) -> list[Body]:
        """The events as they are listed in the end; they must go by the ids by which they were told."""
        listed, told = had(self._listed), [event["id"] for event in self.told if is_event(event)]
        names = [event["id"] for event in listed]
        is_renamed = len(names) >= len(told) > 0 and not set(told).intersection(names)
        expect.that(not is_renamed, f"events to be listed by the ids {expect.show(told)}", names, "CAS-EV-01")
        return listed

    def kept(self, run: Run) -> list[Body]:
        """The first event of a POST, as it was accepted, as it was told, and as it is listed."""
        accepted = run.accepted[0]
        with expect.owned(unlisted(self.listed, accepted)):
            found = (event for event in self.listed if event["id"] == accepted["id"])
            stored = expect.first(f"the event {accepted['id']} in the list", found, self.listed)
        return [accepted, run.events[0], stored]

    def look(self, name: str) -> Body:
        """The session, as it was shown after this POST."""
        self._done(name)
        return had(self._looks[name])

    async def was_over(self, name: str) -> bool:
        """Whether the turn had ended by itself soon after it was looked at under this name."""
        return name in self._over

    def threads(self, name: str) -> list[Body]:
        """The threads, as they were listed after this POST."""
        self._done(name)
        return had(self._threads[name])

    def coordinator(self, name: str) -> Body:
        """The one coordinator, as it was listed after this POST."""
        found = [thread for thread in self.threads(name) if thread["role"] == "coordinator"]
        expect.that(len(found) == 1, "one coordinator", found, "CAS-THR-01")
        return found[0]


class Stage:
    """Where a scene is played: one session, one stream of it, and the scene as far as it has come."""

    def __init__(self, exam: CasExamination, talk: Conversation, follower: Follower, scene: Scene) -> None:
        self.exam = exam
        self.talk = talk
        self.follower = follower
        self.scene = scene

    async def say(self, name: str, content: Any = None) -> Run:
        """Say something, or what the profile has for this situation, and see the turn through."""
        return await self.post(name, message(self.exam.profile.prompt(name) if content is None else content))

    async def post(self, name: str, *events: Body) -> Run:
        """Post these, and see the turn of the last one through."""
        accepted = await self.talk.post(*events)
        self.scene.accepted += accepted
        asked = f"POST {self.talk.path}/events"
        found = self.scene._runs[name] = await self.follower.turn(asked, accepted[-1:])
        return found

    async def begin(self, content: str) -> Body:
        """Say something, and wait until its turn runs."""
        accepted = await self.talk.begin(content, self.follower)
        self.scene.accepted.append(accepted)
        return accepted

    async def look(self, name: str) -> None:
        """Keep how session and threads are shown now, under the name of what came before."""
        self.scene._looks[name] = await caught(self.talk.info)
        self.scene._threads[name] = await caught(self.talk.threads)


Play = Callable[[Stage], Awaitable[None]]


async def _scene(exam: CasExamination, key: str, play: Play, query: Query | None = None) -> Scene:
    async def make(own: CasExamination) -> Scene:
        return await _played(own, play, query)

    found: Scene = await exam.http.observations.once(f"the scene {key}", make)
    return found


async def _played(exam: CasExamination, play: Play, query: Query | None) -> Scene:
    talk = await exam.open()
    scene = Scene(talk.session, len(await talk.events()))
    async with talk.follow(query) as follower:
        scene.told, scene.frames = follower.events, follower.frames
        try:
            with reading(exam.http.transcript):
                await play(Stage(exam, talk, follower, scene))
        except (Failed, NotTestable) as error:
            scene._ending = error
    scene.is_one_stream = not follower.was_reopened
    scene._listed = await caught(talk.events)
    if isinstance(scene._listed, list):
        note_contradictions(exam.http.departures, scene.told, scene._listed)
        if isinstance(scene._ending, Failed):
            scene._ending = _gap(scene.told, scene._listed) or scene._ending
    return scene


def _gap(told: list[Body], listed: list[Body]) -> Failed | None:
    """What keeps the stream from having told what is listed: a play that stumbled may have done so because of it."""
    try:
        in_listed_order(told, listed)
    except Failed as failure:
        return failure
    return None


# -- turns that end by themselves --------------------------------------------------------------------------------------


async def replies(exam: CasExamination) -> Scene:
    """A plain reply (`text`), one with a thought (`thinking`) and one with a tool that runs (`tool`)."""
    exam.profile.prompt("text")
    return await _scene(exam, "of replies", _replies)


async def _replies(stage: Stage) -> None:
    profile = stage.exam.profile
    await stage.say("text")
    await stage.look("text")
    if profile.prompts.thinking is not None:
        await stage.say("thinking")
    if profile.allowed_tool is not None:
        await stage.say("tool", profile.allowed_tool.prompt)
    else:
        await stage.say("again", profile.prompt("text"))


async def words(exam: CasExamination) -> Scene:
    """A message that is posted together with an outcome (`outcome`), and one in blocks (`blocks`)."""
    exam.profile.prompt("text")
    return await _scene(exam, "of messages in blocks", _words)


def blocks(exam: CasExamination) -> list[str]:
    """The texts of the message in blocks."""
    return [f"  {exam.profile.prompt('text')} \n", *QUOTED]


async def _words(stage: Stage) -> None:
    outcome = {"type": "user.define_outcome", "description": "one"}
    await stage.post("outcome", outcome, message(stage.exam.profile.prompt("text")))
    await stage.say("blocks", [{"type": "text", "text": part} for part in blocks(stage.exam)])


async def failed(exam: CasExamination) -> Scene:
    """A turn that fails (`fail`), and a plain one after it (`text`)."""
    exam.profile.prompt("fail")
    return await _scene(exam, "of a turn that fails", _failed)


async def _failed(stage: Stage) -> None:
    await stage.say("fail")
    await stage.look("fail")
    try:
        await stage.say("text")
    except Failed as failure:
        is_refused = failure.owner == "CAS-EV-03"
        raise Failed(failure.expected, failure.seen, "CAS-EV-18" if is_refused else failure.owner) from failure


async def cut(exam: CasExamination) -> Scene:
    """Turns that are refused or cut off, as far as the profile has them (`refuse`, `max_tokens`), and a plain one."""
    exam.profile.prompt("text")
    return await _scene(exam, "of turns that are cut off", _cut)


async def _cut(stage: Stage) -> None:
    for name in CUT:
        if getattr(stage.exam.profile.prompts, name) is not None:
            await stage.say(name)
    await stage.say("text")


# -- turns that are looked at while they run, or stopped ---------------------------------------------------------------


async def running(exam: CasExamination) -> Scene:
    """A turn that is left alone, seen while it runs (`begun`) and when it is over (`slow`)."""
    exam.profile.prompt("slow")
    return await _scene(exam, "of a turn seen while it runs", _running)


async def _running(stage: Stage) -> None:
    (accepted,) = await stage.talk.post(message(stage.exam.profile.prompt("slow")))
    stage.scene.accepted.append(accepted)
    first = await stage.follower.begun(accepted)
    stage.scene._runs["begun"] = Run("a turn that runs", [accepted], first)
    await stage.look("begun")
    if await stage.talk.is_over(accepted):
        stage.scene._over.add("begun")
    rest = await stage.follower.until(is_idle, "session.status_idle")
    stage.scene._runs["slow"] = Run("a turn that was left alone", [accepted], [*first, *rest])
    await stage.look("slow")


async def interrupted(exam: CasExamination) -> Scene:
    """A turn that is interrupted (`slow`), and a plain one after it (`text`)."""
    exam.profile.prompt("slow")
    return await _scene(exam, "of a turn that is interrupted", _interrupted)


async def _interrupted(stage: Stage) -> None:
    accepted = await stage.begin(stage.exam.profile.prompt("slow"))
    posted = await stage.talk.post({"type": "user.interrupt"})
    stage.scene.accepted += posted
    rest = await stage.follower.until(is_idle, "session.status_idle")
    stage.scene._runs["slow"] = Run("a turn that is interrupted", [accepted, *posted], rest)
    await stage.say("text")


# -- turns that wait for the client ------------------------------------------------------------------------------------


async def decided(exam: CasExamination) -> Scene:
    """A call that asks and is allowed (`asked`, `allowed`), and one that is denied (`asked again`, `denied`)."""
    exam.profile.server_tool("asked_tool")
    return await _scene(exam, "of calls that are allowed and denied", _decided)


async def _decided(stage: Stage) -> None:
    prompt = stage.exam.profile.server_tool("asked_tool").prompt
    run = await stage.say("asked", prompt)
    await stage.look("asked")
    await stage.post("allowed", *map(answer, run.pending))
    run = await stage.say("asked again", prompt)
    denials = [confirmation(call, "deny", deny_message=NO) for call in run.pending]
    await stage.post("denied", *denials)


async def returned(exam: CasExamination) -> Scene:
    """A custom tool whose result is a string (`called`, `returned`), and one whose result is an error in blocks
    (`called again`, `returned in blocks`)."""
    exam.profile.prompt("custom_tool")
    return await _scene(exam, "of results of a custom tool", _returned)


async def _returned(stage: Stage) -> None:
    call = called(await stage.say("called", stage.exam.profile.prompt("custom_tool")))
    await stage.post("returned", tool_result(call, content=FOUND, is_error=False))
    call = called(await stage.say("called again", stage.exam.profile.prompt("custom_tool")))
    parts = [{"type": "text", "text": part} for part in PARTS]
    await stage.post("returned in blocks", tool_result(call, content=parts, is_error=True))


def called(run: Run) -> Body:
    """The one call of a custom tool that the turn waits for."""
    call = run.stopped("requires_action").one("agent.custom_tool_use")
    with expect.owned("CAS-EV-16"):
        expect.equal("what is pending", [call["id"]], [event["id"] for event in run.pending])
    return call


async def parallel(exam: CasExamination) -> Scene:
    """Calls of all kinds at once (`parallel`), answered in one POST (`answered`), and a plain reply (`text`)."""
    exam.profile.prompt("parallel")
    return await _scene(exam, "of calls at once", _parallel)


async def _parallel(stage: Stage) -> None:
    run = await stage.say("parallel")
    await stage.look("parallel")
    await stage.post("answered", *map(answer, run.pending))
    await stage.say("text")


# -- other agents ------------------------------------------------------------------------------------------------------


async def forked(exam: CasExamination) -> Scene:
    """Something is handed to another agent (`fork`); a plain reply (`text`)."""
    exam.profile.prompt("fork")
    return await _scene(exam, "of another agent", _forked)


async def _forked(stage: Stage) -> None:
    await stage.say("fork")
    await stage.look("fork")
    await stage.say("text")


async def fork_asked(exam: CasExamination) -> Scene:
    """Another agent asks first (`fork_ask`), and is answered (`answered`); a plain reply (`text`)."""
    exam.profile.prompt("fork_ask")
    return await _scene(exam, "of another agent that asks", _fork_asked)


async def _fork_asked(stage: Stage) -> None:
    run = await stage.say("fork_ask")
    await stage.look("fork_ask")
    await stage.post("answered", *map(answer, run.pending))
    await stage.look("answered")
    await stage.say("text")


# -- pieces ------------------------------------------------------------------------------------------------------------


async def pieces(exam: CasExamination) -> Scene:
    """A thought and a message (`thinking`) and a message in very many pieces (`burst`), on a stream with deltas."""
    asked = [("event_deltas[]", "agent.message"), ("event_deltas[]", "agent.thinking")]
    return await _scene(exam, "of messages in pieces", _pieces, asked)


async def _pieces(stage: Stage) -> None:
    for name in ("thinking", "burst"):
        if getattr(stage.exam.profile.prompts, name) is not None:
            await stage.say(name)
