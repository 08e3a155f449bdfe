"""Section block: what a turn is made of."""

from typing import Any

from conformance.blade.damaged_members import sound
from conformance.blade.examination import BladeExamination
from conformance.blade.scene import scene
from conformance.blade.snapshot import text_of
from conformance.blade.turn_sources import held_by
from conformance.kit import expect
from conformance.kit.case import Case, requirement

TYPES = frozenset(
    [
        "text",
        "thinking",
        "tool_use",
        "tool_result",
        "tool_ui",
        "tool_bridge",
        "system_notification",
        "mode_change",
        "planning_enter",
        "planning_exit",
        "plan_status",
        "ask_user_answer",
    ]
)


async def _blocks(exam: BladeExamination, situation: str) -> list[Any]:
    """The blocks of a situation, as turn:end tells them, as patches tell them, and as the history keeps them."""
    seen = await scene(exam, situation)
    ends = [block for turn in seen.turns if turn.end for block in turn.end["blocks"]]
    patches = [data for turn in seen.turns for data in turn.data("add_content")]
    return ends + patches + [block for turn in seen.kept() for block in turn["blocks"]]


@requirement("BL-BLK-01", "BL-BLK-02")
async def blocks_have_a_known_type(exam: BladeExamination) -> None:
    """Every block has one of the twelve types, content, and strings (or nothing) for its tool."""
    for situation in ("text", "tool"):
        for block in await _blocks(exam, situation):
            with expect.owned("BL-BLK-02"):
                expect.member("the type of a block", TYPES, sound(block["type"]))
            for name in ("tool_call_id", "tool_name", "display_name"):
                is_right = isinstance(sound(block.get(name)), (str, type(None)))
                expect.that(is_right, f"{name}: a string or null", block, "BL-BLK-01")


def _is_text(block: Any) -> bool:
    return isinstance(block.get("content"), str)


def _is_object(block: Any) -> bool:
    return isinstance(block.get("content"), dict)


def _is_empty(block: Any) -> bool:
    return block.get("content") in (None, "", {})


def _has_content(block: Any) -> bool:
    return "content" in block


RULES = (
    ("BL-BLK-03", "text", "text", _is_text, "a string", True),
    ("BL-BLK-04", "thinking", "thinking", _is_text, "a string", True),
    ("BL-BLK-05", "tool_use", "tool", _is_object, "an object", False),
    ("BL-BLK-06", "tool_result", "tool", _has_content, "there", False),
    ("BL-BLK-07", "tool_ui", "ui", _is_object, "an object", False),
    ("BL-BLK-08", "tool_bridge", "bridge", _is_object, "an object", False),
    ("BL-BLK-09", "system_notification", "annotate", _is_text, "a string", False),
    ("BL-BLK-10", "mode_change", "plan", _is_object, "an object", False),
    ("BL-BLK-11", "planning_enter", "plan", _is_empty, "empty", False),
    ("BL-BLK-11", "planning_exit", "plan", _is_empty, "empty", False),
    ("BL-BLK-12", "plan_status", "plan", _is_object, "an object", False),
    ("BL-BLK-13", "ask_user_answer", "ask", _is_object, "an object", False),
)


def _case(name: str, kind: str, situation: str, fits: Any, what: str, needed: bool) -> Case:
    async def check(exam: BladeExamination) -> None:
        found = [block for block in await _blocks(exam, situation) if block["type"] == kind]
        expect.that(bool(found) or not needed, f"a block of the type {kind}", found)
        if not found:
            exam.http.transcript.remark(f"no block of the type {kind} was shown, which a server is free to do")
        for block in found:
            sound(block.get("content"))
            expect.that(fits(block), f"the content of a {kind} block to be {what}", block)

    check.__name__ = f"{kind}_blocks_have_their_content"
    check.__doc__ = f"In events and history the content of every {kind} block is {what}."
    return requirement(name)(check)


CONTENTS = tuple(_case(*rule) for rule in RULES)


@requirement("BL-BLK-14")
async def text_blocks_are_the_text(exam: BladeExamination) -> None:
    """The text blocks of every turn, put together, are what was streamed."""
    for situation in ("text", "tool", "burst"):
        await _expect_whole(exam, situation, "text")


@requirement("BL-BLK-14")
async def a_users_words_are_its_text(exam: BladeExamination) -> None:
    """The text of a user's turn is what was sent, to the letter, in its turn:end and in the history."""
    talk = await exam.open()
    words = f'  {exam.profile.prompt("text")}  \n\t«中文» "quoted" \\ 😀 '
    chat = await talk.say(words)
    told = [turn.final for turn in chat.users]
    for turn in told:
        expect.equal("the text of the user's turn", words, text_of(turn))
    for turn in (turn for turn in await talk.messages() if turn["role"] == "user"):
        is_kept = text_of(turn) == words
        expect.that(is_kept, f"the user's words in the history: {words}", text_of(turn), "BL-FLOW-31" if told else None)


@requirement("BL-BLK-15")
async def thinking_blocks_are_the_thought(exam: BladeExamination) -> None:
    """The thinking blocks of every turn, put together, are what was streamed, and hold nothing of the text."""
    await _expect_whole(exam, "thinking", "thinking")


async def _expect_whole(exam: BladeExamination, situation: str, kind: str) -> None:
    for turn, kept in (await scene(exam, situation)).pairs:
        if turn.role == "assistant":
            held_by(turn, kept, kind, "blocks")
