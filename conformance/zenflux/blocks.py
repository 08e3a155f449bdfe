"""Section blocks: content_start, content_delta and content_stop, and what blocks add up to."""

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.run import TOOL_USES, Run
from conformance.zenflux.run_contents import plain


async def _everywhere(exam: ZenfluxExamination, situation: str) -> list[Run]:
    """The run on the socket, on the socket without streaming, and over POST /chat."""
    return [
        await exam.told(situation),
        await exam.told(situation, stream=False),
        await exam.streamed(situation),
    ]


@requirement("ZF-EV-24", "ZF-EV-34")
async def blocks_open_and_close_by_index(exam: ZenfluxExamination) -> None:
    """Each content_start has an index and a content_block; each content_stop has the index of the block it closes."""
    for situation in ("text", "thinking", "tool"):
        for run in await _everywhere(exam, situation):
            closes_what_it_opens(run)


def closes_what_it_opens(run: Run) -> None:
    """Expect as many blocks closed as opened, in the same order."""
    opened = [event.data["index"] for event in run.of("content_start")]
    closed = [event.data["index"] for event in run.of("content_stop")]
    expect.equal(f"the blocks closed in {run.asked}", opened, closed)


@requirement("ZF-EV-25")
async def a_text_begins_empty(exam: ZenfluxExamination) -> None:
    """A text block begins as {type: text, text: ""} and then says something."""
    await _expect_empty(exam, "text", "text")


@requirement("ZF-EV-26")
async def a_thought_begins_empty(exam: ZenfluxExamination) -> None:
    """A thinking block begins as {type: thinking, thinking: ""} and then says something."""
    await _expect_empty(exam, "thinking", "thinking")


async def _expect_empty(exam: ZenfluxExamination, situation: str, kind: str) -> None:
    for run in await _everywhere(exam, situation):
        block = run.one(kind)
        expect.equal(f"the {kind} at the start", "", block.start[kind])
        expect.that(bool(block.said), f"deltas for the {kind} of {run.asked}", run.names)


@requirement("ZF-EV-27", "ZF-EV-29")
async def a_call_begins_with_its_name(exam: ZenfluxExamination) -> None:
    """A tool_use (or server_tool_use) block begins with an id of its own, the tool's name and an object as input."""
    runs = await _everywhere(exam, "tool")
    names = [block.start["id"] for run in runs for block in run.blocks(*TOOL_USES)]
    expect.that(len(set(names)) == len(names), "an id for each call", names)
    tools = [run.one(*TOOL_USES).start["name"] for run in runs]
    if exam.profile.repeatable:
        expect.equal("the tool that is called", tools[:1] * len(tools), tools)


@requirement("ZF-EV-28")
async def a_result_names_its_call(exam: ZenfluxExamination) -> None:
    """A tool_result block has the id of the call as tool_use_id, content, and is_error false for one that went well."""
    for run in await _everywhere(exam, "tool"):
        result = run.one("tool_result")
        expect.equal("tool_use_id", run.one(*TOOL_USES).start["id"], result.start["tool_use_id"])
        expect.equal("is_error", False, result.start["is_error"])
        expect.that(bool(result.content), "a result with content", dict(result.start))


@requirement("ZF-EV-30", "ZF-EV-31")
async def deltas_are_plain_strings(exam: ZenfluxExamination) -> None:
    """Each content_delta has the index of an open block and a string, and the strings tell the same everywhere."""
    for situation in ("text", "thinking", "tool", "burst"):
        runs = await _everywhere(exam, situation)
        for run in runs:
            has_known_deltas(run)
            expect.that(bool(run.text), f"text in {run.asked}", run.names)
        if exam.profile.repeatable and situation != "tool":  # what a tool gives may change with time
            told = [[[block.type, block.said] for block in run.blocks("text", "thinking")] for run in runs]
            expect.equal("what was said", [told[0]] * 3, told)


def has_known_deltas(run: Run) -> None:
    """Expect deltas of blocks that began."""
    known = {event.data["index"] for event in run.of("content_start")}
    strange = [event.data["index"] for event in run.of("content_delta") if event.data["index"] not in known]
    expect.equal("deltas of blocks that never began", [], strange)


@requirement("ZF-EV-33")
async def the_deltas_of_a_call_form_json(exam: ZenfluxExamination) -> None:
    """When a tool_use is closed its deltas add up to its input, a JSON object, and the conversation keeps the same."""
    for run in await _everywhere(exam, "tool"):
        call = run.one(*TOOL_USES)
        expect.that(isinstance(call.input, dict), "an object as the input of the call", call.said)
        kept = await exam.history(run.conversation_id)
        blocks = [block for message in kept if isinstance(message["content"], list) for block in message["content"]]
        inputs = [plain(block["input"]) for block in blocks if block["type"] in TOOL_USES]
        expect.that(plain(call.input) in inputs, f"the input {plain(call.input)} in the conversation", inputs)


@requirement("G-ZF-17")
async def streams_are_not_throttled(exam: ZenfluxExamination) -> None:
    """The stream of POST /chat tells a burst in at least twice the deltas of the throttled socket."""
    counts = [len(run.of("content_delta")) for run in (await exam.told("burst"), await exam.streamed("burst"))]
    expect.that(counts[1] >= 2 * counts[0], "far more deltas in the stream than on the socket", counts)
