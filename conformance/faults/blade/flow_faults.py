"""Servers that tell a chat in the wrong order, or not all of it."""

from typing import Any

from conformance.faults.blade.bending import bending, changing, setting, where
from conformance.faults.blade.ledger import Body, Session
from conformance.faults.blade.script import Move, Use
from conformance.faults.blade.server import BladeServer
from conformance.faults.fault import fault

Events = list[tuple[str, Any]]
PLAIN = "flow.a_chat_without_tools_is_in_order"


@fault("BL-FLOW-01", "BL-FLOW-04", cases=f"flow.one_message_is_one_loop {PLAIN}")
class TwoStarts(BladeServer):
    """A chat starts twice."""

    def events(self, session: Session, name: str, body: Any) -> Events:
        return [(name, body)] * (2 if name == "chat:start" else 1)


@fault("BL-FLOW-02", cases="flow.a_loop_ends_with_text")
class SilentAfterTools(BladeServer):
    """The loop ends with the tools."""

    def moves(self, message: str, mode: str | None) -> list[Move]:
        moves = super().moves(message, mode)
        return moves[:-1] if any(isinstance(move, Use) for move in moves) else moves


@fault("BL-FLOW-03", cases="flow.every_turn_has_a_start_and_an_end")
class TurnsStartTwice(BladeServer):
    """Turns start twice."""

    def events(self, session: Session, name: str, body: Any) -> Events:
        return [(name, body)] * (2 if name == "turn:start" else 1)


@fault("BL-FLOW-04", "BL-FLOW-01", cases=f"{PLAIN} flow.one_message_is_one_loop")
class UserUnheard(BladeServer):
    """The user's turn is not told."""

    async def tell_turn(self, session: Session, name: str, turn: Body) -> None:
        if turn["role"] != "user":
            await super().tell_turn(session, name, turn)


@fault("BL-FLOW-04", cases=PLAIN)
class PatchesAfterTheEnd(BladeServer):
    """The last delta comes after turn:end."""

    def __init__(self, key: str | None = None) -> None:
        super().__init__(key)
        self.held: dict[str, Any] = {}

    def events(self, session: Session, name: str, body: Any) -> Events:
        last = self.held.pop(session.id, None)
        if name == "turn:patch":
            self.held[session.id] = body
            return [(name, last)] if last else []
        return [(name, body), *([("turn:patch", last)] if last else [])]


@fault(
    "BL-FLOW-05",
    "BL-FLOW-30",
    "BL-BLK-14",
    cases="""
    flow.deltas_are_the_final_text flow.a_turn_end_tells_everything block.text_blocks_are_the_text""",
)
class FirstDeltaLost(BladeServer):
    """The first patch of every turn is not sent."""

    def events(self, session: Session, name: str, body: Any) -> Events:
        return [] if name == "turn:patch" and body["sequence"] == 1 else [(name, body)]


@fault("BL-FLOW-06", cases="flow.a_tool_is_announced_and_answered")
class ResultStillPending(BladeServer):
    """A tool's result comes with the status pending."""

    bends = bending({"patch.tool_result": setting(status="pending")})


@fault("BL-FLOW-07", cases="flow.results_belong_to_calls")
class ResultsTwice(BladeServer):
    """Every result is told twice."""

    def events(self, session: Session, name: str, body: Any) -> Events:
        twice = name == "turn:patch" and body["patch_type"] == "tool_result"
        return [(name, body)] * (2 if twice else 1)


@fault("BL-FLOW-08", cases="flow.text_follows_the_result")
class TextBeforeTools(BladeServer):
    """The reply is told before the tool is called."""

    def moves(self, message: str, mode: str | None) -> list[Move]:
        moves = super().moves(message, mode)
        return [*moves[-1:], *moves[:-1]]


@fault("BL-FLOW-09", cases="flow.rounds_follow_each_other")
class ResultsInTheNextTurn(BladeServer):
    """A tool's result is told in the turn after its call."""

    def __init__(self, key: str | None = None) -> None:
        super().__init__(key)
        self.held: dict[str, Any] = {}

    def events(self, session: Session, name: str, body: Any) -> Events:
        if name == "turn:patch" and body["patch_type"] == "tool_result":
            self.held[session.id] = body
            return []
        late = self.held.pop(session.id, None) if name == "turn:start" else None
        return [(name, body), *([("turn:patch", {**late, "turn_id": body["turn_id"]})] if late else [])]


@fault("BL-FLOW-30", cases="flow.a_turn_end_tells_everything")
class EndWithoutCalls(BladeServer):
    """turn:end has no tool calls."""

    bends = bending({"turn:end": setting(tool_calls=[])})


@fault("BL-FLOW-31", cases="flow.the_history_is_what_was_streamed")
class HistoryBackwards(BladeServer):
    """The newest turn comes first."""

    bends = bending({"messages": lambda turns: turns[::-1]})


@fault("BL-FLOW-31", cases="flow.the_history_is_what_was_streamed")
class HistoryOfRootOnly(BladeServer):
    """The history leaves sub-agents out."""

    bends = bending({"messages": lambda turns: [turn for turn in turns if turn["parent_fork_tool_call_id"] is None]})


# -- forks and headless chats ------------------------------------------------------------------------------------------


@fault("BL-FLOW-19", cases="fork.a_fork_is_a_call_of_agent")
class ForkWithoutDescription(BladeServer):
    """A fork does not say what for."""

    bends = bending({"patch.add_tool_call": where(setting(arguments="{}"), tool_name="Agent")})


@fault(
    "BL-FLOW-20",
    "BL-FLOW-22",
    cases="""
    fork.a_sub_agent_speaks_between_call_and_result fork.all_turns_are_in_one_stream""",
)
class ParentOnlyAtTheEnd(BladeServer):
    """turn:start does not name the fork call."""

    bends = bending({"turn:start": setting(parent_fork_tool_call_id=None)})


@fault("BL-FLOW-21", cases="fork.a_fork_ends_with_its_result")
class ForkResultIsError(BladeServer):
    """A fork that went well returns as an error."""

    bends = bending({"patch.tool_result": setting(status="error")})


@fault("BL-FLOW-22", cases="fork.all_turns_are_in_one_stream")
class ParentChanges(BladeServer):
    """turn:end names another fork call."""

    bends = bending({"turn:end": changing("parent_fork_tool_call_id", lambda name: name and "tc_other")})


@fault("BL-FLOW-24", cases="fork.a_sub_agent_may_ask")
class ForkForgottenAfterAnswer(BladeServer):
    """After a sub-agent's question the parent does not go on."""

    async def wait_for_child(self, session: Session, turn: Body, call: Body, rest: list[Move]) -> None:
        await super().wait_for_child(session, turn, call, rest)
        if session.pending is not None:
            session.pending.forks.clear()


@fault("BL-FLOW-25", cases="headless.a_headless_chat_tells_its_events")
class HeadlessIsSilent(BladeServer):
    """A headless chat tells no patches."""

    def events(self, session: Session, name: str, body: Any) -> Events:
        return [] if name == "turn:patch" else [(name, body)]


@fault("BL-FLOW-26", cases="headless.a_headless_chat_has_a_result")
class ResultByAnotherName(BladeServer):
    """The result of a headless chat is called text."""

    def result(self, session: Session, body: Body) -> Body:
        return {"text": super().result(session, body)["output"]}


@fault("BL-FLOW-27", cases="headless.an_output_fits_the_schema_asked_for")
class OutputAsText(BladeServer):
    """Structured output is text."""

    def result(self, session: Session, body: Body) -> Body:
        return {"output": '{"countries": []}', "schema": body.get("output_schema")}


@fault("BL-FLOW-27", cases="headless.an_output_fits_the_schema_asked_for")
class OutputOfAnotherShape(BladeServer):
    """Structured output does not fit the schema."""

    def result(self, session: Session, body: Body) -> Body:
        return {"output": {"lands": []}, "schema": body.get("output_schema")}


@fault("BL-FLOW-28", cases="headless.a_session_can_be_asked_over_rest")
class RestWithoutResult(BladeServer):
    """A chat over REST answers without a result."""

    bends = bending({"rest_chat": setting(result=None)})
