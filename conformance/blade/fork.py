"""Section fork: sub-agents, their turns and their questions."""

from typing import Any

from conformance.blade.ask import has_bounds
from conformance.blade.chat import ASK, FORK, Chat
from conformance.blade.damaged_members import sound
from conformance.blade.event_order import children_lie_within, parent
from conformance.blade.examination import BladeExamination
from conformance.blade.scene import scene
from conformance.blade.snapshot import parent_of
from conformance.blade.turn_sources import distinct_calls, matched_results
from conformance.kit import expect
from conformance.kit.case import requirement


async def _forked(exam: BladeExamination) -> tuple[Chat, Any]:
    chat = (await scene(exam, "fork")).chat()
    with expect.owned("BL-FLOW-19"):
        return chat, chat.call(FORK)


@requirement("BL-FLOW-19")
async def a_fork_is_a_call_of_agent(exam: BladeExamination) -> None:
    """The call is pending when announced, comes from a root turn, and describes the task."""
    is_fork(*await _forked(exam))


def is_fork(chat: Chat, call: Any) -> None:
    """Expect a pending call of a root turn that describes its task."""
    expect.equal("the status of the fork call", "pending", call["status"])
    described = expect.parsed(sound(call["arguments"]), "the arguments of the fork call")
    told = isinstance(described, dict) and isinstance(described.get("description"), str)
    expect.that(told, "arguments with a description", call["arguments"])
    expect.that(parent(chat.turn_of(call)) is None, "the call in a root turn", chat.shown)


@requirement("BL-FLOW-20")
async def a_sub_agent_speaks_between_call_and_result(exam: BladeExamination) -> None:
    """Every event of a sub-agent's turn lies between the fork call and its result; it says something."""
    speaks_between(*await _forked(exam))


def speaks_between(chat: Chat, call: Any) -> None:
    """Expect the sub-agent's turns between the call and its result."""
    matched_results(chat)
    children_lie_within(chat)
    expect.that(bool(chat.children), "turns of a sub-agent", chat.shown)
    children = [turn for turn in chat.turns if parent_of(turn.start or {}) == call["id"]]
    expect.that(bool(children), "turns that name the fork call from their start", chat.shown)
    for turn in children:
        expect.equal("the role of a sub-agent's turn", "assistant", turn.role)
    expect.that(any(turn.patches for turn in children), "the sub-agent to say something", chat.shown, "BL-FLOW-04")


@requirement("BL-FLOW-21")
async def a_fork_ends_with_its_result(exam: BladeExamination) -> None:
    """The fork's result comes as done in the parent's turn, after the last child turn and before the parent's end."""
    ends_with_its_result(*await _forked(exam))


def ends_with_its_result(chat: Chat, call: Any) -> None:
    """Expect children, result and the parent's end in this order."""
    matched_results(chat)
    owner = chat.turn_of(call)
    with expect.owned("BL-FLOW-06"):
        done = chat.place("turn:patch", patch_type="tool_result", tool_call_id=call["id"])
    expect.equal("the status of the fork's result", "done", chat.events[done][1]["data"]["status"])
    with expect.owned("BL-FLOW-03"):
        ended = chat.place("turn:end", turn_id=owner.turn_id)
        children = [chat.place("turn:end", turn_id=turn.turn_id) for turn in chat.children]
    with expect.owned("BL-FLOW-20"):
        expect.that(bool(children), "turns of a sub-agent", chat.shown)
    expect.that(max(children) < done < ended, "children, result, parent's end", chat.shown)


@requirement("BL-FLOW-22")
async def all_turns_are_in_one_stream(exam: BladeExamination) -> None:
    """The same stream has turns without a parent and turns with one, and each stays what it was."""
    chat, call = await _forked(exam)
    distinct_calls(chat)
    expect.that(bool(chat.replies), "root turns", chat.shown)
    expect.that(bool(chat.children), "turns of a sub-agent", chat.shown, "BL-FLOW-20")
    for turn in chat.turns:
        expect.that(parent_of(turn.final) in (None, call["id"]), "no parent, or the fork call", turn.final)
        if turn.start is not None:
            expect.equal("the parent at start and end", parent_of(turn.start), parent_of(turn.final))


@requirement("BL-FLOW-24")
async def a_sub_agent_may_ask(exam: BladeExamination) -> None:
    """A sub-agent's question comes in its turn, and its answer lets fork and root finish."""
    seen = await scene(exam, "fork_ask")
    asked = seen.chat()
    question = asked.question()
    expect.equal("the name of the call", ASK, question["tool_name"])
    expect.that(parent(asked.turn_of(question)) is not None, "the question in a sub-agent's turn", asked.shown)
    chat = seen.chat(1)
    with expect.owned("BL-FLOW-18"):
        has_bounds(chat, frozenset(turn.turn_id for turn in asked.turns))
    done = [item["tool_call_id"] for item in chat.results]
    expect.that(bool(chat.text), "the root to go on with text", chat.shown)
    is_done = asked.call(FORK)["id"] in done
    expect.that(is_done, "the result of the fork after the answer", chat.shown, "BL-FLOW-06")
