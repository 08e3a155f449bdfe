"""Section ask: questions, and what came of their answers."""

from collections.abc import Iterator
from typing import Any

from conformance.blade.ask import is_ordinary, pauses
from conformance.blade.chat import ASK, EVENTS
from conformance.blade.conversation import questions
from conformance.blade.offline.packets import Packet
from conformance.blade.offline.view import BladeView, RecordedChat
from conformance.blade.schema_owners import SCHEMAS, expect_shape
from conformance.blade.snapshot import parent_of, read
from conformance.kit import expect
from conformance.offline.recording import Exchange, mapping
from conformance.offline.rule import rule

Found = Iterator[Exchange | str]


def _asked(view: BladeView) -> Iterator[tuple[RecordedChat, Any]]:
    """Every question that was asked, with its chat."""
    for spoken in view.whole:
        for call in spoken.chat.calls:
            if call["tool_name"] == ASK and not SCHEMAS.problems("question", read(call["arguments"])):
                yield spoken, call


@rule("BL-FLOW-11", needs="question")
def the_arguments_are_questions(view: BladeView) -> Found:
    """The arguments of a question fit their schema."""
    for spoken in view.whole:
        for call in spoken.chat.calls:
            if call["tool_name"] == ASK:
                yield spoken.place
                expect_shape("question", read(call["arguments"]), f"the arguments of {ASK}")


@rule("BL-FLOW-10", needs="question of the root")
def a_question_pauses_the_turn(view: BladeView) -> Found:
    """add_tool_call (awaiting_answer), turn:end (paused), chat:end (completed), and no result."""
    for spoken, call in _asked(view):
        owner = next(turn for turn in spoken.chat.turns if call in turn.calls)
        if parent_of(owner.about) is None and not spoken.is_answer and spoken.status == "completed":
            yield spoken.place
            pauses(spoken.chat)


@rule("BL-FLOW-12", needs="question")
def a_question_takes_one_or_several(view: BladeView) -> Found:
    """multiSelect is a boolean, null or absent."""
    for spoken, call in _asked(view):
        yield spoken.place
        for item in questions(call):
            expect.that(item.get("multiSelect") in (None, True, False), "multiSelect: a boolean or null", item)


@rule("BL-FLOW-13", needs="question")
def a_source_loop_is_a_sub_agents(view: BladeView) -> Found:
    """source_loop is null or absent at the root and an object for a sub-agent."""
    for spoken, call in _asked(view):
        owner = next(turn for turn in spoken.chat.turns if call in turn.calls)
        source = read(call["arguments"]).get("source_loop")
        yield spoken.place
        is_child = parent_of(owner.about) is not None
        expect.equal("source_loop as an object", is_child, isinstance(source, dict))


def _right(call: Any, answer: Any) -> bool | None:
    """Whether an answer settles every question of the call, as far as can be told."""
    if not isinstance(answer, dict):
        return None
    selections, custom = mapping(answer.get("selections")), mapping(answer.get("custom"))
    for place, item in enumerate(questions(call)):
        chosen = selections.get(str(place)) or []
        is_one = item.get("multiSelect") or len(chosen) <= 1
        is_there = all(isinstance(it, int) and 0 <= it < len(item["options"]) for it in chosen)
        if (not chosen and not custom.get(str(place))) or not is_one or not is_there:
            return False
    return True


def _answers(view: BladeView) -> Iterator[tuple[str, bool, str, bool]]:
    """Every answer to a question that was asked before.

    Its place, whether it is right, what came first of it, and whether the question was still open.
    """
    calls = {str(call["id"]): (spoken, call) for spoken, call in _asked(view)}
    for link, packet in view.sends:
        body = packet.body if isinstance(packet.body, dict) else {}
        answer = body.get("askuser_answer")
        name = str(mapping(answer).get("tool_call_id"))
        later = [it for it in link.heard(*EVENTS, "system:error") if it.order > packet.order]
        later = [it for it in later if mapping(it.body).get("session_id") in (None, body.get("session_id"))]
        following = [it.order for it in link.sent("chat:send") if it.order > packet.order]
        later = [it for it in later if not following or it.order < following[0]]
        is_right = _right(calls[name][1], answer) if name in calls else None
        if is_right is not None and later:
            yield packet.place, is_right, later[0].name, _is_open(view, calls[name][0], packet, str(name))


def _is_open(view: BladeView, spoken: RecordedChat, packet: Packet, name: str) -> bool:
    """Whether nothing but wrong answers came between the question and this answer."""
    for _, it in view.sends:
        is_between = spoken.end < it.order < packet.order and isinstance(it.body, dict)
        if is_between and it.body.get("session_id") == spoken.session:
            answer = it.body.get("askuser_answer")
            is_other = not isinstance(answer, dict) or answer.get("tool_call_id") != name
            if is_other or _right(next(call for call in spoken.chat.calls if call["id"] == name), answer):
                return False
    return packet.order > spoken.end


@rule("BL-FLOW-14", "BL-FLOW-15", "BL-FLOW-18", needs="right answer to a question")
def an_answer_resumes_the_loop(view: BladeView) -> Found:
    """An answer that settles every question with options that exist starts a chat, once."""
    for place, is_right, came, is_open in _answers(view):
        if is_right and is_open:
            yield place
            expect.that(came != "system:error", "the answer to be taken", came, "BL-FLOW-14")
            expect.that(came == "chat:start", "chat:start after the answer", came, "BL-FLOW-18")


@rule("BL-FLOW-17", "BL-GAP-15", needs="answer that leaves a question open or chooses what is not there")
def a_wrong_answer_resumes_nothing(view: BladeView) -> Found:
    """An answer that leaves a question open, or chooses too much, starts no chat."""
    for place, is_right, came, _ in _answers(view):
        if not is_right:
            yield place
            expect.that(came != "chat:start", "no chat to start", came)


@rule("BL-FLOW-18", "BL-FLOW-24", needs="chat that an answer started")
def an_answered_loop_is_an_ordinary_chat(view: BladeView) -> Found:
    """After the answer the events are those of a chat: the agent goes on to its text, or to another question."""
    for spoken in view.completed:
        if spoken.is_answer:
            yield spoken.place
            known = frozenset(turn.turn_id for it in view.earlier(spoken) for turn in it.chat.turns)
            is_ordinary(spoken.chat, known)


@rule("BL-FLOW-24", needs="question of a sub-agent")
def a_sub_agents_question_pauses_the_chat(view: BladeView) -> Found:
    """A sub-agent's question is in a sub-agent's turn, and the chat ends completed."""
    for spoken, call in _asked(view):
        owner = next(turn for turn in spoken.chat.turns if call in turn.calls)
        if parent_of(owner.about) is not None:
            yield spoken.place
            expect.equal("the status of chat:end", "completed", spoken.status)
