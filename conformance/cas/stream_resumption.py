"""Section stream, resumption: after any event, by header or by query, while more events arrive."""

import asyncio
from collections.abc import Iterator
from typing import Any

from conformance.cas.conversation import Conversation, Follower, is_idle
from conformance.cas.examination import Body, CasExamination
from conformance.cas.scenes import replies
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import Failed, NotTestable

SECTION = "resuming"
"""The first part of the case names: reports keep it."""

WAYS = ("after_id", "Last-Event-ID")


def _cursor(way: str, name: str) -> dict[str, Any]:
    """What to ask for, to resume after this event."""
    return {"query": {"after_id": name}} if way == "after_id" else {"headers": {"Last-Event-ID": name}}


@requirement("CAS-SSE-03")
async def a_stream_resumes_after_a_cursor(exam: CasExamination) -> None:
    """Each way of naming an event gives exactly what came after it."""
    scene = await replies(exam)
    talk, names = scene.talk(exam), [event["id"] for event in scene.run("text").events]
    for way in WAYS:
        for place in (0, len(names) - 2):
            async with talk.follow(**_cursor(way, names[place])) as follower:
                seen = await follower.until(is_idle, "session.status_idle")
            expect.equal(f"the events after {way}", names[place + 1 :], [event["id"] for event in seen])


@requirement("CAS-SSE-03")
async def an_unknown_cursor_is_refused(exam: CasExamination) -> None:
    """An id nobody has, or of another session, is a 400."""
    talk = await exam.open()
    await talk.post({"type": "user.define_outcome"})
    elsewhere = (await replies(exam)).run("text").events[0]["id"]
    for way in WAYS:
        for name in (exam.stranger("evt"), elsewhere):
            exam.refused(await exam.ask("GET", f"{talk.path}/events/stream", **_cursor(way, name)), 400)


async def _rest(talk: Conversation, idles: int, **more: Any) -> list[str]:
    """The ids a stream tells, up to so many ends of turns."""
    async with talk.follow(**more) as follower:
        for _ in range(idles):
            await follower.until(is_idle, "session.status_idle")
    return [event["id"] for event in follower.events]


@requirement("CAS-SSE-05")
async def a_stream_resumes_after_every_event_while_more_arrive(exam: CasExamination) -> None:
    """After every event of a finished turn and of the running one, both ways: nothing missing, nothing twice."""
    talk = await exam.open()
    await talk.say(exam.profile.prompt("thinking"))
    resumed: list[tuple[str, asyncio.Task[list[str]]]] = []

    def resume(name: str, idles: int) -> None:
        tasks = [asyncio.create_task(_rest(talk, idles, **_cursor(way, name))) for way in WAYS]
        resumed.extend((name, task) for task in tasks)

    try:
        async with talk.follow() as follower:
            accepted = await talk.begin(exam.profile.prompt("busy"), follower)
            for name, idles in _remaining(await talk.events(), accepted["id"]):
                resume(name, idles)
            while not is_idle(event := await _live(follower)):
                resume(event["id"], 1)
        streams = [(name, await task) for name, task in resumed]
    finally:
        for _, task in resumed:
            task.cancel()
        await asyncio.gather(*(task for _, task in resumed), return_exceptions=True)
    await _complete(talk, streams)


def _remaining(history: list[Body], accepted: str) -> Iterator[tuple[str, int]]:
    """After each event that is not the very last, how many ends of turns come; a slow list may tell them all."""
    names = [event["id"] for event in history]
    expect.subset("the listed events", [accepted], names)
    is_over = any(map(is_idle, history[names.index(accepted) :]))
    for place, name in enumerate(names):
        idles = sum(map(is_idle, history[place + 1 :])) + (not is_over)
        if idles:
            yield name, idles


async def _live(follower: Follower) -> Body:
    event = await follower.next()
    if event is None:
        raise Failed("the stream to go on while the turn runs", "it ended")
    return event


async def _complete(talk: Conversation, streams: list[tuple[str, list[str]]]) -> None:
    """Expect each stream to have told exactly the listed events after its cursor."""
    names = [event["id"] for event in await talk.events()]
    if len(streams) < 4:
        raise NotTestable("the profile's `busy` prompt makes too few events to resume after")
    expect.subset("the listed events", [cursor for cursor, _ in streams], names)
    for cursor, seen in streams:
        expect.subset("the listed events", seen[-1:], names)
        wanted = names[names.index(cursor) + 1 : names.index(seen[-1]) + 1]
        early = set(seen).intersection(names[: names.index(cursor) + 1])
        expect.that(not early, f"nothing before or at the cursor {cursor}", seen, "CAS-SSE-03")
        expect.equal(f"the events after {cursor}, number {names.index(cursor) + 1} of {len(names)}", wanted, seen)
