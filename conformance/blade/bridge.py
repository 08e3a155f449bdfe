"""Section bridge: actions for the host page are delivered once."""

from typing import Any

from conformance.blade.examination import BladeExamination
from conformance.blade.meta import promised
from conformance.kit import expect
from conformance.kit.case import requirement


def _once(blocks: list[Any], where: str) -> None:
    calls = [block.get("tool_call_id") for block in blocks if block["type"] == "tool_bridge"]
    expect.equal(f"bridge blocks per call, {where}", len(set(calls)), len(calls))


@requirement("BL-BR-02")
async def a_bridge_action_is_delivered_once(exam: BladeExamination) -> None:
    """Per call there is one action in the stream, in turn:end and in the history, and after reconnecting no more."""
    talk = await exam.open()
    chat = await talk.play("bridge")
    promised(chat, "bridge")
    with expect.owned("BL-FLOW-07"):
        results = [item["tool_call_id"] for item in chat.results]
        expect.equal("results per call", len(set(results)), len(results))
    for turn in chat.turns:
        _once(turn.data("add_content"), "in patches")
        _once(turn.final["blocks"], "in turn:end")
    _once([block for turn in await talk.messages() for block in turn["blocks"]], "in the history")
    other = await exam.another(talk)
    later = await other.play("text")
    told = [body for name, body in later.events if name == "turn:patch"]
    again = [it for it in told if it["patch_type"] == "add_content" and it["data"]["type"] == "tool_bridge"]
    expect.equal("bridge actions heard after reconnecting", [], again)
