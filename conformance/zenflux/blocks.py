"""Section blocks: content_start, content_delta and content_stop, and what blocks add up to."""

import math

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.connection import THROTTLE
from conformance.zenflux.event_shapes import BLOCKS
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.run import TOOL_USES, Run
from conformance.zenflux.sample_runs import LINE, STREAM, UNSTREAMED, everywhere, given, told


@requirement("ZF-EV-24", "ZF-EV-34")
async def blocks_open_and_close_by_index(exam: ZenfluxExamination) -> None:
    """Each content_start has an index and a content_block; each content_stop has the index of the block it closes."""
    for run in await everywhere(exam, *given(exam, "text", "thinking", "tool")):
        closes_what_it_opens(run)


def closes_what_it_opens(run: Run) -> None:
    """Expect as many blocks closed as opened, in the same order."""
    opened = [event.data["index"] for event in run.of("content_start")]
    closed = [event.data["index"] for event in run.of("content_stop")]
    expect.that(opened == closed, f"the blocks {opened} to be closed in {run.asked}", closed, "ZF-EV-34")


@requirement("ZF-EV-25")
async def a_text_begins_empty(exam: ZenfluxExamination) -> None:
    """A text block begins as {type: text, text: ""} and then says something."""
    await _expect_empty(exam, "text", "text")


@requirement("ZF-EV-26")
async def a_thought_begins_empty(exam: ZenfluxExamination) -> None:
    """A thinking block begins as {type: thinking, thinking: ""} and then says something."""
    await _expect_empty(exam, "thinking", "thinking")


async def _expect_empty(exam: ZenfluxExamination, situation: str, kind: str) -> None:
    for run in await everywhere(exam, situation):
        block = run.one(kind)
        expect.equal(f"the {kind} at the start", "", block.start[kind])
        expect.that(bool(block.said), f"deltas for the {kind} of {run.asked}", run.names)


@requirement("ZF-EV-27", "ZF-EV-29")
async def a_call_begins_with_its_name(exam: ZenfluxExamination) -> None:
    """A tool_use (or server_tool_use) block begins with an id of its own, the tool's name and an object as input."""
    runs = await everywhere(exam, "tool")
    names = [block.start["id"] for run in runs for block in run.blocks(*TOOL_USES)]
    owner = BLOCKS[runs[0].one(*TOOL_USES).type]
    expect.that(len(set(names)) == len(names), "an id for each call", names, owner)
    tools = [run.one(*TOOL_USES).start["name"] for run in runs]
    if exam.profile.repeatable:
        expect.that(len(set(tools)) == 1, "the same tool to be called each time", tools, owner)


@requirement("ZF-EV-28")
async def a_result_names_its_call(exam: ZenfluxExamination) -> None:
    """A tool_result block has the id of the call as tool_use_id, content, and is_error false for one that went well."""
    for run in await everywhere(exam, "tool"):
        result = run.one("tool_result")
        calls = [block.start["id"] for block in run.blocks(*TOOL_USES)]
        expect.that(result.start["tool_use_id"] in calls, f"tool_use_id, one of {calls}", dict(result.start))
        expect.equal("is_error", False, result.start["is_error"])
        expect.that(bool(result.content), "a result with content", dict(result.start))


@requirement("ZF-EV-30", "ZF-EV-31")
async def deltas_are_plain_strings(exam: ZenfluxExamination) -> None:
    """Each content_delta has the index of an open block and a string, and the strings tell the same everywhere."""
    for situation in given(exam, "text", "thinking", "tool", "burst"):
        runs = await everywhere(exam, situation)
        for run in runs:
            has_known_deltas(run)
            expect.that(bool(run.text), f"text in {run.asked}", run.names, "ZF-EV-31")
        if exam.profile.repeatable and situation != "tool":  # what a tool gives may change with time
            said = [[[block.type, block.said] for block in run.blocks("text", "thinking")] for run in runs]
            expect.that(said == [said[0]] * len(said), "the same to be said every time", said, "ZF-EV-31")


def has_known_deltas(run: Run) -> None:
    """Expect deltas of blocks that began."""
    known = {event.data["index"] for event in run.of("content_start")}
    strange = [event.data["index"] for event in run.of("content_delta") if event.data["index"] not in known]
    expect.that(not strange, "no deltas of blocks that never began", strange, "ZF-EV-30")


@requirement("ZF-EV-33")
async def the_deltas_of_a_call_form_json(exam: ZenfluxExamination) -> None:
    """When a tool_use is closed its deltas add up to its input, a JSON object."""
    for way in (UNSTREAMED, LINE, STREAM):
        call = (await told(exam, "tool", way)).one(*TOOL_USES)
        with expect.owned("ZF-EV-33" if way == UNSTREAMED else "ZF-EV-31"):  # whole, it is right: it is the pieces
            expect.that(isinstance(call.input, dict), "an object as the input of the call", call.said)


@requirement("G-ZF-17")
async def streams_are_not_throttled(exam: ZenfluxExamination) -> None:
    """The stream of POST /chat tells a burst in more deltas than a throttled one could."""
    run = await told(exam, "burst", STREAM)
    most = 2 + math.ceil(run.seconds / THROTTLE)
    counts = [len(block.deltas) for block in run.blocks("text")]
    expect.that(max(counts) > most, f"more than {most} deltas in a block, as throttling would leave", counts)
