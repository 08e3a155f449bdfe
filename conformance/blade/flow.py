"""Section flow: the order of a chat's events, and what adds up to what."""

from conformance.blade.chat import Body, Chat, TurnEvents
from conformance.blade.examination import BladeExamination
from conformance.blade.order import in_order
from conformance.blade.snapshot import STREAMED, is_message, plain, plain_call, text_of
from conformance.kit import expect
from conformance.kit.case import requirement


@requirement("BL-FLOW-01")
async def one_message_is_one_loop(exam: BladeExamination) -> None:
    """Each chat:send brings one chat:start first and one chat:end last, and nothing comes after it."""
    talk = await exam.open()
    chats = [await talk.play("text") for _ in range(2)]
    for chat in chats:
        is_one_loop(chat)


def is_one_loop(chat: Chat) -> None:
    """Expect one chat:start first, one chat:end last, and one turn of the user."""
    names = [name for name, _ in chat.events]
    ends = [names[0], names[-1], names.count("chat:start"), names.count("chat:end")]
    expect.equal("first and last event, and how often each", ["chat:start", "chat:end", 1, 1], ends)
    expect.equal("the turns of the user", 1, len(chat.users))


@requirement("BL-FLOW-02")
async def a_loop_ends_with_text(exam: BladeExamination) -> None:
    """With a tool or without, a loop that went well ends with the text of a turn whose calls are all finished."""
    talk = await exam.open()
    for situation in ("text", "tool", "rounds"):
        chat = (await talk.play(situation)).ended("completed")
        ends_with_text(chat)


def ends_with_text(chat: Chat) -> None:
    """Expect text after the last result, and a result for every call."""
    open_calls = {call["id"] for call in chat.calls} - {item["tool_call_id"] for item in chat.results}
    expect.equal("calls without a result", set(), open_calls)
    told = [body["data"] for name, body in chat.events if name == "turn:patch"]
    last = max((place for place, data in enumerate(told) if "tool_call_id" in data), default=-1)
    said = "".join(data.get("text_delta") or "" for data in told[last + 1 :])
    expect.that(bool(said) and bool(chat.text), "text after the last result, in the last turn", chat.shown)


@requirement("BL-FLOW-03")
async def every_turn_has_a_start_and_an_end(exam: BladeExamination) -> None:
    """Each turn is started once and ended once under its turn_id, with its patches between."""
    talk = await exam.open()
    for situation in ("text", "rounds", *exam.profile.having(("plan", "annotate", "ui")), "text"):
        chat = await talk.play(situation)
        turns_are_whole(chat)


def turns_are_whole(chat: Chat) -> None:
    """Expect every turn to start once and end once, its patches between."""
    for turn in chat.turns:
        marks = [name for name, body in chat.events if body.get("turn_id") == turn.turn_id]
        between = ["turn:patch"] * (len(marks) - 2)
        expect.equal(f"the events of {turn.turn_id}", ["turn:start", *between, "turn:end"], marks)


@requirement("BL-FLOW-04")
async def a_chat_without_tools_is_in_order(exam: BladeExamination) -> None:
    """chat:start, the user's turn, one assistant turn from streaming to completed with its text, chat:end."""
    chat = await (await exam.open()).play("text")
    is_plain(chat)


def is_plain(chat: Chat) -> None:
    """Expect the events of a chat without tools, in order."""
    in_order(chat)
    turns = [turn for turn in chat.turns if is_message(turn.about)]
    expect.equal("the roles of the turns", ["user", "assistant"], [turn.about["role"] for turn in turns])
    reply = chat.reply
    expect.equal("turn:start", "streaming", (reply.start or {}).get("status"))
    expect.equal("turn:end", "completed", reply.final["status"])
    expect.that(bool(reply.streamed()), "text deltas", chat.shown)
    expect.equal("tool calls", [], chat.calls)
    chat.ended("completed")


@requirement("BL-FLOW-05")
async def deltas_are_the_final_text(exam: BladeExamination) -> None:
    """For every turn of every kind of chat the text deltas, put together, are the final text."""
    talk = await exam.open()
    for situation in ("text", "thinking", "tool", "slow"):
        chat = await talk.play(situation)
        expect.that(bool(chat.text), "a text", chat.shown)
        adds_up(chat)


def adds_up(chat: Chat) -> None:
    """Expect the deltas of every turn to be its final text."""
    for turn in (*chat.replies, *chat.children):
        expect.equal(f"the final text of {turn.turn_id}", turn.streamed(), text_of(turn.final))


@requirement("BL-FLOW-06")
async def a_tool_is_announced_and_answered(exam: BladeExamination) -> None:
    """add_tool_call (pending), then tool_result (done, with a duration), then the end of that turn."""
    chat = await (await exam.open()).play("tool")
    announces_and_answers(chat)


def announces_and_answers(chat: Chat) -> None:
    """Expect the call, its result and the end of the turn, in this order."""
    in_order(chat)
    call = chat.call()
    turn = expect.first("the turn of the call", (it for it in chat.turns if call in it.calls), chat.shown)
    announced = chat.place("turn:patch", patch_type="add_tool_call", id=call["id"], status="pending")
    answered = chat.place("turn:patch", patch_type="tool_result", tool_call_id=call["id"], status="done")
    ended = chat.place("turn:end", turn_id=turn.turn_id)
    expect.that(announced < answered < ended, "call, result and turn:end in this order", chat.shown)
    result = expect.first("a result", chat.results, chat.shown)
    expect.that(isinstance(result.get("duration_ms"), int), "duration_ms of the result", result)
    chat.ended("completed")


@requirement("BL-FLOW-07")
async def results_belong_to_calls(exam: BladeExamination) -> None:
    """Every result names a call that was announced before it, and no call has two results."""
    talk = await exam.open()
    for situation in ("tool", "rounds", "fork"):
        chat = await talk.play(situation)
        results_are_of_calls(chat)


def results_are_of_calls(chat: Chat) -> None:
    """Expect one result for each call, after it."""
    results = [item["tool_call_id"] for item in chat.results]
    expect.equal("the calls that have results", sorted(call["id"] for call in chat.calls), sorted(results))
    for name in results:
        before = chat.place("turn:patch", patch_type="add_tool_call", id=name)
        after = chat.place("turn:patch", patch_type="tool_result", tool_call_id=name)
        expect.that(before < after, "the call before its result", chat.shown)


@requirement("BL-FLOW-08")
async def text_follows_the_result(exam: BladeExamination) -> None:
    """After the tool's result comes text, in the same turn or in the next, and no other call."""
    chat = await (await exam.open()).play("tool")
    goes_on_to_its_text(chat)


def goes_on_to_its_text(chat: Chat) -> None:
    """Expect text after the result, and no further call."""
    answered = chat.place("turn:patch", patch_type="tool_result")
    later = [body for name, body in chat.events[answered + 1 :] if name == "turn:patch"]
    said = "".join(body["data"]["text_delta"] for body in later if body["data"].get("type") == "text")
    expect.that(bool(said), "text after the result", chat.shown)
    expect.that(chat.text.endswith(said) or said.endswith(chat.text), "that text in the last turn", chat.text)
    expect.that(all(body["patch_type"] != "add_tool_call" for body in later), "no further call", chat.shown)


@requirement("BL-FLOW-09")
async def rounds_follow_each_other(exam: BladeExamination) -> None:
    """With two rounds of tools each call and its result lie in one turn, one round after the other, the reply last."""
    chat = await (await exam.open()).play("rounds")
    in_order(chat)
    turns = [turn for turn in chat.replies if turn.calls]
    expect.that(sum(len(turn.calls) for turn in turns) >= 2, "two calls, as the profile promises", chat.shown)
    rounds_are_in_order(chat)


def rounds_are_in_order(chat: Chat) -> None:
    """Expect each call and its result in one turn, and the reply in the last."""
    for turn in chat.replies:
        called = sorted(call["id"] for call in turn.calls)
        answered = sorted(item["tool_call_id"] for item in turn.data("tool_result"))
        expect.equal("the calls of a turn that have results", called, answered)
    expect.that(len(chat.replies) >= 2, "a turn for every call of the model", chat.shown)
    expect.that(bool(chat.text), "the final reply in the last turn", chat.shown)


def folded(turn: TurnEvents) -> list[Body]:
    """The calls of a turn after all its patches."""
    calls = {call["id"]: dict(call) for call in turn.calls}
    for item in (*turn.data("tool_result"), *turn.data("set_tool_status")):
        if item["tool_call_id"] in calls:
            told = {name: item[name] for name in ("status", "result") if name in item}
            calls[item["tool_call_id"]] |= told
    return list(calls.values())


@requirement("BL-FLOW-30")
async def a_turn_end_tells_everything(exam: BladeExamination) -> None:
    """turn:end has the whole text, thought, blocks and calls that the patches of the turn told."""
    talk = await exam.open()
    for situation in ("thinking", "tool", *exam.profile.having(("ui", "bridge", "plan", "annotate", "fork"))):
        chat = await talk.play(situation)
        for turn in (*chat.replies, *chat.children):
            tells_everything(turn)


def tells_everything(turn: TurnEvents) -> None:
    """Expect turn:end to have all that the patches of the turn told."""
    for kind in STREAMED:
        expect.equal(f"the {kind} of turn:end", turn.streamed(kind), text_of(turn.final, kind))
    for data in {data["type"]: data for data in turn.data("add_content") if data["type"] not in STREAMED}.values():
        kept = [block.get("content") for block in turn.final["blocks"] if block["type"] == data["type"]]
        said = data.get("content")
        expect.that(said in kept or not said, f"{data['type']} as it was told last: {expect.show(said)}", kept)
    ended = [plain_call(call) for call in turn.final["tool_calls"]]
    expect.equal("the calls of turn:end", [plain_call(call) for call in folded(turn)], ended)


@requirement("BL-FLOW-31")
async def the_history_is_what_was_streamed(exam: BladeExamination) -> None:
    """After every chat:end the messages are the turns streamed so far, in order and unaltered."""
    talk = await exam.open()
    streamed: list[Chat] = []
    for situation in ("text", "thinking", "rounds", "fork", "burst"):
        streamed.append(await talk.play(situation))
        told = [plain(turn.final) for chat in streamed for turn in chat.turns if is_message(turn.final)]
        kept = [plain(turn) for turn in await talk.messages() if is_message(turn)]
        told.sort(key=lambda turn: turn["sequence"])
        expect.equal(f"the messages after {situation}", told, kept)
