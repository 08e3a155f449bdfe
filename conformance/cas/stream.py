"""Section stream: how it opens, what its frames look like, and that it stays."""

import asyncio

from conformance.cas.conversation import Follower
from conformance.cas.events import BESIDE_TURNS
from conformance.cas.examination import CasExamination
from conformance.cas.object_comparison import same_events, told_as_listed
from conformance.cas.requirement_owners import of_event
from conformance.cas.run import Body, is_piece, message
from conformance.cas.scenes import decided, replies
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import Failed, NotTestable
from conformance.kit.runner import ANSWERS_PER_CASE
from conformance.kit.sse import ServerEvent

AT_ONCE = 2.0
BEATS = 2
ROUNDS = 2
LOOKS = 20  # at a session, until a quick turn is over


@requirement("CAS-SSE-01")
async def a_stream_opens_whatever_is_accepted(exam: CasExamination) -> None:
    """With any Accept the answer is a text/event-stream, and a comment comes at once."""
    talk = await exam.open()
    within = min(AT_ONCE, (exam.profile.heartbeat or AT_ONCE) * 0.75)
    for accept in ("text/event-stream", "application/json", "*/*", "text/html;q=0.5"):
        async with talk.follow(headers={"Accept": accept}) as follower:
            await follower.stream.comment(within)


@requirement("CAS-SSE-02")
async def frames_have_id_event_and_data(exam: CasExamination) -> None:
    """Each frame has its own id, its event and one line of data, which repeats both."""
    scene = await replies(exam)
    for frame, event in zip(scene.frames, scene.told, strict=True):
        if not is_piece(event):
            is_framed(frame, event)


def is_framed(frame: ServerEvent, event: Body) -> None:
    """Expect one line each of id, event and data, the data repeating the other two."""
    fields = {name: frame.fields.count(name) for name in ("id", "event", "data")}
    expect.equal(f"the lines of a frame of {frame.event}", {"id": 1, "event": 1, "data": 1}, fields)
    expect.equal("id and event of a frame", (event["id"], event["type"]), (frame.id, frame.event))


@requirement("CAS-SSE-04")
async def a_stream_is_not_handed_an_old_turn(exam: CasExamination) -> None:
    """Open, send, read to idle, twice: a stream without a cursor has nothing of a turn that was told before."""
    talk = await exam.open()
    for _ in range(ROUNDS):
        history = await talk.events()
        async with talk.follow() as follower:
            await follower.run("the message", await talk.post(message(exam.profile.prompt("text"))))
        _begins(exam, history, follower.events)
        told_as_listed(await talk.events(), len(history), follower.events)


@requirement("CAS-SSE-04")
async def a_stream_opened_late_misses_nothing(exam: CasExamination) -> None:
    """Send, open, read to idle, twice: a stream without a cursor begins with the turn that nobody was told."""
    if exam.profile.stream_start == "tail":
        return
    talk = await exam.open()
    for _ in range(ROUNDS):
        history = await talk.events()
        accepted = await talk.post(message(exam.profile.prompt("text")))
        for _ in range(LOOKS):
            if (await talk.info())["status"] == "idle":
                break
        async with talk.follow() as follower:
            try:
                await follower.run("the message", accepted)
            except Failed as failure:
                is_gap = failure.owner == "CAS-SSE-05" and not follower.events
                raise Failed(failure.expected, failure.seen, "CAS-SSE-04" if is_gap else failure.owner) from failure
        _begins(exam, history, follower.events)
        told_as_listed(await talk.events(), len(history), follower.events)


def _begins(exam: CasExamination, history: list[Body], told: list[Body]) -> None:
    """Expect a stream to tell all that was before, or nothing of the turns that other streams have told."""
    names = [event["id"] for event in told]
    old = [event["id"] for event in history if event["type"] not in BESIDE_TURNS]
    wanted = old if exam.profile.stream_start == "history" else []
    expect.equal("what a stream without a cursor tells of before", wanted, [name for name in old if name in names])


@requirement("CAS-SSE-06")
async def an_idle_stream_has_a_heartbeat(exam: CasExamination) -> None:
    """Comments `heartbeat` come at the interval of the profile while nothing happens."""
    interval = exam.profile.heartbeat
    if interval is None:
        raise NotTestable("the profile has no entry `heartbeat`")
    patience = interval * 1.5 + max(1.0, exam.http.timeout * 0.8)  # a busy machine may be late
    if BEATS * patience > exam.http.timeout * (ANSWERS_PER_CASE - 1):
        raise NotTestable(f"heartbeats every {interval:g} s take too long for a timeout of {exam.http.timeout:g} s")
    talk = await exam.open()
    async with talk.follow() as follower:
        for _ in range(BEATS):
            await _beat(follower, patience)


async def _beat(follower: Follower, patience: float) -> None:
    """Wait for one heartbeat; other comments do not count."""
    deadline = asyncio.get_running_loop().time() + patience
    comments: list[str] = []
    while (left := deadline - asyncio.get_running_loop().time()) > 0:
        comments.append(await follower.stream.comment(left))
        if "heartbeat" in comments[-1]:
            return
    expect.fail(f"a comment `: heartbeat` within {patience:g} s", comments)


@requirement("CAS-SSE-07")
async def a_stream_stays_open(exam: CasExamination) -> None:
    """One connection sees several turns, and another one turns that wait, and their ends."""
    for scene in (await replies(exam), await decided(exam)):
        expect.that(len(scene.runs) > 1, "more than one turn on one stream", [run.kinds for run in scene.runs])


@requirement("CAS-SSE-05", "CAS-SSE-07")
async def everybody_sees_the_same(exam: CasExamination) -> None:
    """Two streams of one session tell the same events in the same order."""
    talk = await exam.open()
    async with talk.follow() as one, talk.follow() as other:
        accepted = await talk.post(message(exam.profile.prompt("thinking")))
        first, second = await asyncio.gather(one.run("the message", accepted), other.run("the message", accepted))
    same_events("the events of the second stream", first.events, second.events)
    for piece in filter(is_piece, first.events):
        expect.fail("whole events", first.kinds, of_event(piece["type"]))
