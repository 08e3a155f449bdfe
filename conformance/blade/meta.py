"""Section meta: what a tool hands to the host page."""

from collections.abc import Sequence
from typing import Any

from conformance.blade.chat import Chat
from conformance.blade.damaged_members import is_damaged, sound
from conformance.blade.examination import BladeExamination
from conformance.blade.scene import scene
from conformance.blade.snapshot import meta_of
from conformance.kit import expect
from conformance.kit.case import requirement


def handed(chat: Chat, name: str) -> list[Any]:
    """What the chat handed over under this name: in patches and at turn:end, in results or as blocks of their own."""
    ends = [turn.end for turn in chat.turns if turn.end]
    added = [data for turn in chat.turns for data in turn.data("add_content")]
    results = [*chat.results, *(call for end in ends for call in end["tool_calls"])]
    return _found(name, results, [*added, *(block for end in ends for block in end["blocks"])])


def _found(name: str, results: Sequence[Any], blocks: Sequence[Any]) -> list[Any]:
    metas = [meta_of(item.get("result")) for item in results if not is_damaged(item.get("result"))]
    metas += [meta_of(block.get("content")) for block in blocks if block["type"] == "tool_result"]
    whole = [block.get("content") for block in blocks if block["type"] == f"tool_{name}"]
    return [item for item in (*(meta.get(name) for meta in metas), *whole) if item is not None]


async def _handed(exam: BladeExamination, name: str) -> list[Any]:
    """What is handed over in a chat, and what the history has of it."""
    seen = await scene(exam, name)
    return [*promised(seen.chat(), name), *kept(seen.kept(), name)]


def promised(chat: Chat, name: str) -> list[Any]:
    """What is handed over in a chat; the profile promises that there is something."""
    found = handed(chat, name)
    if not found:
        chat.expect_calls()
    expect.that(bool(found), f"_meta.{name} in a result, or a tool_{name} block", chat.results, "BL-META-01")
    return found


def kept(turns: Sequence[Any], name: str) -> list[Any]:
    """What the history has under this name."""
    calls = [call for turn in turns for call in turn["tool_calls"]]
    return _found(name, calls, [block for turn in turns for block in turn["blocks"]])


@requirement("BL-META-01")
async def what_a_tool_hands_over_arrives(exam: BladeExamination) -> None:
    """A bridge action and a card reach the client."""
    for name in ("bridge", "ui"):
        promised((await scene(exam, name)).chat(), name)


@requirement("BL-META-02")
async def a_bridge_is_an_action(exam: BladeExamination) -> None:
    """A bridge has an action and an object as payload."""
    for bridge in await _handed(exam, "bridge"):
        exam.read("bridge", sound(bridge), "_meta.bridge")


@requirement("BL-META-04", "BL-META-06")
async def a_card_has_a_place(exam: BladeExamination) -> None:
    """A card has a target of inline or preview, and height and title of their types."""
    for card in await _handed(exam, "ui"):
        exam.read("ui", sound(card), "_meta.ui")


@requirement("BL-META-05")
async def a_card_has_one_resource(exam: BladeExamination) -> None:
    """A card has HTML or an address, never both and never neither."""
    for card in await _handed(exam, "ui"):
        expect.that(isinstance(sound(card), dict), "a card", card, "BL-META-04")
        given = [name for name in ("resourceHTML", "resourceUri") if card.get(name)]
        expect.equal("how many resources the card has", 1, len(given))
