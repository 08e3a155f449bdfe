"""Section lifecycle: the order of the events of a run, from session_start to session_end."""

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.run import TOOL_USES, Run
from conformance.zenflux.sample_runs import SIGNALS, everything, good, on_a_line


@requirement("ZF-SEQ-01", "ZF-SEQ-02", "ZF-SEQ-03")
async def a_run_opens_in_order(exam: ZenfluxExamination) -> None:
    """The first three events are session_start, conversation_start and message_start, numbered 1, 2 and 3."""
    for run in await good(exam):
        opens_in_order(run)


def opens_in_order(run: Run) -> None:
    """Expect session_start, conversation_start and message_start, numbered."""
    opening = [[event.seq, event.type] for event in run.events[:3]]
    wanted = [[1, "session_start"], [2, "conversation_start"], [3, "message_start"]]
    expect.equal(f"how {run.asked} opens", wanted, opening)
    counts = [len(run.of(name)) for name in ("session_start", "conversation_start")]
    expect.equal("session_start and conversation_start events in one run", [1, 1], counts)


@requirement("ZF-SEQ-04")
async def blocks_come_in_order(exam: ZenfluxExamination) -> None:
    """Thinking is block 0, text block 1, and each block is content_start, content_delta, content_stop."""
    (run,) = await on_a_line(exam, "thinking")
    kinds = [[block.index, block.type] for block in run.messages[0].blocks]
    expect.equal("the first blocks of a reply with thinking", [[0, "thinking"], [1, "text"]], kinds[:2])
    (run,) = await on_a_line(exam, "text")
    names = [name for name in run.names if name.startswith("content")]
    expect.equal("the events of a block", ["content_start", "content_delta", "content_stop"], names)
    expect.equal("the index of the only block", [0], [block.index for block in run.blocks()])


@requirement("ZF-SEQ-04")
async def indexes_are_dense(exam: ZenfluxExamination) -> None:
    """In each message the indexes go up by one, from 0 or from where the message before left off."""
    for run in await good(exam):
        is_dense(run)


def is_dense(run: Run) -> None:
    """Expect indexes that go up by one."""
    following = 0
    for message in run.messages:
        indexes = [block.index for block in message.blocks]
        start = indexes[0] if indexes else 0
        expect.that(start in (0, following), f"the first index to be 0 or {following} in {run.asked}", indexes)
        expect.equal(f"the indexes in {run.asked}", list(range(start, start + len(indexes))), indexes)
        following = start + len(indexes)


@requirement("ZF-SEQ-05")
async def a_message_closes_in_order(exam: ZenfluxExamination) -> None:
    """After the last block of each message come message_delta (at least one) and message_stop."""
    for run in await good(exam):
        closes_in_order(run)


def closes_in_order(run: Run) -> None:
    """Expect message_delta and message_stop at the end of each message."""
    for names in _messages(run):
        ends = [name for name in names if name.startswith(("content", "message"))]
        expect.equal(f"how a message of {run.asked} ends", ["message_delta", "message_stop"], ends[-2:])
        expect.equal("message_stop events in a message", 1, names.count("message_stop"))


def _messages(run: Run) -> list[list[str]]:
    """The types of the events of each message."""
    found: list[list[str]] = []
    for event in run.events:
        if event.type == "message_start":
            found.append([])
        if found:
            found[-1].append(event.type)
    return found


@requirement("ZF-SEQ-06", "ZF-SEQ-07")
async def the_agent_goes_on_after_a_tool(exam: ZenfluxExamination) -> None:
    """After a tool_use the same run goes on by itself: a tool_result for the call, then text, then the end.

    The result may open a second message or follow in the first.
    """
    (run,) = await on_a_line(exam, "tool")
    goes_on_after_a_tool(run)


def goes_on_after_a_tool(run: Run) -> None:
    """Expect a result right after the call, the text last, and the result to name the call."""
    kinds = [block.type for block in run.blocks()]
    call = next((place for place, kind in enumerate(kinds) if kind in TOOL_USES), None)
    expect.that(call is not None, f"a tool_use in {run.asked}", kinds)
    rest = kinds[(call or 0) + 1 :]
    expect.equal("what follows a tool_use", ["tool_result", "text"], [*rest[:1], *rest[-1:]])
    for later in run.messages[1:2]:
        first = [block.type for block in later.blocks[:1]]
        expect.equal("the first block of the second message", ["tool_result"], first)
    result = run.one("tool_result")
    expect.equal("the call the result is for", run.one(*TOOL_USES).start["id"], result.start["tool_use_id"])


@requirement("ZF-SEQ-08")
async def session_end_is_the_last(exam: ZenfluxExamination) -> None:
    """Every run ends with one session_end, with the session of the run, and nothing comes after it.

    A stream may do with message_stop and done, and a run that was stopped or broke with its own signal.
    """
    for run in await everything(exam):
        if run.of("session_end"):
            ends_last(run)


def ends_last(run: Run) -> None:
    """Expect one session_end of its own session, at the end."""
    expect.equal(f"the last event of {run.asked}", "session_end", run.events[-1].type)
    expect.equal("session_end events in one run", 1, len(run.of("session_end")))
    expect.equal("its session", run.session_id, run.events[-1].data["session_id"])


@requirement("ZF-SEQ-09")
async def blocks_do_not_interleave(exam: ZenfluxExamination) -> None:
    """Between content_start and content_stop there are only deltas of the same index; each block is closed in time."""
    for run in await good(exam):
        does_not_interleave(run)


def does_not_interleave(run: Run) -> None:
    """Expect only deltas of one block while it is open."""
    is_open, index = False, -1
    for event in run.events:
        match event.type:
            case "content_start":
                expect.that(not is_open, f"block {index} to be closed before the next in {run.asked}", run.names)
                is_open, index = True, event.data["index"]
            case "content_delta" | "content_stop":
                seen = [is_open, event.data["index"]]
                expect.equal(f"the open block at {event.type} in {run.asked}", [True, index], seen)
                is_open = event.type == "content_delta"
            case "message_start" | "message_delta" | "message_stop" | "session_end":
                expect.that(not is_open, f"block {index} to be closed before {event.type}", run.names)


@requirement("ZF-SEQ-10")
async def every_run_has_its_end_signal(exam: ZenfluxExamination) -> None:
    """A good run says message_stop and session_end, a stopped one session_stopped, a failed one error."""
    async with exam.line() as line:
        run = await (await line.tell("text")).completed()
        expect.subset("the end signals of a good run", ["message_stop", "session_end"], run.names)
        run = await line.tell("slow")
        await run.until("content_start")
        await line.accepted("chat.abort", {"session_id": run.session_id})
        await line.caught(run)
        await run.until("session_stopped")
    async with exam.line() as line:
        await (await line.tell("fail")).until("error")
    run = await exam.streamed("text")
    expect.that(bool(run.of(*SIGNALS)), "an end signal in the stream", run.names)


@requirement("G-ZF-04")
async def rounds_share_their_indexes(exam: ZenfluxExamination) -> None:
    """Over the rounds of one run no index comes twice, and the stream of POST /chat is a single message."""
    (run,) = await on_a_line(exam, "tool")
    indexes = [block.index for block in run.blocks()]
    expect.equal(f"the indexes of {run.asked}", list(range(len(indexes))), indexes)
    for event in run.of("message_start"):
        expect.equal("data.session_id of message_start", run.session_id, event.data.get("session_id"))
    run = await exam.streamed("tool")
    expect.equal("messages in the stream", 1, len(run.of("message_start")))
    expect.equal("ends of messages in the stream", 1, len(run.of("message_stop")))


@requirement("G-ZF-13")
async def a_failed_run_is_closed(exam: ZenfluxExamination) -> None:
    """After error (internal_error, the agent's own) comes session_end with status failed; the conversation goes on."""
    async with exam.line() as line:
        run = await (await line.tell("fail")).finish()
        errors = [event.data["error"]["type"] for event in run.of("error")]
        expect.equal("the types of the errors in the run", ["internal_error"], errors)
        expect.equal("the status at the end", "failed", run.events[-1].data["status"])
        ends = [name for name in run.names if name in ("error", "session_end")]
        expect.equal("the end", ["error", "session_end"], ends)
        await (await line.tell("text", conversation_id=run.conversation_id)).completed()


@requirement("G-ZF-14")
async def a_known_conversation_is_introduced_too(exam: ZenfluxExamination) -> None:
    """Each run in a conversation begins with conversation_start, with the title it has."""
    made = await exam.conversation("A title to be remembered")
    async with exam.line() as line:
        for _ in range(2):
            run = await (await line.tell("text", conversation_id=made["id"])).completed()
            expect.equal("the second event", "conversation_start", run.events[1].type)
            expect.equal("the title", made["title"], run.events[1].data["title"])


@requirement("G-ZF-15")
async def conversation_events_have_their_place(exam: ZenfluxExamination) -> None:
    """conversation_delta comes after message_start; conversation_stop, if sent, just before session_end."""
    for run in await on_a_line(exam, "title", "compact", "text"):
        conversation_events_are_placed(run)


def conversation_events_are_placed(run: Run) -> None:
    """Expect conversation_delta and conversation_stop where they belong."""
    names = [event.type for event in run.events]
    for place in (place for place, name in enumerate(names) if name == "conversation_delta"):
        expect.that("message_start" in names[:place], "conversation_delta after message_start", run.names)
    if "conversation_stop" in names:
        expect.equal("the end", ["conversation_stop", "session_end"], names[-2:])
