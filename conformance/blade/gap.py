"""Section gap: what the specification leaves open, settled as most clients expect it."""

from typing import Any

from conformance.blade.chat import ASK, Chat
from conformance.blade.conversation import Conversation, first_options, questions
from conformance.blade.event_order import in_order
from conformance.blade.examination import BladeExamination
from conformance.blade.patch import adds_up
from conformance.blade.scene import answered, expect_unique_calls, scene
from conformance.blade.snapshot import is_message, plain
from conformance.blade.turn_sources import matched_results
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import Failed, NotTestable
from conformance.kit.socketio import SocketEvent

QUESTIONS = 3


@requirement("BL-GAP-02")
async def who_sends_hears(exam: BladeExamination) -> None:
    """A connection that never subscribed hears the chat it starts."""
    (await scene(exam, "text")).chat()
    talk = Conversation(exam, await exam.session(), await exam.link())
    await talk.play("text", owner="BL-GAP-02")


async def _heard_out(talk: Conversation, *others: str) -> SocketEvent:
    """The chat:end that a subscriber hears, or the first event of another name, whatever else comes before it."""
    names: list[str] = []
    try:
        while True:
            names.append((heard := await talk.hear()).name)
            if heard.name in ("chat:end", *others):
                return heard
    except Failed as failure:
        failure.owner = failure.owner or ("BL-FLOW-01" if names else "BL-WS-03")
        raise


def _system_error(heard: SocketEvent | None, owner: str | None = None) -> Any:
    """The body of the system:error that was heard; its other members are another requirement's."""
    expect.that(heard is not None and heard.name == "system:error", "a system:error", heard and heard.name, owner)
    body = heard.body if heard is not None else {}
    return body if isinstance(body, dict) else {}


@requirement("BL-GAP-03")
async def incomplete_messages_are_refused_in_words(exam: BladeExamination) -> None:
    """Without session_id, without message, and with an empty one: system:error, to the sender only."""
    talk = await exam.open()
    other = await exam.another(talk)
    for body in ({"message": "Hello"}, {"session_id": talk.session}, {"session_id": talk.session, "message": ""}):
        await talk.link.emit("chat:send", body)
        told = _system_error(await talk.verdict(within=None))
        expect.equal("the session_id of the error", None, told.get("session_id"))
    await talk.play("text")
    await _heard_out(other)
    heard = [item.name for item in other.link.heard]
    expect.that("system:error" not in heard, "no error for others", heard)


@requirement("BL-GAP-05")
async def a_pause_is_named(exam: BladeExamination) -> None:
    """chat:end has pause_tool builtin:AskUserQuestion and pause_tool_data with the call and its arguments."""
    chat = (await scene(exam, "ask")).chat()
    asked = questions(chat.question())
    await expect_unique_calls(exam)
    expect.equal("pause_tool", f"builtin:{ASK}", chat.end.get("pause_tool"))
    data = expect.keyed("pause_tool_data", chat.end.get("pause_tool_data"), "tool_call_id", "arguments")
    expect.equal("tool_call_id", chat.question()["id"], data["tool_call_id"])
    told = expect.keyed("its arguments", data["arguments"], "questions")["questions"]
    expect.equal("how many questions", len(asked), len(told))


@requirement("BL-GAP-08")
async def patches_are_counted(exam: BladeExamination) -> None:
    """Within a turn every patch has a higher sequence than the one before."""
    chat = (await scene(exam, "tool")).chat()
    matched_results(chat)
    tells_once(chat)
    counts_patches(chat)


def tells_once(chat: Chat) -> None:
    """Expect the patches of the replies to add up: none is lost, told twice or out of order."""
    with expect.owned("BL-PATCH-04"):
        for turn in chat.replies:
            if turn.data("add_content"):
                adds_up(turn)


def counts_patches(chat: Chat) -> None:
    """Expect the sequence of a turn's patches to count upwards."""
    for turn in chat.turns:
        counted = [patch["sequence"] for patch in turn.patches]
        expect.that(counted == sorted(set(counted)), "sequences that count upwards", counted)


@requirement("BL-GAP-10")
async def every_event_names_its_session(exam: BladeExamination) -> None:
    """turn:start is complete, and every event of the flow has the session_id."""
    seen = await scene(exam, "fork")
    for name, body in seen.chat().events:
        if name != "turn:patch":
            expect.equal(f"the session_id of {name}", seen.session, body.get("session_id"))
    for turn in seen.chat().turns:
        if turn.start is not None:
            exam.read("event.turn-start.full", dict(turn.start), f"turn:start of {turn.turn_id}")


@requirement("BL-GAP-14")
async def an_answer_is_kept(exam: BladeExamination) -> None:
    """The messages show the answer as the user's, the question as done, and its turn as completed."""
    seen = await scene(exam, "ask")
    question = seen.chat().question()
    seen.chat(1)
    turns = seen.kept(1)
    answers = [block["content"] for turn in turns for block in turn["blocks"] if block["type"] == "ask_user_answer"]
    expect.equal("ask_user_answer blocks", 1, len(answers))
    told = (answers[0].get("tool_call_id"), answers[0].get("selections"))
    expect.equal("the answer", (question["id"], first_options(question)), told)
    for turn in turns:
        for call in turn["tool_calls"]:
            if call["id"] == question["id"]:
                is_over = call["status"] != "pending"
                expect.that(is_over, "no call to be pending when its chat has ended", call, "BL-TC-06")
                expect.equal("the question and its turn", ("done", "completed"), (call["status"], turn["status"]))


WAYS = (("ask", "answer"), ("ask", "message"), ("ask", "stop"), ("fork_ask", "answer"))


@requirement("BL-GAP-14")
async def turn_ends_tell_what_is_kept(exam: BladeExamination) -> None:
    """However a question is settled, the turns of the question, as turn:end told them last, are the messages."""
    for situation, how in WAYS:
        if situation in exam.profile.having((situation,)):
            await _settled_as_kept(exam, situation, how)


async def _settled_as_kept(exam: BladeExamination, situation: str, how: str) -> None:
    talk = await exam.open()
    asked = await talk.play(situation)
    before = {turn["turn_id"]: plain(turn) for turn in await talk.messages()}
    if how == "stop":
        await talk.stop()
    if how == "answer":
        await answered(exam, talk, asked.question())
    elif how == "message":
        await talk.play("text")
    ends = {item.body["turn_id"]: item.body for item in talk.link.heard if item.name == "turn:end"}
    kept = {turn["turn_id"]: turn for turn in await talk.messages() if is_message(turn)}
    for turn in (turn for turn in asked.replies + asked.children if turn.turn_id in kept):
        was, told, now = (plain(it) for it in (turn.final, ends[turn.turn_id], kept[turn.turn_id]))
        if was == before.get(turn.turn_id, was):  # what turn:end told wrongly from the first is not about settling
            settled = {name: told[name] for name in ("status", "tool_calls")}
            expected = {name: now[name] for name in ("status", "tool_calls")}
            expect.equal(f"what turn:end told, after {situation} and {how}", _states(expected), _states(settled))


def _states(turn: dict[str, Any]) -> list[Any]:
    return [turn["status"], [(call["id"], call["status"]) for call in turn["tool_calls"]]]


@requirement("BL-GAP-15")
async def a_wrong_answer_is_refused_in_words(exam: BladeExamination) -> None:
    """Unknown calls, missing answers and wrong indexes: system:error to the sender; the session goes on waiting."""
    talk = await exam.open()
    other = await exam.another(talk)
    question = (await talk.play("ask")).question()
    await other.listen("BL-WS-03")
    with expect.owned("BL-SESS-10"):
        await talk.becomes("waiting_for_input")
    right = first_options(question)
    for call, selections in (("tc_unknown", right), (question["id"], {}), (question["id"], right | {"0": [99]})):
        await talk.reply(call, selections)
        told = _system_error(await talk.verdict(within=None))
        expect.equal("the session_id of the error", talk.session, told.get("session_id"))
        await talk.becomes("waiting_for_input")
    await answered(exam, talk, question)
    await other.listen("BL-WS-03")
    await talk.reply(question["id"], right)
    _system_error(await talk.verdict(within=None))
    heard = [item.name for item in other.link.heard]
    expect.that("system:error" not in heard, "no error for others", heard)


@requirement("BL-GAP-16")
async def a_message_passes_over_a_question(exam: BladeExamination) -> None:
    """An ordinary message while a question is open runs a chat, and the question is cancelled."""
    talk = await exam.open()
    question = (await talk.play("ask")).question()
    await talk.play("text", owner="BL-GAP-16")
    kept = {call["id"]: call["status"] for turn in await talk.messages() for call in turn["tool_calls"]}
    expect.that(kept.get(question["id"]) != "pending", "no call to be pending in the end", kept, "BL-TC-06")
    expect.equal("the status of the question", "cancelled", kept.get(question["id"], "cancelled"))
    await talk.reply(question["id"], first_options(question))
    await talk.refused("the question was cancelled")


@requirement("BL-GAP-17")
async def a_busy_session_refuses(exam: BladeExamination) -> None:
    """A second message is refused to its sender alone; the running chat ends as if nothing had been."""
    talk = await exam.open()
    other = await exam.another(talk)
    await talk.send(exam.profile.prompt("slow"))
    await talk.until("turn:patch")
    await other.send("I interrupt")
    told = _system_error(await _heard_out(other, "system:error"))
    expect.equal("the session_id of the error", talk.session, told.get("session_id"))
    await talk.listen()
    expect.that("system:error" not in [item.name for item in talk.link.heard], "no error for others", "there was one")
    kept = [block.get("content") for turn in await talk.messages() for block in turn["blocks"]]
    expect.that("I interrupt" not in kept, "no trace of the refused message", kept)


@requirement("BL-GAP-23")
async def a_failure_is_told_in_order(exam: BladeExamination) -> None:
    """turn:end (failed), system:error with the session, chat:end (failed)."""
    seen = await scene(exam, "fail")
    chat = seen.chat()
    expect.that(chat.end["status"] == "failed", "chat:end (failed)", chat.shown, "BL-WS-08")
    names = [item.name for item in chat.heard]
    expect.that("system:error" in names, "a system:error before chat:end", names)
    told = _system_error(chat.heard[names.index("system:error")])
    expect.equal("the session_id of the error", seen.session, told.get("session_id"))
    expect.equal("the status of the turn at its end", "failed", chat.reply.final["status"])


@requirement("BL-GAP-30")
async def a_subscription_is_live(exam: BladeExamination) -> None:
    """Three questions, each after a subscription with after_sequence 0 and without resume, get three answers."""
    talk = await exam.open()
    known: set[str] = set()
    for place in range(QUESTIONS):
        await talk.subscribe(after_sequence=0)
        await talk.send(f"Question {place}")
        with expect.owned("BL-FLOW-01"):
            heard = [await talk.hear()]
            while heard[-1].name != "chat:end":
                heard.append(await talk.hear())
        chat = Chat(tuple(heard))
        is_late = chat.names[0] != "chat:start" and chat.events[0][1].get("turn_id") in known
        expect.that(not is_late, "nothing of a chat after its chat:end", chat.shown, "BL-FLOW-01")
        told = {turn.turn_id for turn in chat.turns}
        expect.that(not known & told, "nothing of earlier chats", sorted(known & told))
        known |= told


@requirement("BL-GAP-30")
async def a_subscription_is_resumed_after_its_cursor(exam: BladeExamination) -> None:
    """With resume the events after the stream_sequence of after_sequence come, each once, and no others."""
    talk = await exam.open()
    chat = await talk.play("text")
    in_order(chat)
    tells_once(chat)
    told = [(name, body.get("stream_sequence")) for name, body in chat.events]
    numbers = [number for _, number in told]
    if None in numbers:
        raise NotTestable("the events have no stream_sequence to resume after")
    other = talk.on(await exam.link())
    cursor = numbers[len(numbers) // 2]
    await other.subscribe(resume=True, after_sequence=cursor)
    again = await other.listen("BL-GAP-30")
    heard = [(name, body.get("stream_sequence")) for name, body in again.events]
    expect.equal(f"the events after {cursor}", told[numbers.index(cursor) + 1 :], heard)


@requirement("BL-GAP-31")
async def runs_are_acknowledged(exam: BladeExamination) -> None:
    """session:subscribe and chat:send are acknowledged, the latter with the chat_run_id that chat:end has."""
    talk = await exam.open()
    ack = await talk.link.call("session:subscribe", {"session_id": talk.session})
    expect.that(isinstance(ack, dict) and ack.get("status") != "error", "session:subscribe to be acknowledged", ack)
    ack = await talk.link.call("chat:send", {"session_id": talk.session, "message": exam.profile.prompt("text")})
    expect.that(isinstance(ack, dict) and bool(ack.get("chat_run_id")), "an acknowledgement with chat_run_id", ack)
    expect.equal("the chat_run_id of chat:end", ack["chat_run_id"], (await talk.listen()).end.get("chat_run_id"))
