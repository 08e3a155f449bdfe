"""Section patch: turn:patch, its envelope and its five kinds of data."""

from typing import Any

from conformance.blade.chat import Body, Chat, TurnEvents
from conformance.blade.examination import BladeExamination
from conformance.blade.scene import Scene, scene
from conformance.blade.snapshot import STREAMED, parent_of
from conformance.blade.turn_sources import Kept, contents, held_by, odd_one
from conformance.kit import expect
from conformance.kit.case import requirement

TYPES = ("add_content", "add_tool_call", "tool_result", "set_status", "set_tool_status")

UNFINISHED = ("pending", "awaiting_answer")


def _patches(chat: Chat) -> list[Body]:
    found = [patch for turn in chat.turns for patch in turn.patches]
    if not found:
        chat.expect_announced()
    expect.that(bool(found), "patches", chat.shown, "BL-FLOW-04")
    return found


@requirement("BL-PATCH-01")
async def envelopes_are_complete(exam: BladeExamination) -> None:
    """Every patch names its session, its turn and that turn's loop, and has a number."""
    for situation in ("fork", *exam.profile.having(("plan", "annotate", "ask", "fork_ask"))):
        seen = await scene(exam, situation)
        for chat in seen.chats:
            has_envelopes(chat, seen.session)


def has_envelopes(chat: Chat, session: str) -> None:
    """Expect every patch to name its session and its turn's loop."""
    turns = {turn.turn_id: turn for turn in chat.turns}
    for patch in _patches(chat):
        expect.equal("session_id", session, patch["session_id"])
        turn = turns[patch["turn_id"]].final
        is_right = parent_of(turn) is not None or turn["loop_id"] == "root"
        expect.that(is_right, "the loop_id of a root turn: root", turn["loop_id"], "BL-TURN-05")
        expect.equal("loop_id", turn["loop_id"], patch["loop_id"])


@requirement("BL-PATCH-02")
async def patches_are_of_five_kinds(exam: BladeExamination) -> None:
    """Text, thinking, tools and questions come as patches of the five kinds."""
    for situation in ("thinking", "tool", "ask"):
        for patch in _patches((await scene(exam, situation)).chat()):
            expect.member("patch_type", TYPES, patch["patch_type"])


@requirement("BL-PATCH-03")
async def added_content_is_a_block(exam: BladeExamination) -> None:
    """Streamed text and thinking have type, content and text_delta."""
    for situation, kinds in (("text", {"text"}), ("thinking", {"text", "thinking"})):
        chat = (await scene(exam, situation)).chat()
        added = [data for turn in chat.replies for data in turn.data("add_content")]
        expect.that(bool(added), "content added by patches", chat.shown, "BL-FLOW-04")
        expect.subset("the kinds of content added", kinds, {data["type"] for data in added})
        for data in added:
            if data["type"] in kinds:
                expect.that(data["content"] is not None and data["text_delta"] is not None, "both", data)


@requirement("BL-PATCH-04")
async def deltas_add_up(exam: BladeExamination) -> None:
    """A long reply comes in several deltas that add up to the text the turn ends with, none said twice."""
    for situation in ("burst", *exam.profile.having(("thinking", "tool"))):
        for turn, kept in (await scene(exam, situation)).pairs:
            adds_up(turn, kept)


def adds_up(turn: TurnEvents, kept: Kept = None) -> None:
    """Expect the deltas of a turn to be its final text and thought."""
    if turn.role == "assistant":
        for kind in STREAMED:
            held_by(turn, kept, kind, "deltas")


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
    for situation in ("text", "thinking", "burst"):
        for turn, kept in (await scene(exam, situation)).pairs:
            is_cumulative(turn, kept)


def is_cumulative(turn: TurnEvents, kept: Kept = None) -> None:
    """Expect every content to be the whole so far; where the deltas are wrong, contents are held to the end only."""
    if turn.role != "assistant":
        return
    for kind in STREAMED:
        odd = odd_one(turn, kept, kind)
        if odd is None:
            cumulative(turn, kind)
        told = [data["content"] for data in turn.data("add_content") if data["type"] == kind]
        if odd in (None, "deltas") and len(told) > 1:
            blocks = [it["content"] for it in turn.final["blocks"] if it["type"] == kind and it["content"]]
            whole = contents(turn, kind)
            if len(blocks) == 1 and whole is not None:
                expect.equal("the last content", blocks[0], whole)


@requirement("BL-PATCH-06")
async def announced_calls_are_complete(exam: BladeExamination) -> None:
    """add_tool_call has id, names, arguments and status, for tools, questions and forks alike."""
    for situation in ("tool", "fork", "ask"):
        call = (await scene(exam, situation)).chat().call()
        for name in ("id", "tool_name", "display_name", "arguments", "status"):
            expect.that(bool(call[name]), f"{name} of a new call", call)


@requirement("BL-PATCH-07")
async def results_are_complete(exam: BladeExamination) -> None:
    """tool_result has the id of an announced call, a result, a final status and a duration."""
    chat = (await scene(exam, "tool")).chat()
    expect.that(bool(chat.results), "a tool_result", chat.shown, "BL-FLOW-06")
    results_are_whole(chat)


def results_are_whole(chat: Chat) -> None:
    """Expect every result to be of an announced call, with a duration."""
    calls = {call["id"] for call in chat.calls}
    for item in chat.results:
        if item["tool_call_id"] not in calls:
            chat.expect_announced()
        expect.member("tool_call_id", calls, item["tool_call_id"])
        took = item.get("duration_ms")
        is_right = isinstance(took, int) or (took is None and item["status"] != "done")  # what was refused took no time
        expect.that(is_right, "duration_ms in whole milliseconds", item)


@requirement("BL-PATCH-08")
async def status_changes_are_true(exam: BladeExamination) -> None:
    """set_status, where it is sent, ends on the status turn:end tells."""
    for situation in ("text", "ask", "fail"):
        for turn in (await scene(exam, situation)).chat().replies:
            status_is_true(turn)


def status_is_true(turn: TurnEvents) -> None:
    """Expect the last set_status, if any, to be what turn:end tells."""
    told = [data["status"] for data in turn.data("set_status")]
    expect.that(told[-1:] in ([], [turn.final["status"]], ["streaming"]), "set_status to be true", told)


@requirement("BL-PATCH-09")
async def call_status_changes_are_true(exam: BladeExamination) -> None:
    """set_tool_status, where it is sent, names an announced call, and the last one is what is shown in the end."""
    for situation in ("tool", "ask", *exam.profile.having(("fork_ask",))):
        seen = await scene(exam, situation)
        changes_are_true(seen)


def changes_are_true(seen: Scene) -> None:
    """Expect every set_tool_status to be of an announced call, and the last to be so in the end."""
    announced: set[str] = set()
    last: dict[str, Any] = {}
    for place, chat in enumerate(seen.chats):
        chat.expect_announced()
        for patch in _patches(chat):
            follow(announced, last, patch["patch_type"], patch["data"])
        shown: dict[str, list[Any]] = {}
        for turn, kept in seen_turns(chat, seen, place):
            for call in (*turn.final["tool_calls"], *kept["tool_calls"]):
                shown.setdefault(call["id"], []).append(call["status"])
        for name, status in last.items():
            is_true = status is None or name not in shown or status in shown[name]
            owner = "BL-FLOW-06" if status in UNFINISHED else None  # its result was to come
            expect.that(is_true, f"the status of {name} to be {status} in the end", shown.get(name), owner)


def seen_turns(chat: Chat, seen: Scene, place: int) -> list[tuple[TurnEvents, Any]]:
    """The turns of a chat that have ended, each with the same turn in the history."""
    known = {turn["turn_id"]: turn for turn in seen.kept(place)}
    return [(turn, known.get(turn.turn_id, turn.final)) for turn in chat.turns if turn.end is not None]


def follow(announced: set[str], last: dict[str, Any], kind: str, data: Any) -> None:
    """Keep the status a call was changed to last, if it was changed by set_tool_status."""
    if kind == "add_tool_call":
        announced.add(data["id"])
    elif kind == "set_tool_status":
        expect.member("the tool_call_id of set_tool_status", announced, data["tool_call_id"])
        last[data["tool_call_id"]] = data["status"]
    elif kind == "tool_result":
        last[data["tool_call_id"]] = None
