"""Section ask: AskUserQuestion, its questions and its answers."""

from typing import Any
from uuid import uuid4

from conformance.blade.chat import ASK, Chat
from conformance.blade.examination import BladeExamination
from conformance.blade.order import in_order
from conformance.blade.snapshot import read
from conformance.blade.talk import Talk, first_options, questions
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable


@requirement("BL-FLOW-10")
async def a_question_pauses_the_turn(exam: BladeExamination) -> None:
    """add_tool_call (awaiting_answer), turn:end (paused), chat:end (completed), and no result."""
    chat = await (await exam.open()).play("ask")
    pauses(chat)


def pauses(chat: Chat) -> None:
    """Expect the question, turn:end (paused) and chat:end (completed)."""
    in_order(chat)
    question = chat.question()
    asked = chat.place("turn:patch", patch_type="add_tool_call", tool_name=ASK, status="awaiting_answer")
    turn = expect.first("the turn of the question", (it for it in chat.turns if question in it.calls), chat.shown)
    paused = chat.place("turn:end", turn_id=turn.turn_id, status="paused")
    expect.that(asked < paused, "the question before turn:end", chat.shown)
    answered = [item["tool_call_id"] for item in turn.data("tool_result")]
    expect.that(question["id"] not in answered, "no result of the question before the answer", chat.results)
    chat.ended("completed")


async def _asked(exam: BladeExamination, situation: str = "ask") -> tuple[Talk, Any]:
    talk = await exam.open()
    return talk, (await talk.play(situation)).question()


@requirement("BL-FLOW-11")
async def a_question_has_options(exam: BladeExamination) -> None:
    """The arguments hold questions with their options."""
    _, question = await _asked(exam)
    exam.fit("question", read(question["arguments"]), f"the arguments of {ASK}")


@requirement("BL-FLOW-12")
async def a_question_takes_one_option_by_default(exam: BladeExamination) -> None:
    """multiSelect is a boolean or missing, and without it two options are not taken."""
    talk, call = await _asked(exam)
    single = [place for place, item in enumerate(questions(call)) if not item.get("multiSelect")]
    for item in questions(call):
        expect.that(item.get("multiSelect") in (None, True, False), "multiSelect: a boolean or null", item)
    wide = [place for place in single if len(questions(call)[place]["options"]) > 1]
    if not wide:
        raise NotTestable("the agent asks no question with one choice of several")
    await talk.reply(call["id"], first_options(call) | {str(wide[0]): [0, 1]})
    await talk.refused("a question without multiSelect takes one option")
    _expect_resumed(await talk.answer(call))


@requirement("BL-FLOW-13")
async def a_root_question_has_no_source_loop(exam: BladeExamination) -> None:
    """source_loop is null or absent at the root and an object for a sub-agent."""
    _, question = await _asked(exam)
    expect.equal("source_loop of the root's question", None, read(question["arguments"]).get("source_loop"))
    _, question = await _asked(exam, "fork_ask")
    source = read(question["arguments"]).get("source_loop")
    expect.that(isinstance(source, dict), "source_loop of a sub-agent's question to be an object", source)


def _expect_resumed(chat: Chat) -> None:
    chat.ended("completed")
    expect.that(bool(chat.replies) and bool(chat.text), "the agent to go on with text", chat.shown)


@requirement("BL-FLOW-14")
async def an_answer_may_have_an_empty_message(exam: BladeExamination) -> None:
    """An answer with an empty message resumes the loop."""
    talk, question = await _asked(exam)
    _expect_resumed(await talk.answer(question))


@requirement("BL-FLOW-14")
async def an_answer_may_come_from_elsewhere(exam: BladeExamination) -> None:
    """Another connection can answer, and both hear what follows."""
    talk, question = await _asked(exam)
    other = await exam.another(talk)
    _expect_resumed(await other.answer(question))
    _expect_resumed(await talk.listen())


@requirement("BL-FLOW-15")
async def options_are_chosen_by_index(exam: BladeExamination) -> None:
    """The last option of every question, and all options where several may be chosen, are taken."""
    talk, call = await _asked(exam)
    chosen = {}
    for place, item in enumerate(questions(call)):
        options = range(len(item["options"]))
        chosen[str(place)] = list(options) if item.get("multiSelect") else [options[-1]]
    await talk.reply(call["id"], chosen)
    _expect_resumed(await talk.listen())


@requirement("BL-FLOW-15")
async def an_option_must_exist(exam: BladeExamination) -> None:
    """An index behind the last option resumes nothing."""
    talk, call = await _asked(exam)
    await talk.reply(call["id"], first_options(call) | {"0": [len(questions(call)[0]["options"])]})
    await talk.refused("there is no such option")
    await talk.becomes("waiting_for_input")
    _expect_resumed(await talk.answer(call))


@requirement("BL-FLOW-16")
async def an_answer_may_be_in_own_words(exam: BladeExamination) -> None:
    """Every question can be answered in words, and one in words beside another by option."""
    talk, call = await _asked(exam)
    words = f"my own words {uuid4().hex}"
    await talk.reply(call["id"], custom={str(place): words for place, _ in enumerate(questions(call))})
    _expect_resumed(await talk.listen())
    call = (await talk.play("ask")).question()
    await talk.reply(call["id"], {name: it for name, it in first_options(call).items() if name != "0"}, {"0": words})
    _expect_resumed(await talk.listen())


@requirement("BL-FLOW-17")
async def every_question_must_be_answered(exam: BladeExamination) -> None:
    """An answer without anything, or with one question left out, resumes nothing; the right one then does."""
    talk, call = await _asked(exam)
    partial = {name: it for name, it in first_options(call).items() if name != "0"}
    wrong: tuple[dict[str, list[int]], ...] = ({}, {"0": []}, partial)
    for selections in wrong:
        await talk.reply(call["id"], selections)
        await talk.refused("a question is left open")
        await talk.becomes("waiting_for_input")
    _expect_resumed(await talk.answer(call))


@requirement("BL-FLOW-18")
async def an_answered_loop_is_an_ordinary_chat(exam: BladeExamination) -> None:
    """After the answer the events are those of a chat, and a further chat is as any other."""
    talk = await exam.open()
    asked = await talk.play("ask")
    chat = await talk.answer(asked.question())
    in_order(chat, {turn.turn_id for turn in asked.turns})
    for turn in chat.replies:
        expect.equal("turn:end after the answer", "completed", turn.final["status"])
        expect.equal(
            "the text",
            turn.streamed(),
            "".join(block["content"] for block in turn.final["blocks"] if block["type"] == "text"),
        )
    ended = [turn.end for turn in chat.turns if turn.end is not None]
    for turns in (ended, await talk.messages()):
        kept = {call["id"]: call.get("result") for turn in turns for call in turn["tool_calls"]}
        for item in chat.results:
            seen = kept.get(item["tool_call_id"], item["result"])
            expect.equal("the result of the answered call", item["result"], seen)
    _expect_resumed(chat)
    in_order((await talk.play("text")).ended("completed"))
