"""Section patch: turn:patch, its envelope and its five kinds of data."""

from typing import Any

from conformance.blade.chat import Body, Chat, TurnEvents
from conformance.blade.examination import BladeExamination
from conformance.kit import expect
from conformance.kit.case import requirement

TYPES = ("add_content", "add_tool_call", "tool_result", "set_status", "set_tool_status")


def _patches(chat: Chat) -> list[Body]:
    found = [patch for turn in chat.turns for patch in turn.patches]
    expect.that(bool(found), "patches", chat.shown)
    return found


@requirement("BL-PATCH-01")
async def envelopes_are_complete(exam: BladeExamination) -> None:
    """Every patch names its session, its turn and that turn's loop, and has a number."""
    talk = await exam.open()
    for situation in ("fork", *exam.profile.having(("plan", "annotate", "fork_ask"))):
        has_envelopes(await talk.play(situation), talk.session)


def has_envelopes(chat: Chat, session: str) -> None:
    """Expect every patch to name its session and its turn's loop."""
    turns = {turn.turn_id: turn for turn in chat.turns}
    for patch in _patches(chat):
        expect.equal("session_id", session, patch["session_id"])
        expect.equal("loop_id", turns[patch["turn_id"]].final["loop_id"], patch["loop_id"])


@requirement("BL-PATCH-02")
async def patches_are_of_five_kinds(exam: BladeExamination) -> None:
    """Text, thinking, tools and questions come as patches of the five kinds."""
    talk = await exam.open()
    for situation in ("thinking", "tool", "ask"):
        for patch in _patches(await talk.play(situation)):
            expect.member("patch_type", TYPES, patch["patch_type"])


@requirement("BL-PATCH-03")
async def added_content_is_a_block(exam: BladeExamination) -> None:
    """Streamed text and thinking have type, content and text_delta."""
    talk = await exam.open()
    for situation, kinds in (("text", {"text"}), ("thinking", {"text", "thinking"})):
        chat = await talk.play(situation)
        added = [data for turn in chat.replies for data in turn.data("add_content")]
        expect.subset("the kinds of content added", kinds, {data["type"] for data in added})


@requirement("BL-PATCH-04")
async def deltas_add_up(exam: BladeExamination) -> None:
    """A long reply comes in several deltas that add up to the text the turn ends with, none said twice."""
    chat = await (await exam.open()).play("burst")
    turn = chat.reply
    texts = [block["content"] for block in turn.final["blocks"] if block["type"] == "text"]
    expect.equal("the deltas, put together", "".join(texts), turn.streamed())


def cumulative(turn: TurnEvents, kind: str) -> None:
    """Expect each content to be the whole of its block: what was before and the delta, or a new block's first delta."""
    before = ""
    for data in turn.data("add_content"):
        if data["type"] == kind:
            delta, content = data["text_delta"], data["content"]
            whole = f"{expect.show(before + delta)} (or {expect.show(delta)} for a new block)"
            expect.that(content in (before + delta, delta), f"content to be {whole}", content)
            before = content


@requirement("BL-PATCH-05")
async def content_is_the_whole_so_far(exam: BladeExamination) -> None:
    """The content of every add_content is its block so far, and the last ones make up the final text."""
    talk = await exam.open()
    for situation in ("text", "thinking", "burst"):
        chat = await talk.play(situation)
        for turn in chat.replies:
            is_cumulative(turn)


def is_cumulative(turn: TurnEvents) -> None:
    """Expect every content to be the whole so far."""
    cumulative(turn, "text")
    cumulative(turn, "thinking")
    _expect_last(turn)


def _expect_last(turn: TurnEvents) -> None:
    """The last content of a turn with one text block is that block."""
    texts = [block["content"] for block in turn.final["blocks"] if block["type"] == "text" and block["content"]]
    told = [data["content"] for data in turn.data("add_content") if data["type"] == "text"]
    if len(texts) == 1 and told and len(told) > 1:
        expect.equal("the last content", texts[0], told[-1])


@requirement("BL-PATCH-06")
async def announced_calls_are_complete(exam: BladeExamination) -> None:
    """add_tool_call has id, names, arguments and status, for tools, questions and forks alike."""
    talk = await exam.open()
    for situation in ("tool", "fork", "ask"):
        call = (await talk.play(situation)).call()
        expect.that(isinstance(expect.parsed(call["arguments"], "arguments"), dict), "arguments to be an object", call)


@requirement("BL-PATCH-07")
async def results_are_complete(exam: BladeExamination) -> None:
    """tool_result has the id of an announced call, a result, a final status and a duration."""
    chat = await (await exam.open()).play("tool")
    expect.that(bool(chat.results), "a tool_result", chat.shown)
    results_are_whole(chat)


def results_are_whole(chat: Chat) -> None:
    """Expect every result to be of an announced call, with a final status and a duration."""
    calls = {call["id"] for call in chat.calls}
    for item in chat.results:
        expect.member("tool_call_id", calls, item["tool_call_id"])
        expect.member("status", ("done", "error", "cancelled"), item["status"])
        took = item.get("duration_ms")
        is_right = isinstance(took, int) or (took is None and item["status"] != "done")  # what was refused took no time
        expect.that(is_right, "duration_ms in whole milliseconds", item)


@requirement("BL-PATCH-08")
async def status_changes_are_true(exam: BladeExamination) -> None:
    """set_status, where it is sent, ends on the status turn:end tells."""
    for situation in ("text", "ask", "fail"):
        for turn in (await (await exam.open()).play(situation)).replies:
            status_is_true(turn)


def status_is_true(turn: TurnEvents) -> None:
    """Expect the last set_status, if any, to be what turn:end tells."""
    told = [data["status"] for data in turn.data("set_status")]
    expect.that(told[-1:] in ([], [turn.final["status"]], ["streaming"]), "set_status to be true", told)


@requirement("BL-PATCH-09")
async def call_status_changes_are_true(exam: BladeExamination) -> None:
    """set_tool_status, where it is sent, names an announced call, and the last one is what the history shows."""
    talk = await exam.open()
    told: dict[str, str | None] = {}
    chats = [await talk.play("tool")]
    for situation in ("ask", *exam.profile.having(("fork_ask",))):
        chats += [asked := await talk.play(situation), await talk.answer(asked.question())]
    for patch in (patch for chat in chats for patch in _patches(chat)):
        _follow(told, patch["patch_type"], patch["data"])
    kept = {call["id"]: call["status"] for turn in await talk.messages() for call in turn["tool_calls"]}
    for name, status in told.items():
        expect.that(status in (None, kept.get(name)), f"the status of {name} in the history to be {status}", kept)


def _follow(told: dict[str, str | None], kind: str, data: Any) -> None:
    """Keep the status every announced call was changed to."""
    if kind == "add_tool_call":
        told[data["id"]] = None
    elif kind in ("tool_result", "set_tool_status"):
        expect.member(f"the tool_call_id of {kind}", told, data["tool_call_id"])
        told[data["tool_call_id"]] = data["status"]
