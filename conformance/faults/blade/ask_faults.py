"""Servers that ask wrongly, or take answers wrongly."""

from typing import Any

import orjson

from conformance.faults.blade.bending import bending, setting, where, without
from conformance.faults.blade.ledger import Body, Pending, Refusal, Session, block
from conformance.faults.blade.server import BladeServer
from conformance.faults.fault import fault

ASK = "AskUserQuestion"
ENDS = "gap.turn_ends_tell_what_is_kept"
EMPTY = "ask.an_answer_may_have_an_empty_message"
ELSEWHERE = "ask.an_answer_may_come_from_elsewhere"


@fault("BL-FLOW-10", cases="ask.a_question_pauses_the_turn")
class QuestionCompletesTheTurn(BladeServer):
    """A turn with an open question ends as completed."""

    bends = bending({"turn:end": where(setting(status="completed"), status="paused")})


@fault("BL-FLOW-10", cases="ask.a_question_pauses_the_turn")
class QuestionIsPending(BladeServer):
    """A question is announced as pending."""

    bends = bending({"patch.add_tool_call": where(setting(status="pending"), tool_name=ASK)})


def _bare(call: Body) -> Body:
    told = orjson.loads(call["arguments"])
    asked = [{"question": it["question"], "choices": it["options"]} for it in told["questions"]]
    return {**call, "arguments": orjson.dumps({"questions": asked}).decode()}


@fault("BL-FLOW-11", cases="ask.a_question_has_options")
class OptionsByAnotherName(BladeServer):
    """Options are called choices."""

    bends = bending({"patch.add_tool_call": where(_bare, tool_name=ASK)})


@fault("BL-FLOW-12", cases="ask.a_question_takes_one_option_by_default")
class SeveralForOne(BladeServer):
    """Several options are taken where one is."""

    def check_answer(self, place: int, question: Body, answer: Body) -> None:
        super().check_answer(place, {**question, "multiSelect": True}, answer)


def _anonymous(call: Body) -> Body:
    return {**call, "arguments": orjson.dumps({**orjson.loads(call["arguments"]), "source_loop": None}).decode()}


@fault("BL-FLOW-13", cases="ask.a_root_question_has_no_source_loop")
class SourceUnknown(BladeServer):
    """A sub-agent's question does not say where it comes from."""

    bends = bending({"patch.add_tool_call": where(_anonymous, tool_name=ASK)})


@fault("BL-FLOW-14", cases=f"{EMPTY} {ELSEWHERE}")
class EmptyAnswersRefused(BladeServer):
    """An answer needs words beside it."""

    async def on_chat_send(self, sid: str, body: Body) -> Any:
        if not body.get("message"):
            raise Refusal(400, "Missing session_id or message")
        return await super().on_chat_send(sid, body)


@fault("BL-FLOW-14", cases=ELSEWHERE)
class OnlyTheAskedMayAnswer(BladeServer):
    """An answer from another connection is refused."""

    def __init__(self, key: str | None = None) -> None:
        super().__init__(key)
        self.owners: dict[str, str] = {}

    async def on_chat_send(self, sid: str, body: Body) -> Any:
        if self.owners.setdefault(str(body.get("session_id")), sid) != sid:
            raise Refusal(403, "Access denied")
        return await super().on_chat_send(sid, body)


@fault("BL-FLOW-15", cases="ask.options_are_chosen_by_index")
class OneForSeveral(BladeServer):
    """One option is taken where several are."""

    def check_answer(self, place: int, question: Body, answer: Body) -> None:
        super().check_answer(place, {**question, "multiSelect": False}, answer)


@fault("BL-FLOW-15", cases="ask.an_option_must_exist")
class AnyIndex(BladeServer):
    """An option that does not exist is taken."""

    def check_answer(self, place: int, question: Body, answer: Body) -> None:
        super().check_answer(place, {**question, "options": question["options"] * 50}, answer)


@fault("BL-FLOW-16", cases="ask.an_answer_may_be_in_own_words")
class WordsRefused(BladeServer):
    """Own words are no answer."""

    def check_answer(self, place: int, question: Body, answer: Body) -> None:
        super().check_answer(place, question, {**answer, "custom": {}})


@fault("BL-FLOW-17", "BL-GAP-15", cases="ask.every_question_must_be_answered gap.a_wrong_answer_is_refused_in_words")
class AnyAnswerWillDo(BladeServer):
    """An answer may leave questions open."""

    def check_answer(self, place: int, question: Body, answer: Body) -> None:
        """Nothing is checked."""


@fault("BL-FLOW-18", cases="ask.an_answered_loop_is_an_ordinary_chat")
class NoStartAfterAnswer(BladeServer):
    """After an answer there is no chat:start."""

    def __init__(self, key: str | None = None) -> None:
        super().__init__(key)
        self.answering: set[str] = set()

    def begin(self, session: Session, body: Body, pending: Pending | None) -> None:
        if pending is not None:
            self.answering.add(session.id)
        super().begin(session, body, pending)

    def events(self, session: Session, name: str, body: Any) -> list[tuple[str, Any]]:
        return [] if name == "chat:start" and session.id in self.answering else [(name, body)]


@fault("BL-GAP-05", cases="gap.a_pause_is_named")
class PauseUnnamed(BladeServer):
    """chat:end does not say what it waits for."""

    bends = bending({"chat:end": without("pause_tool", "pause_tool_data")})


@fault("BL-GAP-14", cases="gap.an_answer_is_kept")
class AnswerForgotten(BladeServer):
    """The answer is not kept."""

    async def user_turn(self, session: Session, blocks: list[Body]) -> None:
        await super().user_turn(session, [it for it in blocks if it["type"] == "text"] or [block("text", "…")])


@fault("BL-GAP-14", cases=ENDS)
class AnsweredInSilence(BladeServer):
    """A turn that was paused has no other turn:end when its question is settled."""

    async def end_again(self, session: Session, turn: Body) -> None:
        return None


@fault("BL-GAP-14", cases=ENDS)
class EndsBeforeTheAnswer(BladeServer):
    """The turn of a question ends a second time as it ended the first time."""

    async def end_again(self, session: Session, turn: Body) -> None:
        await super().end_again(session, turn | {"status": "paused"})


@fault("BL-GAP-14", cases=ENDS)
class ForksWaitForGood(BladeServer):
    """A fork whose question was answered is told as waiting at the end of its turn."""

    async def end_again(self, session: Session, turn: Body) -> None:
        waiting = [call | {"status": "awaiting_answer"} for call in turn["tool_calls"] if call["tool_name"] == "Agent"]
        await super().end_again(session, turn | ({"tool_calls": waiting} if waiting else {}))


@fault(
    "BL-GAP-15",
    "BL-GAP-03",
    "BL-GAP-17",
    cases="""
    gap.a_wrong_answer_is_refused_in_words gap.incomplete_messages_are_refused_in_words gap.a_busy_session_refuses""",
)
class RefusesInSilence(BladeServer):
    """What cannot be taken is dropped without a word."""

    async def refuse(self, sid: str, name: str, body: Any, refusal: Refusal) -> Any:
        return None


@fault("BL-GAP-16", cases="gap.a_message_passes_over_a_question")
class QuestionsStayOpen(BladeServer):
    """A question that was passed over stays open."""

    def pass_over(self, session: Session) -> None:
        """Nothing is cancelled."""
