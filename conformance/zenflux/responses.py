"""Section responses: what the published implementations add to responses, and how an abort ends a run."""

from typing import Any

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.frames import FILE

WRONG_TYPES: tuple[dict[str, Any], ...] = (
    {"message": 7},
    {"user_id": ["x"]},
    {"conversation_id": 7},
    {"stream": "yes"},
    {"background_tasks": "title_generation"},
    {"files": "a.txt"},
    {"variables": "x"},
)


@requirement("G-ZF-07")
async def the_response_comes_first(exam: ZenfluxExamination) -> None:
    """chat.send is answered before any event, with status "streaming" and the ids that the events then carry."""
    async with exam.line() as line:
        payload = await line.accepted("chat.send", line.params(exam.profile.prompt("text")))
        expect.equal("what came first", "res", line.heard[0])
        expect.equal("status", "streaming", payload.get("status"))
        expect.subset("the payload", ["session_id", "conversation_id", "message_id"], payload)
        while "session_end" not in line.order:
            frame = await line.read()
            if frame["type"] == "event" and frame["event"] == "session_start":
                told = {name: frame["payload"][name] for name in ("session_id", "conversation_id")}
                expect.equal("the ids of the run", {name: payload[name] for name in told}, told)


@requirement("G-ZF-08")
async def errors_have_their_codes(exam: ZenfluxExamination) -> None:
    """VALIDATION_ERROR, METHOD_NOT_FOUND, AGENT_NOT_FOUND and SESSION_NOT_FOUND are told apart in the response."""
    async with exam.line() as line:
        whole = line.params("Hello")
        wrong: list[tuple[str, Any, str]] = [
            *(("chat.send", whole | change, "VALIDATION_ERROR") for change in WRONG_TYPES),
            ("chat.send", {}, "VALIDATION_ERROR"),
            ("chat.send", None, "VALIDATION_ERROR"),
            ("chat.abort", {}, "VALIDATION_ERROR"),
            ("chat.sing", whole, "METHOD_NOT_FOUND"),
            ("chat.send", whole | {"agent_id": exam.stranger()}, "AGENT_NOT_FOUND"),
            ("chat.abort", {"session_id": exam.stranger()}, "SESSION_NOT_FOUND"),
        ]
        for method, params, code in wrong:
            error = await line.refused(method, params, code)
            expect.equal(f"the code for {method} with {expect.show(params)}", code, error["code"])
        await line.ping()
        expect.equal("events after refusals", [], line.unread)


@requirement("G-ZF-09")
async def files_may_stand_for_words(exam: ZenfluxExamination) -> None:
    """An empty message is taken when files come with it, and is a VALIDATION_ERROR when nothing does."""
    async with exam.line() as line:
        await (await line.chat("", files=[FILE])).completed()
        nothing: tuple[dict[str, Any], ...] = ({}, {"files": []})
        for more in nothing:
            error = await line.refused("chat.send", line.params("", **more), "it says nothing")
            expect.equal("the code for an empty message", "VALIDATION_ERROR", error["code"])


@requirement("G-ZF-11")
async def an_abort_closes_what_is_open(exam: ZenfluxExamination) -> None:
    """After chat.abort come content_stop, message_stop, session_stopped and session_end (cancelled), in this order."""
    async with exam.line() as line:
        run = await line.tell("slow")
        await run.until("content_start")
        payload = await line.accepted("chat.abort", {"session_id": run.session_id})
        told = {name: payload.get(name) for name in ("session_id", "status")}
        expect.equal("the payload of chat.abort", {"session_id": run.session_id, "status": "stopped"}, told)
        expect.that("stopped_at" in payload, "stopped_at in the payload of chat.abort", payload)
        await line.caught(run)
        await run.finish()
    ends = ["content_stop", "message_stop", "session_stopped", "session_end"]
    expect.equal("how it ended", ends, [name for name in run.names if name in ends][-4:])
    expect.equal("reason", "user_requested", run.of("session_stopped")[0].data["reason"])
    expect.equal("status", "cancelled", run.events[-1].data["status"])
    reasons = [expect.keyed("usage", note).get("stop_reason") for note in run.notes("usage")]
    expect.that("end_turn" not in reasons, "no message of an aborted run to stop with end_turn", reasons)


@requirement("G-ZF-11")
async def an_abort_can_be_repeated(exam: ZenfluxExamination) -> None:
    """Aborting a run twice, or one that is over, is ok and changes nothing; an unknown session is not ok."""
    async with exam.line() as line:
        run = await line.tell("slow")
        await run.until("content_start")
        names = [await line.request("chat.abort", {"session_id": run.session_id}) for _ in range(2)]
        for name in names:
            expect.that((await line.response(name))["ok"], "chat.abort to be ok, the second time too", names)
        await run.finish()
        done = await (await line.tell("text")).completed()
        for session in (run.session_id, done.session_id):
            await line.accepted("chat.abort", {"session_id": session})
        await line.ping()
        expect.equal("events after the end", [], line.unread)
        await line.refused("chat.abort", {"session_id": exam.stranger()}, "there is no such session")


@requirement("G-ZF-18")
async def without_streaming_a_block_is_one_delta(exam: ZenfluxExamination) -> None:
    """With stream false every block is content_start, at most one content_delta and content_stop."""
    async with exam.line() as line:
        for situation in ("slow", "thinking", "tool"):
            run = await (await line.tell(situation, stream=False)).completed()
            counts = [len(block.deltas) for block in run.blocks()]
            expect.that(max(counts) <= 1, f"one delta for each block of {run.asked}", counts)
            expect.that(bool(run.text), "the text in its delta", run.names)
