"""Section ask: AskUserQuestion, its questions and its answers."""

from typing import Any
from uuid import uuid4

from conformance.blade.chat import ASK, Chat
from conformance.blade.conversation import Conversation, first_options, questions
from conformance.blade.damaged_members import sound
from conformance.blade.event_order import is_one_loop, patches_lie_between
from conformance.blade.examination import BladeExamination
from conformance.blade.scene import answered, scene
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable


@requirement("BL-FLOW-10")
async def a_question_pauses_the_turn(exam: BladeExamination) -> None:
    """add_tool_call (awaiting_answer), turn:end (paused), chat:end (completed), and no result."""
    pauses((await scene(exam, "ask")).chat())


def pauses(chat: Chat) -> None:
    """Expect the question, turn:end (paused) and chat:end (completed)."""
    question = chat.question()
    expect.equal("the status of a new question", "awaiting_answer", question["status"])
    asked = chat.place("turn:patch", patch_type="add_tool_call", id=question["id"])
    turn = chat.turn_of(question)
    expect.equal("the status of the turn at its end", "paused", turn.final["status"])
    paused = chat.place("turn:end", turn_id=turn.turn_id)
    expect.that(asked < paused, "the question before turn:end", chat.shown)
    answered = [item["tool_call_id"] for item in turn.results]
    expect.that(question["id"] not in answered, "no result of the question before the answer", chat.results)
    chat.ended("completed")


def asked_for(exam: BladeExamination, chat: Chat) -> Any:
    """The arguments of the open question, held to their schema."""
    told = expect.parsed(sound(chat.question()["arguments"]), f"the arguments of {ASK}")
    return exam.read("question", told, f"the arguments of {ASK}")


@requirement("BL-FLOW-11")
async def a_question_has_options(exam: BladeExamination) -> None:
    """The arguments hold questions with their options."""
    told = asked_for(exam, (await scene(exam, "ask")).chat())
    expect.that(all(item["options"] is not None for item in told["questions"]), "questions with options", repr(told))


@requirement("BL-FLOW-12")
async def a_question_says_whether_it_takes_several(exam: BladeExamination) -> None:
    """multiSelect is a boolean, null or missing."""
    for item in asked_for(exam, (await scene(exam, "ask")).chat())["questions"]:
        is_right = sound(item.get("multiSelect")) in (None, True, False)
        expect.that(is_right, "multiSelect: a boolean or null", item)


@requirement("BL-FLOW-13")
async def a_root_question_has_no_source_loop(exam: BladeExamination) -> None:
    """source_loop is null or absent at the root and an object for a sub-agent."""
    told = asked_for(exam, (await scene(exam, "ask")).chat())
    expect.equal("source_loop of the root's question", None, told.get("source_loop"))
    source = sound(asked_for(exam, (await scene(exam, "fork_ask")).chat()).get("source_loop"))
    expect.that(isinstance(source, dict), "source_loop of a sub-agent's question to be an object", source)


async def _asked(exam: BladeExamination, situation: str = "ask") -> tuple[Conversation, Any]:
    talk = await exam.open()
    return talk, (await talk.play(situation)).question()


def _goes_on(chat: Chat) -> None:
    """Expect the loop to have resumed: the agent says something, or asks again."""
    expect.that(bool(chat.replies), "the agent to go on", chat.shown)


@requirement("BL-FLOW-14")
async def an_answer_may_have_an_empty_message(exam: BladeExamination) -> None:
    """An answer with an empty message resumes the loop."""
    seen = await scene(exam, "ask")
    seen.chat().question()
    _goes_on(seen.chat(1))


@requirement("BL-FLOW-14")
async def an_answer_may_come_from_elsewhere(exam: BladeExamination) -> None:
    """Another connection can answer."""
    talk, question = await _asked(exam)
    _goes_on(await answered(exam, talk.on(await exam.link()), question))


@requirement("BL-FLOW-15")
async def options_are_chosen_by_index(exam: BladeExamination) -> None:
    """The last option of every question, and all options where several may be chosen, are taken."""
    talk, call = await _asked(exam)
    chosen = {}
    for place, item in enumerate(questions(call)):
        options = range(len(item["options"]))
        chosen[str(place)] = list(options) if item.get("multiSelect") else [options[-1]]
    await talk.reply(call["id"], chosen)
    _goes_on(await _listened(exam, talk, "BL-FLOW-15"))


async def _listened(exam: BladeExamination, talk: Conversation, owner: str) -> Chat:
    """What comes of an answer; if the plainest answer is not taken either, that is the cause."""
    (await scene(exam, "ask")).chat(1)
    return await talk.listen(owner)


@requirement("BL-GAP-15")
async def an_option_must_exist(exam: BladeExamination) -> None:
    """An index behind the last option resumes nothing."""
    talk, call = await _asked(exam)
    await talk.reply(call["id"], first_options(call) | {"0": [len(questions(call)[0]["options"])]})
    await talk.refused("there is no such option")
    _goes_on(await answered(exam, talk, call))


@requirement("BL-GAP-15")
async def a_question_takes_one_option_by_default(exam: BladeExamination) -> None:
    """Where multiSelect is not set two options are not taken."""
    talk, call = await _asked(exam)
    single = [place for place, item in enumerate(questions(call)) if not item.get("multiSelect")]
    wide = [place for place in single if len(questions(call)[place]["options"]) > 1]
    if not wide:
        raise NotTestable("the agent asks no question with one choice of several")
    await talk.reply(call["id"], first_options(call) | {str(wide[0]): [0, 1]})
    await talk.refused("a question without multiSelect takes one option")
    _goes_on(await answered(exam, talk, call))


@requirement("BL-FLOW-16")
async def an_answer_may_be_in_own_words(exam: BladeExamination) -> None:
    """Every question can be answered in words, and one in words beside another by option."""
    talk, call = await _asked(exam)
    words = f"my own words {uuid4().hex}"
    await talk.reply(call["id"], custom={str(place): words for place, _ in enumerate(questions(call))})
    _goes_on(await _listened(exam, talk, "BL-FLOW-16"))
    call = (await talk.play("ask")).question()
    await talk.reply(call["id"], {name: it for name, it in first_options(call).items() if name != "0"}, {"0": words})
    _goes_on(await talk.listen("BL-FLOW-16"))


@requirement("BL-FLOW-17")
async def every_question_must_be_answered(exam: BladeExamination) -> None:
    """An answer without anything, or with one question left out, resumes nothing; the right one then does."""
    talk, call = await _asked(exam)
    partial = {name: it for name, it in first_options(call).items() if name != "0"}
    wrong: tuple[dict[str, list[int]], ...] = ({}, {"0": []}, partial)
    for selections in wrong:
        await talk.reply(call["id"], selections)
        await talk.refused("a question is left open")
    _goes_on(await answered(exam, talk, call))


@requirement("BL-FLOW-18")
async def an_answered_loop_is_an_ordinary_chat(exam: BladeExamination) -> None:
    """After the answer the events are those of a chat, from chat:start to chat:end, with text."""
    seen = await scene(exam, "ask")
    asked, chat = seen.chat(), seen.chat(1)
    is_one_loop(asked)
    is_ordinary(chat, frozenset(turn.turn_id for turn in asked.turns))


def is_ordinary(chat: Chat, earlier: frozenset[str]) -> None:
    """Expect the events of a chat, in which the agent goes on."""
    has_bounds(chat, earlier)
    goes_on = bool(chat.text) or any(call["tool_name"] == ASK for call in chat.calls)
    expect.that(goes_on, "the agent to go on", chat.shown)


def has_bounds(chat: Chat, earlier: frozenset[str]) -> None:
    """Expect chat:start, turns with their patches between start and end, and chat:end."""
    expect.that(chat.is_ended, "chat:end", chat.shown, "BL-FLOW-01")
    is_late = "chat:start" in chat.names and chat.events[0][1].get("turn_id") in earlier
    expect.that(not is_late, "nothing of the chat that asked after its chat:end", chat.shown, "BL-FLOW-01")
    counts = [chat.names[0], chat.names[-1], chat.names.count("chat:start"), chat.names.count("chat:end")]
    expect.equal("first and last event, and how often each", ["chat:start", "chat:end", 1, 1], counts)
    patches_lie_between(chat, earlier)
