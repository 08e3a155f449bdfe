"""Section flow: the order of a chat's events, and what adds up to what."""

from conformance.blade import event_order
from conformance.blade.chat import Chat, TurnEvents
from conformance.blade.event_order import in_order
from conformance.blade.examination import BladeExamination
from conformance.blade.scene import messages, pairs, scene
from conformance.blade.snapshot import is_message, text_of
from conformance.blade.turn_sources import Kept, answered_calls, ends_whole, held_by, keeps, matched_results
from conformance.kit import expect
from conformance.kit.case import requirement

RICH = ("ui", "bridge", "plan", "annotate", "ask")


@requirement("BL-FLOW-01")
async def one_message_is_one_loop(exam: BladeExamination) -> None:
    """Each chat:send brings one chat:start first and one chat:end last, and nothing comes after it."""
    for situation in ("text", *exam.profile.having(("plan",))):
        for chat in (await scene(exam, situation)).chats:
            is_one_loop(chat)


def is_one_loop(chat: Chat) -> None:
    """Expect one chat:start first and one chat:end last."""
    event_order.is_one_loop(chat)


@requirement("BL-FLOW-02")
async def a_loop_ends_with_text(exam: BladeExamination) -> None:
    """With a tool or without, a loop that went well ends with the text of a turn whose calls are all finished."""
    for situation in ("text", "tool", "rounds"):
        ends_with_text((await scene(exam, situation)).chat())


def ends_with_text(chat: Chat) -> None:
    """Expect text after the last result, and a result for every call."""
    matched_results(chat)
    answered_calls(chat)
    expect_text_after(chat, "BL-FLOW-02")


def expect_text_after(chat: Chat, owner: str) -> None:
    """Expect text after the last result; if the last turn ends with text that no patch told, patches are missing."""
    is_untold = any(text_of(turn.final) and not turn.streamed() for turn in chat.replies[-1:])
    found = bool(text_after(chat))
    expect.that(found, "text after the last result", chat.shown, "BL-FLOW-04" if is_untold else owner)


def text_after(chat: Chat) -> str:
    """The text that comes after the last result of a tool."""
    told = [body for name, body in chat.events if name == "turn:patch"]
    last = max((at for at, body in enumerate(told) if body["patch_type"] == "tool_result"), default=-1)
    added = [body["data"] for body in told[last + 1 :] if body["patch_type"] == "add_content"]
    return "".join(data["text_delta"] for data in added if data["type"] == "text")


@requirement("BL-FLOW-03")
async def every_turn_has_a_start_and_an_end(exam: BladeExamination) -> None:
    """Each turn is started once and ended once under its turn_id, and root turns follow each other."""
    for situation in ("text", "rounds", *exam.profile.having(("plan", "annotate", "ui"))):
        turns_are_whole((await scene(exam, situation)).chat())


def turns_are_whole(chat: Chat) -> None:
    """Expect every turn to start once and end once."""
    event_order.turns_are_whole(chat)


@requirement("BL-FLOW-04")
async def a_chat_without_tools_is_in_order(exam: BladeExamination) -> None:
    """chat:start, the user's turn, one assistant turn from streaming to completed with its text, chat:end."""
    is_plain((await scene(exam, "text")).chat())


def is_plain(chat: Chat) -> None:
    """Expect the events of a chat without tools, in order."""
    in_order(chat)
    turns = [turn for turn in chat.turns if is_message(turn.about)]
    expect.equal("the roles of the turns", ["user", "assistant"], [turn.role for turn in turns])
    reply = chat.reply
    expect.equal("turn:start", "streaming", (reply.start or {}).get("status"))
    expect.equal("turn:end", "completed", reply.final["status"])
    expect.that(bool(reply.data("add_content")), "patches with the text", chat.shown)
    expect.equal("tool calls", [], chat.calls)
    chat.ended("completed")


@requirement("BL-FLOW-05")
async def deltas_are_the_final_text(exam: BladeExamination) -> None:
    """For every turn of every kind of chat the text deltas, put together, are the final text."""
    for situation in ("text", "thinking", "tool", "burst"):
        seen = await scene(exam, situation)
        for turn, kept in seen.pairs:
            adds_up(turn, kept)


def adds_up(turn: TurnEvents, kept: Kept = None) -> None:
    """Expect the text deltas of a turn to be its final text."""
    if turn.role == "assistant":
        held_by(turn, kept, "text", "deltas")


@requirement("BL-FLOW-06")
async def a_tool_is_announced_and_answered(exam: BladeExamination) -> None:
    """add_tool_call (pending), then tool_result (done, with a duration), then the end of that turn."""
    announces_and_answers((await scene(exam, "tool")).chat())


def announces_and_answers(chat: Chat) -> None:
    """Expect the call, its result and the end of the turn, in this order."""
    matched_results(chat)
    call = chat.call()
    turn = chat.turn_of(call)
    announced = chat.place("turn:patch", patch_type="add_tool_call", id=call["id"])
    expect.equal("the status of a new call", "pending", call["status"])
    answered = chat.place("turn:patch", patch_type="tool_result", tool_call_id=call["id"])
    result = chat.events[answered][1]["data"]
    expect.equal("the status of the result", "done", result["status"])
    expect.that(isinstance(result.get("duration_ms"), int), "duration_ms of the result", result)
    with expect.owned("BL-FLOW-03"):
        ended = chat.place("turn:end", turn_id=turn.turn_id)
    expect.that(announced < answered < ended, "call, result and turn:end in this order", chat.shown)


@requirement("BL-FLOW-07")
async def results_belong_to_calls(exam: BladeExamination) -> None:
    """Every result names a call that was announced before it, and no call has two results."""
    for situation in ("tool", "rounds", "fork"):
        results_are_of_calls((await scene(exam, situation)).chat())


def results_are_of_calls(chat: Chat) -> None:
    """Expect one result for each call, after it."""
    matched_results(chat)
    answered_calls(chat)


@requirement("BL-FLOW-08")
async def text_follows_the_result(exam: BladeExamination) -> None:
    """After the tool's result comes text, in the same turn or in the next, and no other call."""
    goes_on_to_its_text((await scene(exam, "tool")).chat())


def goes_on_to_its_text(chat: Chat) -> None:
    """Expect text after the result, and no further call."""
    matched_results(chat)
    with expect.owned("BL-FLOW-06"):
        answered = chat.place("turn:patch", patch_type="tool_result")
    later = [body for name, body in chat.events[answered + 1 :] if name == "turn:patch"]
    expect_text_after(chat, "BL-FLOW-08")
    expect.that(all(body["patch_type"] != "add_tool_call" for body in later), "no further call", chat.shown)


@requirement("BL-FLOW-09")
async def rounds_follow_each_other(exam: BladeExamination) -> None:
    """With two rounds of tools each call and its result lie in one turn, one round after the other, the reply last."""
    chat = (await scene(exam, "rounds")).chat()
    in_order(chat)
    turns = [turn for turn in chat.replies if turn.calls]
    chat.expect_announced()
    expect.that(sum(len(turn.calls) for turn in turns) >= 2, "two calls, as the profile promises", chat.shown)
    rounds_are_in_order(chat)


def rounds_are_in_order(chat: Chat) -> None:
    """Expect each call and its result in one turn, and the reply in the last."""
    matched_results(chat)
    answered_calls(chat)
    for turn in chat.replies:
        called = sorted(call["id"] for call in turn.calls)
        answered = sorted(item["tool_call_id"] for item in turn.results)
        expect.equal("the calls of a turn that have results", called, answered)
    expect.that(len(chat.replies) >= 2, "a turn for every call of the model", chat.shown)
    expect_text_after(chat, "BL-FLOW-02")


@requirement("BL-FLOW-30")
async def a_turn_end_tells_everything(exam: BladeExamination) -> None:
    """turn:end has the whole text, thought, blocks and calls that the patches of the turn told."""
    for situation in ("thinking", "tool", *exam.profile.having(("ui", "bridge", "plan", "annotate", "fork"))):
        for turn, kept in (await scene(exam, situation)).pairs:
            tells_everything(turn, kept)


def tells_everything(turn: TurnEvents, kept: Kept = None) -> None:
    """Expect turn:end to have all that the patches of the turn told."""
    if turn.role == "assistant":
        ends_whole(turn, kept)


@requirement("BL-FLOW-31")
async def the_history_is_what_was_streamed(exam: BladeExamination) -> None:
    """After every chat:end the messages are the turns streamed so far, in order and unaltered."""
    for situation in ("text", "thinking", "rounds", "fork", "burst", *exam.profile.having(RICH)):
        seen = await scene(exam, situation)
        told: dict[str, TurnEvents] = {}
        for place, chat in enumerate(seen.chats):
            told |= {turn.turn_id: turn for turn in chat.turns if is_message(turn.final)}
            pairs(chat, seen.kept(place))
            wanted = sorted(told, key=lambda name: told[name].final["sequence"])
            kept = [turn["turn_id"] for turn in messages(seen.kept(place)) if turn["turn_id"] in told]
            expect.equal(f"the turns after {situation}", wanted, kept)
        for turn, same in seen.pairs:
            keeps(turn, same)
