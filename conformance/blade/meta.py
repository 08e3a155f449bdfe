"""Section meta: what a tool hands to the host page."""

from typing import Any

from conformance.blade.chat import Chat
from conformance.blade.examination import BladeExamination
from conformance.blade.snapshot import meta_of
from conformance.kit import expect
from conformance.kit.case import requirement


def handed(chat: Chat, name: str) -> list[Any]:
    """What the chat handed over under this name: in results, or as blocks of their own."""
    results = [meta_of(item["result"]).get(name) for item in chat.results]
    blocks = [
        block.get("content")
        for turn in chat.turns
        if turn.end
        for block in turn.end["blocks"]
        if block["type"] == f"tool_{name}"
    ]
    return [item for item in (*results, *blocks) if item is not None]


async def _handed(exam: BladeExamination, name: str) -> list[Any]:
    chat = await (await exam.open()).play(name)
    found = handed(chat, name)
    expect.that(bool(found), f"_meta.{name} in a result, or a tool_{name} block", chat.results)
    return found


@requirement("BL-META-01")
async def what_a_tool_hands_over_arrives(exam: BladeExamination) -> None:
    """A bridge action and a card reach the client, and both are in the history as well."""
    for name in ("bridge", "ui"):
        await _handed(exam, name)
        talk = await exam.open()
        chat = await talk.play(name)
        calls = [call for turn in await talk.messages() for call in turn["tool_calls"]]
        kept = [meta_of(call.get("result")).get(name) for call in calls]
        blocks = [block for turn in await talk.messages() for block in turn["blocks"]]
        kept += [block["content"] for block in blocks if block["type"] == f"tool_{name}"]
        for item in handed(chat, name):
            expect.that(item in kept, f"what was handed over as {name} in the history", kept)


@requirement("BL-META-02")
async def a_bridge_is_an_action(exam: BladeExamination) -> None:
    """A bridge has an action and an object as payload."""
    for bridge in await _handed(exam, "bridge"):
        exam.fit("bridge", bridge, "_meta.bridge")


@requirement("BL-META-04", "BL-META-06")
async def a_card_has_a_place(exam: BladeExamination) -> None:
    """A card has a target of inline or preview, and height and title of their types."""
    for card in await _handed(exam, "ui"):
        exam.fit("ui", card, "_meta.ui")


@requirement("BL-META-05")
async def a_card_has_one_resource(exam: BladeExamination) -> None:
    """A card has HTML or an address, never both and never neither."""
    for card in await _handed(exam, "ui"):
        given = [name for name in ("resourceHTML", "resourceUri") if card.get(name)]
        expect.equal("how many resources the card has", 1, len(given))
