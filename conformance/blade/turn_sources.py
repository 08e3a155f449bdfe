"""The sources of a turn (patches, turn:end, history) compared: if they differ, which source disagrees with the others.

Of three that speak of one thing, the one that differs from the other two has it wrong, and its requirement is broken.
"""

from collections.abc import Mapping
from typing import Any

from conformance.blade.chat import Body, Chat, TurnEvents
from conformance.blade.snapshot import STREAMED, read, text_of
from conformance.kit import expect

Kept = Mapping[str, Any] | None
"""The same turn in the history, if it is known."""
NAMED = ("tool_name", "display_name")


def contents(turn: TurnEvents, kind: str) -> str | None:
    """The text that `content` of the patches adds up to, as far as the blocks at the end tell where each begins."""
    told = [data["content"] for data in turn.data("add_content") if data["type"] == kind]
    blocks = [block for block in turn.final["blocks"] if block["type"] == kind and block.get("content")]
    if len(blocks) == 1:
        return told[-1] if told else None
    grown: list[str] = []
    for content in told:
        if grown and content.startswith(grown[-1]):
            grown[-1] = content
        else:
            grown.append(content)
    return "".join(grown) if len(grown) == len(blocks) else None


def odd_one(turn: TurnEvents, kept: Kept, kind: str = "text") -> str | None:
    """Who has the text (or thought) of a turn wrong: `deltas`, `end`, `blocks` (at the end and in the history alike),
    `history`, or nobody."""
    if not turn.patches and kind == "text" and text_of(turn.final):
        expect.fail("patches with the text of the turn", turn.turn_id, "BL-FLOW-04")
    deltas, end = turn.streamed(kind), text_of(turn.final, kind)
    history = text_of(kept, kind) if kept is not None else end
    if deltas == end:
        return None if end == history else "history"
    if deltas == history:
        return "end" if kept is not None else "deltas"
    return "blocks" if contents(turn, kind) == deltas else "deltas"


def held_by(turn: TurnEvents, kept: Kept, kind: str, who: str) -> None:
    """Expect that this witness does not stand against the others."""
    if odd_one(turn, kept, kind) == who:
        told = {"deltas": turn.streamed(kind), "turn:end": text_of(turn.final, kind)}
        told |= {"history": text_of(kept, kind)} if kept is not None else {}
        expect.fail(f"the {kind} of {turn.turn_id} to be the same in deltas, turn:end and history", told)


def folded(turn: TurnEvents) -> list[Body]:
    """The calls of a turn after all its patches."""
    calls = {call["id"]: dict(call) for call in turn.calls}
    for item in (*turn.results, *turn.data("set_tool_status")):
        if item["tool_call_id"] in calls:
            calls[item["tool_call_id"]]["status"] = item["status"]
    return list(calls.values())


def ends_whole(turn: TurnEvents, kept: Kept = None) -> None:
    """Expect turn:end to have all that the patches of the turn told."""
    for kind in STREAMED:
        held_by(turn, kept, kind, "end")
    for data in {data["type"]: data for data in turn.data("add_content") if data["type"] not in STREAMED}.values():
        shown = [block.get("content") for block in turn.final["blocks"] if block["type"] == data["type"]]
        said = data.get("content")
        expect.that(said in shown or not said, f"{data['type']} as it was told last: {expect.show(said)}", shown)
    told, ended = folded(turn), turn.final["tool_calls"]
    turn.expect_announced()
    expect.equal("the calls of turn:end", [call["id"] for call in told], [call["id"] for call in ended])
    for call, shown_call in zip(told, ended, strict=True):
        for name in NAMED:
            expect.equal(f"the {name} of {call['id']} at turn:end", call[name], shown_call[name])
        expect.equal(f"the arguments of {call['id']}", read(call["arguments"]), read(shown_call["arguments"]))


def keeps(turn: TurnEvents, kept: Mapping[str, Any]) -> None:
    """Expect the history to have the turn as turn:end told it: its blocks and calls; the rest has owners of its own."""
    with expect.owned("BL-FLOW-30"):
        if turn.start is not None and turn.role == "assistant":
            ends_whole(turn, kept)
    for kind in STREAMED:
        if turn.patches and turn.role == "assistant":
            held_by(turn, kept, kind, "history")
        else:
            expect.equal(f"the {kind} of {turn.turn_id}", text_of(turn.final, kind), text_of(kept, kind))
    expect.equal(f"the blocks of {turn.turn_id}", _others(turn.final), _others(kept))
    expect.equal(f"the calls of {turn.turn_id}", _calls(turn.final), _calls(kept))


def lacks_nothing(turn: TurnEvents, kept: Mapping[str, Any]) -> None:
    """Expect the history to have a block and a call for every one that turn:end told."""
    for kind in STREAMED:
        lost = bool(text_of(turn.final, kind)) and not text_of(kept, kind)
        expect.that(not lost, f"the {kind} of {turn.turn_id} in the history", kept["blocks"])
    for name, told, seen in (
        ("blocks", _others(turn.final), _others(kept)),
        ("calls", _calls(turn.final), _calls(kept)),
    ):
        expect.that(len(seen) >= len(told), f"all {name} of {turn.turn_id} in the history", seen)


def _others(turn: Mapping[str, Any]) -> list[list[Any]]:
    return [[it["type"], it.get("content")] for it in turn["blocks"] if it["type"] not in STREAMED]


def _calls(turn: Mapping[str, Any]) -> list[list[Any]]:
    told = [[call["id"], call["tool_name"], call["display_name"], call["arguments"]] for call in turn["tool_calls"]]
    return [[*names, read(arguments)] for *names, arguments in told]


def distinct_calls(chat: Chat) -> None:
    """Expect every call of a chat to have an id of its own."""
    ids = [call["id"] for call in chat.calls]
    expect.that(len(ids) == len(set(ids)), "every call to have an id of its own", ids, "BL-TC-02")


def answered_calls(chat: Chat) -> None:
    """Expect a result for every call of a chat that ends without a question."""
    open_calls = {call["id"] for call in chat.calls} - {item["tool_call_id"] for item in chat.results}
    expect.that(not open_calls, "a result for every call", sorted(open_calls), "BL-FLOW-06")


def matched_results(chat: Chat) -> None:
    """Expect one result for each call that is not a question, after the call; a question's may come later."""
    distinct_calls(chat)
    calls = {call["id"]: call["tool_name"] for call in chat.calls}
    for item in chat.results:
        if item["tool_call_id"] not in calls:
            chat.expect_announced()
        expect.that(item["tool_call_id"] in calls, f"one of the calls {sorted(calls)}", item, "BL-FLOW-07")
    results = [item["tool_call_id"] for item in chat.results]
    expect.that(len(results) == len(set(results)), "one result for each call", results, "BL-FLOW-07")
    for name in results:
        before = chat.place("turn:patch", patch_type="add_tool_call", id=name)
        after = chat.place("turn:patch", patch_type="tool_result", tool_call_id=name)
        expect.that(before < after, "the call before its result", chat.shown, "BL-FLOW-07")
