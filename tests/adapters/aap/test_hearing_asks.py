"""What a call that was left open asks of people, and what AAP makes of their answers."""

from typing import Any

import pytest

from adapters.aap.hearing_asks import NOTHING_KNOWN, Given, Toolbox, given_by, questions_in, toolbox_of
from adapters.aap.hearing_wire import CallFrame
from gateway.model import (
    AgentCard,
    AgentTool,
    AnswerQuestion,
    Choice,
    ClientToolAsk,
    ContinuationAsk,
    ContinueTurn,
    DecidePermission,
    Permission,
    PermissionAsk,
    Question,
    QuestionAsk,
    ReturnResult,
    RollBack,
    RollbackAsk,
    Settings,
    ToolCall,
    ToolOrigin,
    ToolSpec,
    Withdraw,
)

CARD = AgentCard(name="a", tools=(
    AgentTool(spec=ToolSpec(name="clock", title="Clock")),
    AgentTool(spec=ToolSpec(name="calc"), permission=Permission.ASK),
))
QUESTIONS = {"questions": [{"question": "Which?", "options": [{"label": "this"}, "that"], "multiSelect": True}]}


def said(name: str, **given: Any) -> CallFrame:
    return CallFrame(tool_call_id="c1", name=name, input=given)


def asked(toolbox: Toolbox, *frames: CallFrame, is_all: bool = True) -> list[str]:
    return [ask.kind for _, ask in toolbox.asks([toolbox.call(frame) for frame in frames], is_all=is_all)]


def test_a_toolbox_knows_what_the_session_chose() -> None:
    chosen = Settings(tools={"calc": Permission.ALLOW}, client_tools=(ToolSpec(name="lamp", title="Lamp"),))
    box = toolbox_of(CARD, chosen)
    assert (box.client, box.server) == ({"lamp"}, {"clock": Permission.DENY, "calc": Permission.ALLOW})
    assert box.titles == {"clock": "Clock", "lamp": "Lamp"}
    assert toolbox_of(CARD, Settings()).server == {"clock": Permission.ALLOW, "calc": Permission.ASK}


def test_a_call_is_somebodys() -> None:
    box = toolbox_of(CARD, Settings(client_tools=(ToolSpec(name="lamp"),)))
    lamp, calc, clock = (box.call(said(name)) for name in ("lamp", "calc", "clock"))
    assert [call.origin for call in (lamp, calc, clock)] == [ToolOrigin.CLIENT, ToolOrigin.BUILTIN, ToolOrigin.BUILTIN]
    assert [call.permission for call in (lamp, calc)] == [Permission.ALLOW, Permission.ASK]
    assert (clock.display_name, clock.input, clock.call_id) == ("Clock", {}, "c1")


def test_what_was_declared_decides_what_is_asked() -> None:
    box = toolbox_of(CARD, Settings(client_tools=(ToolSpec(name="lamp"),)))
    assert asked(box, said("lamp"), said("calc"), said("clock"), said("inner")) == ["client_tool", "permission"]
    assert asked(box, said("AskUserQuestion", **QUESTIONS), said("Agent")) == ["question"]
    assert asked(box, said("calc", **QUESTIONS)) == ["permission"], "it is a tool, whatever its input looks like"
    assert asked(Toolbox(client=frozenset(("ask",))), said("ask", **QUESTIONS)) == ["client_tool"]


def test_a_server_that_waits_waits_for_something() -> None:
    assert asked(NOTHING_KNOWN, said("inner")) == ["permission"]
    assert asked(NOTHING_KNOWN, said("inner"), is_all=False) == []


def test_asks_without_a_call_are_told_as_calls() -> None:
    going_on = NOTHING_KNOWN.without_call(said("confirm_continue", message="go on?", turn=3))
    assert going_on == ContinuationAsk(message="go on?", turn=3)
    options = [{"id": "all"}]
    back = NOTHING_KNOWN.without_call(said("choose_rollback", task_id="t", options=options, error="broke", reason=None))
    assert back == RollbackAsk(task_id="t", options=({"id": "all"},), error="broke")


@pytest.mark.parametrize("frame", [
    said("confirm_continue"), said("confirm_continue", message=3), said("choose_rollback", options="all"),
    said("choose_rollback", options=[1]), said("clock", message="x"),
])
def test_what_only_looks_like_one_is_a_call(frame: CallFrame) -> None:
    assert NOTHING_KNOWN.without_call(frame) is None


def test_a_tool_that_was_declared_under_such_a_name_is_that_tool() -> None:
    frame = said("confirm_continue", message="go on?")
    assert Toolbox(client=frozenset(("confirm_continue",))).without_call(frame) is None
    assert Toolbox(server={"confirm_continue": Permission.ASK}).without_call(frame) is None


def test_questions_are_found_where_they_are() -> None:
    assert questions_in(QUESTIONS) == (
        Question(question="Which?", options=(Choice(label="this"), Choice(label="that")), multi_select=True),
    )
    assert questions_in({"questions": [{"question": "Why?", "header": "H", "options": None}]}) == (
        Question(question="Why?", header="H"),
    )


@pytest.mark.parametrize("given", [{}, {"questions": []}, {"questions": "?"}, {"questions": [{"q": 1}]},
                                   {"questions": [{"question": "Why?"}, 3]}])
def test_no_questions_are_found_where_there_are_none(given: Any) -> None:
    assert questions_in(given) == ()


CALL = ToolCall(call_id="c1", name="calc")
ASKED = QuestionAsk(questions=(Question(question="Which?", options=(Choice(label="this"), Choice(label="that"))),))


@pytest.mark.parametrize(("ask", "answer", "given"), [
    (PermissionAsk(call=CALL), DecidePermission(request_id="a", granted=True), Given(granted=True)),
    (PermissionAsk(call=CALL), DecidePermission(request_id="a", granted=False, reason="no"),
     Given(granted=False, reason="no", content="Tool call denied: no", is_error=True)),
    (PermissionAsk(call=CALL), DecidePermission(request_id="a", granted=False),
     Given(granted=False, content="Tool call denied", is_error=True)),
    (PermissionAsk(call=CALL), Withdraw(request_id="a"),
     Given(granted=False, reason="nobody decided", content="Tool call cancelled", is_error=True)),
    (ClientToolAsk(call=CALL), ReturnResult(request_id="a", content="x", is_error=True),
     Given(content="x", is_error=True)),
    (ClientToolAsk(call=CALL), Withdraw(request_id="a"), Given(content="Tool call cancelled", is_error=True)),
    (ASKED, AnswerQuestion(request_id="a", selections={"0": (1,)}), Given(content="that")),
    (ASKED, Withdraw(request_id="a"), Given(content="Tool call cancelled", is_error=True)),
    (ContinuationAsk(turn=1, message=""), ContinueTurn(request_id="a"), Given(content="yes")),
    (ContinuationAsk(turn=1, message=""), ContinueTurn(request_id="a", proceed=False), Given(content="no")),
    (ContinuationAsk(turn=1, message=""), Withdraw(request_id="a"), Given(content="no")),
    (RollbackAsk(task_id="t", options=()), RollBack(request_id="a", option="all"), Given(content="all")),
    (RollbackAsk(task_id="t", options=()), RollBack(request_id="a"), Given(content="")),
    (RollbackAsk(task_id="t", options=()), Withdraw(request_id="a"), Given(content="")),
])
def test_what_an_answer_is_to_aap(ask: Any, answer: Any, given: Given) -> None:
    assert given_by(ask, answer) == given


def test_an_ask_that_is_told_as_a_call_is_known_among_calls() -> None:
    call = ToolCall(call_id="c", name="confirm_continue", input={"message": "on?"})
    assert NOTHING_KNOWN.stands_in(call)
    assert not Toolbox(client=frozenset(("confirm_continue",))).stands_in(call)
    assert not NOTHING_KNOWN.stands_in(ToolCall(call_id="c", name="calc"))
