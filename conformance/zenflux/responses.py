"""Section responses: what the published implementations add to responses, and how an abort ends a run."""

from typing import Any

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.frames import FILE
from conformance.zenflux.run import Run
from conformance.zenflux.sample_runs import UNSTREAMED, aborted, given, told

CODES = ("VALIDATION_ERROR", "METHOD_NOT_FOUND", "AGENT_NOT_FOUND", "SESSION_NOT_FOUND", "INTERNAL_ERROR")
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
        response = await line.accepted("chat.send", line.params(exam.profile.prompt("text")))
        is_first = line.heard[0] == "res"
        payload = payload_of(response)
        run = await line.run("the chat").finish()
    expect.that(is_first, "the response before any event", line.heard)
    expect.equal("status", "streaming", payload.get("status"))
    expect.subset("the payload", ["session_id", "conversation_id", "message_id"], payload)
    said = {"session_id": run.session_id, "conversation_id": run.conversation_id}
    expect.equal("the ids of the run", {name: payload[name] for name in said}, said)


def payload_of(response: dict[str, Any]) -> dict[str, Any]:
    """The payload of a response that is ok."""
    payload = response.get("payload")
    expect.that(isinstance(payload, dict), "a payload in a response that is ok", response, "ZF-WS-14")
    return dict(payload or {})


def coded(error: Any, what: str, code: str) -> None:
    """Expect the code of an error; one that nobody knows is charged to the list of codes."""
    told = error["code"]
    expect.that(told in CODES, f"one of the five codes for {what}", error, "G-ZF-08")
    expect.equal(f"the code for {what}", code, told)


@requirement("G-ZF-08")
async def errors_have_their_codes(exam: ZenfluxExamination) -> None:
    """VALIDATION_ERROR, METHOD_NOT_FOUND, AGENT_NOT_FOUND and SESSION_NOT_FOUND are told apart in the response."""
    async with exam.line() as line:
        whole = line.params("Hello")
        wrong: list[tuple[str, Any, str, str | None]] = [
            *(("chat.send", whole | change, "VALIDATION_ERROR", None) for change in WRONG_TYPES),
            ("chat.send", {}, "VALIDATION_ERROR", "ZF-WS-05"),
            ("chat.send", None, "VALIDATION_ERROR", "ZF-WS-05"),
            ("chat.abort", {}, "VALIDATION_ERROR", "ZF-WS-13"),
            ("chat.sing", whole, "METHOD_NOT_FOUND", "ZF-WS-04"),
            ("chat.send", whole | {"agent_id": exam.stranger()}, "AGENT_NOT_FOUND", "ZF-WS-08"),
            ("chat.abort", {"session_id": exam.stranger()}, "SESSION_NOT_FOUND", "G-ZF-11"),
        ]
        for method, params, code, owner in wrong:
            error = await line.refused(method, params, code, owner)
            coded(error, f"{method} with {expect.show(params)}", code)
        await line.expect_silence("G-ZF-08")


@requirement("G-ZF-09")
async def files_may_stand_for_words(exam: ZenfluxExamination) -> None:
    """An empty message is taken when files come with it, and is refused when nothing does."""
    async with exam.line() as line:
        await (await line.tell("text", "ZF-WS-11", files=[FILE])).finish()
        await (await line.chat("", "G-ZF-09", files=[FILE])).finish()
        nothing: tuple[dict[str, Any], ...] = ({}, {"files": []})
        for more in nothing:
            await line.refused("chat.send", line.params("", **more), "it says nothing")


@requirement("G-ZF-11")
async def an_abort_closes_what_is_open(exam: ZenfluxExamination) -> None:
    """After chat.abort come content_stop, message_stop, session_stopped and session_end (cancelled), in this order."""
    found = await aborted(exam)
    run = found.run
    expect.that(not found.is_completed, "a run that was aborted to be cut short", run.names, "ZF-WS-13")
    expect.that(bool(run.of("session_stopped")), "session_stopped in an aborted run", run.names, "ZF-EV-02")
    payload = payload_of(found.responses[0])
    said = {name: payload.get(name) for name in ("session_id", "status")}
    expect.equal("the payload of chat.abort", {"session_id": run.session_id, "status": "stopped"}, said)
    expect.that("stopped_at" in payload, "stopped_at in the payload of chat.abort", payload)
    ends = ["content_stop", "message_stop", "session_stopped", "session_end"]
    usual = await told(exam, "text")
    expect.that(bool(run.of("session_end")), "session_end after session_stopped", run.names, whose_end(usual))
    expect.that(bool(usual.of("message_stop")), "message_stop in a run", usual.names, "ZF-EV-23")
    expect.equal("how it ended", ends, [name for name in run.names if name in ends][-4:])
    expect.equal("status", "cancelled", run.status)
    reasons = [expect.keyed("usage", note).get("stop_reason") for note in run.notes("usage")]
    expect.that("end_turn" not in reasons, "no message of an aborted run to stop with end_turn", reasons)


def whose_end(run: Run) -> str | None:
    """Whose a missing session_end is: if good runs have none either, it is not the abort's."""
    return None if run.of("session_end") else "ZF-SEQ-08"


@requirement("G-ZF-11")
async def an_abort_can_be_repeated(exam: ZenfluxExamination) -> None:
    """Aborting a run twice, or one that is over, is ok and changes nothing; an unknown session is not ok."""
    found = await aborted(exam)
    is_ok = all(response.get("ok") is True for response in found.responses)
    expect.that(is_ok, "chat.abort to be ok, the second time too", found.responses)
    done = await told(exam, "text")
    async with exam.line() as line:
        for session in (found.run.session_id, done.session_id):
            await line.accepted("chat.abort", {"session_id": session}, "G-ZF-11")
        await line.expect_silence("G-ZF-11")
        await line.refused("chat.abort", {"session_id": exam.stranger()}, "there is no such session")


@requirement("G-ZF-18")
async def without_streaming_a_block_is_one_delta(exam: ZenfluxExamination) -> None:
    """With stream false every block is content_start, at most one content_delta and content_stop."""
    for situation in given(exam, "slow", "thinking", "tool"):
        run = await told(exam, situation, UNSTREAMED)
        counts = [len(block.deltas) for block in run.blocks()]
        expect.that(max(counts, default=0) <= 1, f"one delta for each block of {run.asked}", counts)
        expect.that(bool(run.text), "the text in its delta", run.names)
