"""Section connection: ticks and pongs, a line that lasts, and deltas that are throttled."""

import asyncio
import math

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import Failed, NotTestable
from conformance.zenflux.chat_socket import ChatSocket
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.responses import coded
from conformance.zenflux.run import Run
from conformance.zenflux.sample_runs import aborted, given, kept, on_a_line, texts, to_its_end, told

THROTTLE = 0.15
LATE = 1.1
GRACE = 1.5
LINES = 2
BAD_FRAMES = (
    "",
    "not json",
    "{",
    "null",
    "[]",
    '"req"',
    "7",
    "{}",
    '{"type": "conjure"}',
    '{"type": 7}',
    '{"type": "event", "event": "session_start", "payload": {}, "seq": 1}',
    "\u0000",
)


@requirement("ZF-WS-17", "ZF-WS-18")
async def ticks_come(exam: ZenfluxExamination) -> None:
    """On a quiet line a tick comes in every 30 s (one, or two if the first comes at once), with ts and seq 0."""
    every = exam.profile.heartbeat
    if every is None:
        raise NotTestable("the profile has no entry `heartbeat`")
    if exam.http.timeout * 6 < every * LATE:
        raise NotTestable(f"the time limit leaves no {every * LATE:g} s to wait for a tick")
    async with exam.line() as line:
        await _listen(line, every * LATE)
        seen = len(line.ticks)
        expect.that(seen <= 2, f"a tick every {every:g} s", f"{seen} in {every * LATE:g} s", "ZF-WS-18")
        if not seen:
            await _listen(line, GRACE)  # a busy machine may be late by a moment, however short the interval
        late = f"none in {every * LATE + GRACE:g} s"
        expect.that(bool(line.ticks), f"a tick every {every:g} s", late, "ZF-WS-18")


async def _listen(line: ChatSocket, seconds: float) -> None:
    """Read whatever comes in this time."""
    end = asyncio.get_running_loop().time() + seconds
    while (left := end - asyncio.get_running_loop().time()) > 0:
        try:
            await line.read(within=left)
        except Failed as failure:
            if failure.seen != "nothing came":
                raise


@requirement("ZF-WS-21")
async def a_ping_is_answered(exam: ZenfluxExamination) -> None:
    """{type: ping} is answered with {type: pong, ts} in milliseconds, once each, also in the middle of a run."""
    async with exam.line() as line:
        first, second = await line.ping(), await line.ping()
        expect.that(first["ts"] <= second["ts"], "the time of a pong not to go back", [first, second])
        run = await line.tell("text")
        await line.ping()
        await run.finish()
        await line.ask("chat.abort", {})
        expect.equal("pongs to three pings", 3, line.order.count("pong"))


@requirement("ZF-WS-22")
async def a_line_serves_many_chats(exam: ZenfluxExamination) -> None:
    """Chats follow each other on one connection, in one conversation or several, after refusals and failures too."""
    async with exam.line() as line:
        first = await (await line.tell("text")).finish()
        await line.ask("chat.send", {})
        if exam.profile.prompts.fail is not None:
            await to_its_end(await line.tell("fail"))
        second = await (await line.tell("text", conversation_id=first.conversation_id)).finish()
        third = await (await line.tell("text")).finish()
    runs = (first, second, third)
    expect.that(len({run.session_id for run in runs}) == 3, "a session per run", [run.session_id for run in runs])


@requirement("ZF-WS-22")
async def lines_do_not_disturb_each_other(exam: ZenfluxExamination) -> None:
    """Chats on several connections at once each get their own run, whole and unmixed."""

    async def one(place: int) -> Run:
        async with exam.line() as line:
            run = await (await line.chat(f"{exam.profile.prompt('slow')} number {place}")).finish()
            expect.equal("events of other runs", [], [name for name in line.unread if name not in run.names[-1:]])
            return run

    runs = await asyncio.gather(*(one(place) for place in range(LINES)))
    expect.that(len({run.session_id for run in runs}) == LINES, "a session per run", [run.session_id for run in runs])


@requirement("ZF-WS-24")
async def deltas_are_throttled(exam: ZenfluxExamination) -> None:
    """No block comes in more deltas than one per 150 ms, and one at each end; the time is taken generously."""
    for run in await on_a_line(exam, "burst", "slow"):
        most = 1 + math.ceil(run.seconds / THROTTLE) + 1
        for block in run.blocks("text", "thinking"):
            expect.that(len(block.deltas) <= most, f"at most {most} deltas in a block", len(block.deltas))


@requirement("G-ZF-16")
async def throttling_loses_nothing(exam: ZenfluxExamination) -> None:
    """What the deltas add up to is what the conversation keeps, for a burst, a slow reply and several blocks."""
    for situation in given(exam, "burst", "slow", "thinking", "tool"):
        run = await told(exam, situation)
        expect.equal(f"the text of {run.asked}, as it is kept", texts(await kept(exam, situation)), run.text)


@requirement("G-ZF-10")
async def malformed_frames_are_survived(exam: ZenfluxExamination) -> None:
    """What is not JSON, no object, or of an unknown type is ignored, and the line stays open."""
    async with exam.line() as line:
        await line.ping()
        line.closing = "G-ZF-10"
        for text in BAD_FRAMES:
            await line.socket.send_text(text)
        await line.socket.send_bytes(b"\xff\x00\x01")
        await line.ping()
        answers = [name for name in line.heard if name in ("res", "pong")]
        expect.equal("answers to malformed frames and two pings", ["pong", "pong"], answers)


@requirement("G-ZF-10")
async def requests_without_id_or_method_are_answered(exam: ZenfluxExamination) -> None:
    """A request without an id is answered under a new one; one without a method with METHOD_NOT_FOUND."""
    async with exam.line() as line:
        await line.socket.send({"type": "req", "method": "chat.abort", "params": {}})
        await line.any_response()
        for frame in ({"type": "req", "id": "no-method"}, {"type": "req", "id": "no-method", "params": {}}):
            await line.send(frame)
            response = await line.response("no-method", "G-ZF-10")
            coded(response["error"], "a request without a method", "METHOD_NOT_FOUND")


@requirement("G-ZF-12")
async def a_second_chat_takes_the_place_of_the_first(exam: ZenfluxExamination) -> None:
    """A chat on a busy line runs; the one before ends with session_stopped, and others on other lines go on."""
    found = await aborted(exam)
    whole = found.run
    expect.that(not found.is_completed, "a run that was aborted to be cut short", whole.names, "ZF-WS-13")
    expect.that(bool(whole.of("session_stopped")), "session_stopped in an aborted run", whole.names, "ZF-EV-02")
    async with exam.line() as line, exam.line() as other:
        elsewhere = await other.tell("slow")
        first = await line.tell("slow")
        await first.until("content_start")
        second = await line.tell("text", "G-ZF-12")
        await line.caught(first)
        await first.until("session_stopped", owner="G-ZF-12")
        await second.finish()
        await elsewhere.finish()
        ends = [event.data.get("status") for event in elsewhere.of("session_end")]
        expect.that("cancelled" not in ends, "the run on the other line to go on", elsewhere.names)


@requirement("ZF-WS-22")
async def a_busy_line_stays_in_order(exam: ZenfluxExamination) -> None:
    """A chat on a busy line is either refused or runs to its end under a session of its own; the line lives on."""
    async with exam.line() as line:
        first = await line.tell("slow")
        await first.until("content_start")
        response = await line.ask("chat.send", line.params(exam.profile.prompt("text")))
        if response.get("ok") is True:
            run = line.run("the second chat.send")
            await run.until("session_end", "message_stop", owner="ZF-WS-22")
            expect.that(run.session_id != first.session_id, "a session of its own", run.session_id)
        await line.ping()
