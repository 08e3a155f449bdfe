"""Section lifecycle: the order of the events of a run, from session_start to session_end."""

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.run import SIGNALS, TOOL_USES, Run
from conformance.zenflux.run_contents import as_object, fold
from conformance.zenflux.sample_runs import (
    LINE,
    STREAM,
    aborted,
    broken,
    everything,
    good,
    on_a_line,
    told,
)

ERRORS = ("network_error", "timeout_error", "overloaded_error", "internal_error", "validation_error")
OPENING = {"session_start": "ZF-SEQ-01", "conversation_start": "ZF-SEQ-02", "message_start": "ZF-SEQ-03"}


@requirement("ZF-SEQ-01", "ZF-SEQ-02", "ZF-SEQ-03")
async def a_run_opens_in_order(exam: ZenfluxExamination) -> None:
    """The first three events are session_start, conversation_start and message_start, each of the first two once."""
    for run in await good(exam):
        opens_in_order(run)


def opens_in_order(run: Run) -> None:
    """Expect session_start, conversation_start and message_start; what is missing does not displace the others."""
    types = [event.type for event in run.events]
    for name in ("session_start", "conversation_start"):
        expect.that(types.count(name) == 1, f"one {name} in {run.asked}", run.names, OPENING[name])
    for place, (name, owner) in enumerate(OPENING.items()):
        expect.that(types[place : place + 1] == [name], f"{name} as event {place + 1} of {run.asked}", run.names, owner)


@requirement("ZF-SEQ-04")
async def blocks_come_in_order(exam: ZenfluxExamination) -> None:
    """Thinking is block 0, text block 1, and each block is content_start, content_delta, content_stop."""
    for situation in ("thinking", "text"):
        run = await told(exam, situation)
        types = [event.type for event in run.events]
        message = run.events[: types.index("message_stop")] if "message_stop" in types else run.events
        blocks = fold(message)[0].blocks
        kinds = [block.type for block in blocks]
        if situation == "thinking":
            run.one("thinking")
            expect.equal("the first blocks of a reply with thinking", ["thinking", "text"], kinds[:2])
        expect.that(all(block.deltas for block in blocks), f"a delta in each block of {run.asked}", run.names)


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
        expect.that("message_stop" in names, f"each message of {run.asked} to end", run.names, "ZF-EV-23")
        whole = names[: names.index("message_stop") + 1]
        ends = [name for name in whole if name.startswith(("content", "message"))]
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
    """After a tool_use the same run goes on by itself: a tool_result, then text, then the end.

    The result may open a second message or follow in the first.
    """
    goes_on_after_a_tool(await told(exam, "tool"))


def goes_on_after_a_tool(run: Run) -> None:
    """Expect the run to go on after a call: with a result right after the calls, and with the text last."""
    call = run.one(*TOOL_USES)
    kinds = [block.type for block in run.blocks()]
    rest = kinds[run.blocks().index(call) + 1 :]
    while rest and rest[0] in TOOL_USES:
        rest.pop(0)
    expect.that(bool(rest), f"{run.asked} to go on after a tool_use", kinds, "ZF-SEQ-06")
    is_round = [*rest[:1], *rest[-1:]] == ["tool_result", "text"]
    expect.that(is_round, "a tool_result right after a tool_use, and text at the end", kinds, "ZF-SEQ-07")
    for later in run.messages[1:2]:
        first = [block.type for block in later.blocks[:1]]
        expect.that(first == ["tool_result"], "a tool_result first in the second message", first, "ZF-SEQ-07")


@requirement("ZF-SEQ-08")
async def session_end_is_the_last(exam: ZenfluxExamination) -> None:
    """Every run ends with one session_end, with the session of the run, and nothing comes after it.

    A stream may do with message_stop and done, and a run that was stopped or broke with its own signal.
    """
    for run in await everything(exam):
        if run.of("session_end"):
            ends_last(run)


def ends_last(run: Run) -> None:
    """Expect one session_end, at the end."""
    expect.equal(f"the last event of {run.asked}", "session_end", run.events[-1].type)
    expect.equal("session_end events in one run", 1, len(run.of("session_end")))
    expect.equal(f"events after the session_end of {run.asked}", [], run.late)


@requirement("ZF-SEQ-09")
async def blocks_do_not_interleave(exam: ZenfluxExamination) -> None:
    """Between content_start and content_stop there are only deltas of the same index; each block is closed in time."""
    for run in await good(exam):
        does_not_interleave(run)


def does_not_interleave(run: Run) -> None:
    """Expect only deltas while a block is open, and one block at a time."""
    is_open, index = False, -1
    for event in run.events:
        match event.type:
            case "content_start":
                expect.that(not is_open, f"block {index} to be closed before the next in {run.asked}", run.names)
                is_open, index = True, event.data["index"]
            case "content_delta" | "content_stop":
                owner = _stray(run, event.type, event.data["index"])
                expect.that(is_open, f"an open block at {event.type} in {run.asked}", run.names, owner)
                is_own = event.data["index"] == index
                seen = event.data["index"]
                expect.that(is_own, f"{event.type} of the open block {index} in {run.asked}", seen, owner)
                is_open = event.type == "content_delta"
            case "message_start" | "message_delta" | "message_stop" | "session_end":
                expect.that(not is_open, f"block {index} to be closed before {event.type}", run.names)


def _stray(run: Run, name: str, index: int) -> str | None:
    """Whose it is that an index is wrong: a delta's if no block began with it, an end's if the ends are not those of
    the beginnings; if all indexes are right, it is the order that is wrong."""
    starts = [event.data["index"] for event in run.of("content_start")]
    stops = [event.data["index"] for event in run.of("content_stop")]
    if name == "content_delta":
        return "ZF-EV-30" if index not in starts else None
    return "ZF-EV-34" if sorted(starts) != sorted(stops) else None


@requirement("ZF-SEQ-10")
async def every_run_has_its_end_signal(exam: ZenfluxExamination) -> None:
    """A good run, one that was aborted and one that failed each have an end signal, on the socket and in streams."""
    has_an_end(await told(exam, "text"))
    has_an_end(await told(exam, "text", STREAM))
    has_an_end((await aborted(exam)).run)
    has_an_end(await broken(exam))


def has_an_end(run: Run) -> None:
    """Expect any of the signals by which a client sees that a run is over."""
    is_done = any(event.event == "done" for event in run.told)
    expect.that(is_done or bool(run.of(*SIGNALS)), f"an end signal in {run.asked}", run.names)


@requirement("G-ZF-04")
async def rounds_share_their_indexes(exam: ZenfluxExamination) -> None:
    """Over the rounds of one run no index comes twice, and the stream of POST /chat is a single message."""
    run = await told(exam, "tool")
    indexes = [block.index for block in run.blocks()]
    expect.that(len(set(indexes)) == len(indexes), f"each index once in {run.asked}", indexes)
    for event in run.of("message_start"):
        with expect.owned("G-ZF-04" if event.data else "G-ZF-01"):
            expect.equal("data.session_id of message_start", run.session_id, event.data.get("session_id"))
    run = await told(exam, "tool", STREAM)
    expect.that(bool(run.of("message_start")), "a message in the stream", run.names, "ZF-SEQ-03")
    expect.equal("messages in the stream", 1, len(run.of("message_start")))


@requirement("G-ZF-13")
async def a_failed_run_is_closed(exam: ZenfluxExamination) -> None:
    """After error (internal_error, the agent's own) comes session_end with status failed; the conversation goes on."""
    run = await broken(exam)
    expect.that(bool(run.of("error")), f"an error in {run.asked}", run.names, "ZF-EV-35")
    errors = [event.data["error"]["type"] for event in run.of("error")]
    expect.that(set(errors) <= set(ERRORS), f"errors of the types {', '.join(ERRORS)}", errors, "ZF-EV-35")
    expect.equal("the types of the errors in the run", ["internal_error"], errors)
    usual = await told(exam, "text")
    ends = [name for name in run.names if name in ("error", "session_end")]
    with expect.owned("G-ZF-13" if usual.of("session_end") else "ZF-SEQ-08"):
        expect.equal("the end", ["error", "session_end"], ends)
    expect.equal("the status at the end", "failed", run.status)
    async with exam.line() as line:
        await (await line.tell("text", conversation_id=run.conversation_id)).completed()


@requirement("G-ZF-14")
async def a_known_conversation_is_introduced_too(exam: ZenfluxExamination) -> None:
    """Each run in a conversation begins with conversation_start, with the title it has."""
    opens_in_order(await told(exam, "text", LINE))
    made = await exam.conversation("A title to be remembered")
    async with exam.line() as line:
        for _ in range(2):
            run = await (await line.tell("text", conversation_id=made["id"])).completed()
            is_own = run.conversation_id == made["id"]
            expect.that(is_own, "the run in the conversation it was sent to", run.conversation_id, "ZF-WS-07")
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
    expect.that("message_start" in names, f"message_start in {run.asked}", run.names, "ZF-SEQ-03")
    for place in (place for place, name in enumerate(names) if name == "conversation_delta"):
        expect.that("message_start" in names[:place], "conversation_delta after message_start", run.names)
    if "conversation_stop" in names:
        expect.that("session_end" in names, f"session_end in {run.asked}", run.names, "ZF-SEQ-08")
        expect.equal("the end", ["conversation_stop", "session_end"], names[-2:])


def last_reason(run: Run) -> str:
    """Why the last message of a run ended, as it says itself."""
    notes = run.notes("usage")
    expect.that(bool(run.of("message_delta")), f"a message_delta in {run.asked}", run.names, "ZF-SEQ-05")
    expect.that(bool(notes), f"a message_delta `usage` in {run.asked}", run.names, "ZF-EV-15")
    content = as_object(notes[-1], "the content of usage")
    return str(content.get("stop_reason"))
