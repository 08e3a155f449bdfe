"""Section fork: sub-agents, their turns and their questions."""

from typing import Any

from conformance.blade.chat import ASK, FORK, Chat
from conformance.blade.examination import BladeExamination
from conformance.blade.order import in_order
from conformance.blade.snapshot import parent_of, read
from conformance.blade.talk import Talk
from conformance.kit import expect
from conformance.kit.case import requirement


async def _forked(exam: BladeExamination) -> tuple[Talk, Chat, Any]:
    talk = await exam.open()
    chat = await talk.play("fork")
    return talk, chat, chat.call(FORK)


@requirement("BL-FLOW-19")
async def a_fork_is_a_call_of_agent(exam: BladeExamination) -> None:
    """The call is pending when announced, comes from a root turn, and describes the task."""
    _, chat, call = await _forked(exam)
    is_fork(chat, call)


def is_fork(chat: Chat, call: Any) -> None:
    """Expect a pending call of a root turn that describes its task."""
    expect.equal("the status of the fork call", "pending", call["status"])
    described = read(call["arguments"])
    told = isinstance(described, dict) and isinstance(described.get("description"), str)
    expect.that(told, "arguments with a description", call["arguments"])
    expect.that(any(call in turn.calls for turn in chat.replies), "the call in a root turn", chat.shown)


@requirement("BL-FLOW-20")
async def a_sub_agent_speaks_between_call_and_result(exam: BladeExamination) -> None:
    """Every event of a sub-agent's turn lies between the fork call and its result; it says something."""
    _, chat, call = await _forked(exam)
    speaks_between(chat, call)


def speaks_between(chat: Chat, call: Any) -> None:
    """Expect the sub-agent's turns between the call and its result."""
    in_order(chat)
    begun = chat.place("turn:patch", patch_type="add_tool_call", id=call["id"])
    done = chat.place("turn:patch", patch_type="tool_result", tool_call_id=call["id"])
    children = [turn for turn in chat.children if parent_of(turn.start or {}) == call["id"]]
    expect.that(bool(children), "turns that name the fork call from their start", chat.shown)
    names = {turn.turn_id for turn in children}
    places = [place for place, (_, body) in enumerate(chat.events) if body.get("turn_id") in names]
    expect.that(begun < places[0] and places[-1] < done, "the sub-agent between call and result", chat.shown)
    expect.that(any(turn.patches for turn in children), "the sub-agent to say something", chat.shown)


@requirement("BL-FLOW-21")
async def a_fork_ends_with_its_result(exam: BladeExamination) -> None:
    """The fork's result comes as done in the parent's turn, after the last child turn and before the parent's end."""
    _, chat, call = await _forked(exam)
    ends_with_its_result(chat, call)


def ends_with_its_result(chat: Chat, call: Any) -> None:
    """Expect children, result and the parent's end in this order."""
    parent = expect.first("the turn of the fork", (it for it in chat.replies if call in it.calls), chat.shown)
    done = chat.place("turn:patch", patch_type="tool_result", tool_call_id=call["id"], turn_id=parent.turn_id)
    expect.equal("the status of the fork's result", "done", chat.events[done][1]["data"]["status"])
    ended = chat.place("turn:end", turn_id=parent.turn_id)
    children = [chat.place("turn:end", turn_id=turn.turn_id) for turn in chat.children]
    expect.that(bool(children) and max(children) < done < ended, "children, result, parent's end", chat.shown)


@requirement("BL-FLOW-22")
async def all_turns_are_in_one_stream(exam: BladeExamination) -> None:
    """The same stream has turns without a parent and turns with one, and each stays what it was."""
    _, chat, call = await _forked(exam)
    expect.that(bool(chat.replies) and bool(chat.children), "root turns and child turns", chat.shown)
    for turn in chat.turns:
        expect.that(parent_of(turn.final) in (None, call["id"]), "no parent, or the fork call", turn.final)
        if turn.start is not None:
            expect.equal("the parent at start and end", parent_of(turn.start), parent_of(turn.final))


@requirement("BL-FLOW-24")
async def a_sub_agent_may_ask(exam: BladeExamination) -> None:
    """A sub-agent's question pauses the chat like any other, and its answer lets fork and root finish."""
    talk = await exam.open()
    asked = (await talk.play("fork_ask")).ended("completed")
    question = asked.question()
    owner = expect.first("the turn of the question", (it for it in asked.turns if question in it.calls), asked.shown)
    expect.equal("the name of the call", ASK, question["tool_name"])
    expect.that(parent_of(owner.about) is not None, "the question in a sub-agent's turn", asked.shown)
    await talk.becomes("waiting_for_input")
    chat = (await talk.answer(question)).ended("completed")
    in_order(chat, {turn.turn_id for turn in asked.turns})
    done = [item["tool_call_id"] for item in chat.results]
    expect.that(asked.call(FORK)["id"] in done, "the result of the fork after the answer", chat.shown)
    expect.that(bool(chat.text), "the root to go on with text", chat.shown)
    await talk.becomes("completed")
