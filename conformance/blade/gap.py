"""Section gap: what the specification leaves open, settled as most clients expect it."""

from typing import Any

from conformance.blade.chat import ASK, Chat
from conformance.blade.examination import BladeExamination
from conformance.blade.snapshot import is_message, plain, text_of
from conformance.blade.talk import Talk, first_options, questions
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable
from conformance.kit.socketio import SocketEvent

QUESTIONS = 3


@requirement("BL-GAP-02")
async def who_sends_hears(exam: BladeExamination) -> None:
    """A connection that never subscribed hears the chat it starts."""
    talk = Talk(exam, await exam.session(), await exam.link())
    (await talk.play("text")).ended("completed")


def _system_error(exam: BladeExamination, heard: SocketEvent | None) -> Any:
    expect.that(heard is not None and heard.name == "system:error", "a system:error", heard and heard.name)
    body = heard.body if heard is not None else {}
    exam.fit("event.system-error", body, "the event system:error")
    return body


@requirement("BL-GAP-03")
async def incomplete_messages_are_refused_in_words(exam: BladeExamination) -> None:
    """Without session_id, without message, and with an empty one: system:error, to the sender only."""
    talk = await exam.open()
    other = await exam.another(talk)
    for body in ({"message": "Hello"}, {"session_id": talk.session}, {"session_id": talk.session, "message": ""}):
        await talk.link.emit("chat:send", body)
        told = _system_error(exam, await talk.verdict(within=None))
        expect.equal("the session_id of the error", None, told.get("session_id"))
    await talk.play("text")
    await other.listen()
    heard = [item.name for item in other.link.heard]
    expect.that("system:error" not in heard, "no error for others", heard)


@requirement("BL-GAP-05")
async def a_pause_is_named(exam: BladeExamination) -> None:
    """chat:end has pause_tool builtin:AskUserQuestion and pause_tool_data with the call and its arguments."""
    chat = await (await exam.open()).play("ask")
    expect.equal("pause_tool", f"builtin:{ASK}", chat.end.get("pause_tool"))
    data = expect.keyed("pause_tool_data", chat.end.get("pause_tool_data"), "tool_call_id", "arguments")
    expect.equal("tool_call_id", chat.question()["id"], data["tool_call_id"])
    told = expect.keyed("its arguments", data["arguments"], "questions")["questions"]
    expect.equal("questions", questions(chat.question()), told)


@requirement("BL-GAP-08")
async def patches_are_counted(exam: BladeExamination) -> None:
    """Within a turn every patch has a higher sequence than the one before."""
    chat = await (await exam.open()).play("tool")
    counts_patches(chat)


def counts_patches(chat: Chat) -> None:
    """Expect the sequence of a turn's patches to count upwards."""
    for turn in chat.turns:
        counted = [patch["sequence"] for patch in turn.patches]
        expect.that(counted == sorted(set(counted)), "sequences that count upwards", counted)


@requirement("BL-GAP-10")
async def every_event_names_its_session(exam: BladeExamination) -> None:
    """turn:start is complete, and every event of the flow has the session_id."""
    talk = await exam.open()
    chat = await talk.play("fork")
    for name, body in chat.events:
        expect.equal(f"the session_id of {name}", talk.session, body.get("session_id"))
    for turn in chat.turns:
        exam.fit("event.turn-start.full", turn.start, f"turn:start of {turn.turn_id}")


@requirement("BL-GAP-14")
async def an_answer_is_kept(exam: BladeExamination) -> None:
    """The messages show the answer as the user's, the question as done, and its turn as completed."""
    talk = await exam.open()
    asked = await talk.play("ask")
    await talk.answer(asked.question())
    turns = await talk.messages()
    answers = [block["content"] for turn in turns for block in turn["blocks"] if block["type"] == "ask_user_answer"]
    expect.that(len(answers) == 1 and isinstance(answers[0], dict), "one ask_user_answer block", answers)
    chosen, told = first_options(asked.question()), (answers[0].get("tool_call_id"), answers[0].get("selections"))
    expect.equal("the answer", (asked.question()["id"], chosen), told)
    same = (turn for turn in turns if turn["turn_id"] == asked.reply.turn_id)
    paused = expect.first("the turn of the question among the messages", same, [turn["turn_id"] for turn in turns])
    told = (paused["status"], [call["status"] for call in paused["tool_calls"]])
    expect.equal("the turn of the question", ("completed", ["done"]), told)


@requirement("BL-GAP-14")
async def turn_ends_tell_what_is_kept(exam: BladeExamination) -> None:
    """However a question is settled, the turns as turn:end told them last are the messages."""
    talk = await exam.open()
    for situation, how in (("ask", "answer"), ("ask", "message"), ("ask", "stop"), ("fork_ask", "answer")):
        if situation not in exam.profile.having((situation,)):
            continue
        asked = await talk.play(situation)
        if how == "stop":
            await talk.stop()
        chat = await (talk.answer(asked.question()) if how == "answer" else talk.play("text"))
        if "chat:start" not in [name for name, _ in chat.events]:  # this was the end of what was stopped
            await talk.listen()
        ends = {item.body["turn_id"]: item.body for item in talk.link.heard if item.name == "turn:end"}
        told = sorted((plain(turn) for turn in ends.values() if is_message(turn)), key=lambda turn: turn["sequence"])
        kept = [plain(turn) for turn in await talk.messages() if is_message(turn)]
        expect.equal(f"what turn:end told, after {situation} and {how}", kept, told)


@requirement("BL-GAP-15")
async def a_wrong_answer_is_refused_in_words(exam: BladeExamination) -> None:
    """Unknown calls, missing answers and wrong indexes: system:error to the sender; the session goes on waiting."""
    talk = await exam.open()
    other = await exam.another(talk)
    question = (await talk.play("ask")).question()
    await other.listen()
    right = first_options(question)
    for call, selections in (("tc_unknown", right), (question["id"], {}), (question["id"], right | {"0": [99]})):
        await talk.reply(call, selections)
        told = _system_error(exam, await talk.verdict(within=None))
        expect.equal("the session_id of the error", talk.session, told.get("session_id"))
        await talk.becomes("waiting_for_input")
    (await talk.answer(question)).ended("completed")
    await other.listen()
    await talk.reply(question["id"], right)
    _system_error(exam, await talk.verdict(within=None))
    heard = [item.name for item in other.link.heard]
    expect.that("system:error" not in heard, "no error for others", heard)


@requirement("BL-GAP-16")
async def a_message_passes_over_a_question(exam: BladeExamination) -> None:
    """An ordinary message while a question is open runs a chat, and the question is cancelled."""
    talk = await exam.open()
    question = (await talk.play("ask")).question()
    (await talk.play("text")).ended("completed")
    kept = {call["id"]: call["status"] for turn in await talk.messages() for call in turn["tool_calls"]}
    expect.equal("the status of the question", "cancelled", kept[question["id"]])
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
    while (heard := await other.hear()).name not in ("system:error", "chat:end"):
        pass
    told = _system_error(exam, heard)
    expect.equal("the session_id of the error", talk.session, told.get("session_id"))
    (await talk.listen()).ended("completed")
    expect.that("system:error" not in [item.name for item in talk.link.heard], "no error for others", "there was one")
    kept = [block.get("content") for turn in await talk.messages() for block in turn["blocks"]]
    expect.that("I interrupt" not in kept, "no trace of the refused message", kept)


@requirement("BL-GAP-23")
async def a_failure_is_told_in_order(exam: BladeExamination) -> None:
    """turn:end (failed), system:error with the session, chat:end (failed), and the session can go on."""
    talk = await exam.open()
    chat = (await talk.play("fail")).ended("failed")
    names = [item.name for item in chat.heard]
    expect.that("system:error" in names, "a system:error before chat:end", names)
    told = _system_error(exam, chat.heard[names.index("system:error")])
    expect.equal("the session_id of the error", talk.session, told.get("session_id"))
    ended = chat.place("turn:end", role="assistant", status="failed")
    expect.that(ended < len(chat.events) - 1, "turn:end (failed) before chat:end", chat.shown)
    (await talk.play("text")).ended("completed")


@requirement("BL-GAP-30")
async def a_subscription_is_live(exam: BladeExamination) -> None:
    """Three questions, each after a subscription with after_sequence 0 and without resume, get three answers."""
    talk = await exam.open()
    for place in range(QUESTIONS):
        await talk.subscribe(after_sequence=0)
        chat = await talk.say(f"Question {place}")
        heard = [text_of(turn.final) for turn in chat.users]
        expect.equal("the question of the chat that is heard", [f"Question {place}"], heard)


@requirement("BL-GAP-30")
async def a_subscription_is_resumed_after_its_cursor(exam: BladeExamination) -> None:
    """With resume the events after the stream_sequence of after_sequence come, each once, and no others."""
    talk = await exam.open()
    told = [(item.name, item.body.get("stream_sequence")) for item in (await talk.play("text")).heard]
    numbers = [number for _, number in told]
    if None in numbers:
        raise NotTestable("the events have no stream_sequence to resume after")
    other = talk.on(await exam.link())
    cursor = numbers[len(numbers) // 2]
    await other.subscribe(resume=True, after_sequence=cursor)
    heard = [(item.name, item.body.get("stream_sequence")) for item in (await other.listen()).heard]
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
