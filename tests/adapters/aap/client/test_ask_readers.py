"""What a call that was left open asks of people, and what AAP makes of their answers."""

from typing import Any

import pytest

import gateway.model as m
from adapters.aap.asks import WireAnswer, wire_answer
from adapters.aap.client.readers import NO_TOOLS_KNOWN, CallFrame, SessionTools, session_tools_of

CARD = m.AgentCard(name="a", tools=(
    m.AgentTool(spec=m.ToolSpec(name="clock", title="Clock")),
    m.AgentTool(spec=m.ToolSpec(name="calc"), permission=m.Permission.ASK),
))
QUESTIONS = {"questions": [{"question": "Which?", "options": [{"label": "this"}, "that"], "multiSelect": True}]}


def said(name: str, **given: Any) -> CallFrame:
    return CallFrame(tool_call_id="c1", name=name, input=given)


def asked(toolbox: SessionTools, *frames: CallFrame, is_all: bool = True) -> list[str]:
    return [ask.kind for _, ask in toolbox.asks([toolbox.call(frame) for frame in frames], is_all=is_all)]


def test_a_toolbox_knows_what_the_session_chose() -> None:
    chosen = m.Settings(tools={"calc": m.Permission.ALLOW}, client_tools=(m.ToolSpec(name="lamp", title="Lamp"),))
    box = session_tools_of(CARD, chosen)
    assert (box.client, box.server) == ({"lamp"}, {"clock": m.Permission.DENY, "calc": m.Permission.ALLOW})
    assert box.titles == {"clock": "Clock", "lamp": "Lamp"}
    assert session_tools_of(CARD, m.Settings()).server == {"clock": m.Permission.ALLOW, "calc": m.Permission.ASK}


def test_a_call_is_somebodys() -> None:
    box = session_tools_of(CARD, m.Settings(client_tools=(m.ToolSpec(name="lamp"),)))
    lamp, calc, clock = (box.call(said(name)) for name in ("lamp", "calc", "clock"))
    assert [call.origin for call in (lamp, calc, clock)] == [
        m.ToolOrigin.CLIENT,
        m.ToolOrigin.BUILTIN,
        m.ToolOrigin.BUILTIN,
    ]
    assert [call.permission for call in (lamp, calc)] == [m.Permission.ALLOW, m.Permission.ASK]
    assert (clock.display_name, clock.input, clock.call_id) == ("Clock", {}, "c1")


def test_what_was_declared_decides_what_is_asked() -> None:
    box = session_tools_of(CARD, m.Settings(client_tools=(m.ToolSpec(name="lamp"),)))
    assert asked(box, said("lamp"), said("calc"), said("clock"), said("inner")) == ["client_tool", "permission"]
    assert asked(box, said("AskUserQuestion", **QUESTIONS), said("Agent")) == ["question"]
    assert asked(box, said("calc", **QUESTIONS)) == ["permission"], "it is a tool, whatever its input looks like"
    assert asked(SessionTools(client=frozenset(("ask",))), said("ask", **QUESTIONS)) == ["client_tool"]


def test_a_server_that_waits_waits_for_something() -> None:
    assert asked(NO_TOOLS_KNOWN, said("inner")) == ["permission"]
    assert asked(NO_TOOLS_KNOWN, said("inner"), is_all=False) == []


def test_asks_without_a_call_are_told_as_calls() -> None:
    going_on = NO_TOOLS_KNOWN.ask_without_call(said("confirm_continue", message="go on?", turn=3))
    assert going_on == m.ContinuationAsk(message="go on?", turn=3)
    options = [{"id": "all"}]
    back = NO_TOOLS_KNOWN.ask_without_call(
        said("choose_rollback", task_id="t", options=options, error="broke", reason=None)
    )
    assert back == m.RollbackAsk(task_id="t", options=({"id": "all"},), error="broke")


@pytest.mark.parametrize("frame", [
    said("confirm_continue"), said("confirm_continue", message=3), said("choose_rollback", options="all"),
    said("choose_rollback", options=[1]), said("clock", message="x"),
])
def test_what_only_looks_like_one_is_a_call(frame: CallFrame) -> None:
    assert NO_TOOLS_KNOWN.ask_without_call(frame) is None


def test_a_tool_that_was_declared_under_such_a_name_is_that_tool() -> None:
    frame = said("confirm_continue", message="go on?")
    assert SessionTools(client=frozenset(("confirm_continue",))).ask_without_call(frame) is None
    assert SessionTools(server={"confirm_continue": m.Permission.ASK}).ask_without_call(frame) is None


CALL = m.ToolCall(call_id="c1", name="calc")
ASKED = m.QuestionAsk(
    questions=(m.Question(question="Which?", options=(m.Choice(label="this"), m.Choice(label="that"))),)
)


@pytest.mark.parametrize(("ask", "answer", "given"), [
    (m.PermissionAsk(call=CALL), m.DecidePermission(request_id="a", granted=True), WireAnswer(granted=True)),
    (m.PermissionAsk(call=CALL), m.DecidePermission(request_id="a", granted=False, reason="no"),
     WireAnswer(granted=False, reason="no", content="Tool call denied: no", is_error=True)),
    (m.PermissionAsk(call=CALL), m.DecidePermission(request_id="a", granted=False),
     WireAnswer(granted=False, content="Tool call denied", is_error=True)),
    (m.PermissionAsk(call=CALL), m.Withdraw(request_id="a"),
     WireAnswer(granted=False, reason="nobody decided", content="Tool call cancelled", is_error=True)),
    (m.ClientToolAsk(call=CALL), m.ReturnResult(request_id="a", content="x", is_error=True),
     WireAnswer(content="x", is_error=True)),
    (m.ClientToolAsk(call=CALL), m.Withdraw(request_id="a"), WireAnswer(content="Tool call cancelled", is_error=True)),
    (ASKED, m.AnswerQuestion(request_id="a", selections={"0": (1,)}), WireAnswer(content="that")),
    (ASKED, m.Withdraw(request_id="a"), WireAnswer(content="Tool call cancelled", is_error=True)),
    (m.ContinuationAsk(turn=1, message=""), m.ContinueTurn(request_id="a"), WireAnswer(content="yes")),
    (m.ContinuationAsk(turn=1, message=""), m.ContinueTurn(request_id="a", proceed=False), WireAnswer(content="no")),
    (m.ContinuationAsk(turn=1, message=""), m.Withdraw(request_id="a"), WireAnswer(content="no")),
    (m.RollbackAsk(task_id="t", options=()), m.RollBack(request_id="a", option="all"), WireAnswer(content="all")),
    (m.RollbackAsk(task_id="t", options=()), m.RollBack(request_id="a"), WireAnswer(content="")),
    (m.RollbackAsk(task_id="t", options=()), m.Withdraw(request_id="a"), WireAnswer(content="")),
])
def test_what_an_answer_is_to_aap(ask: Any, answer: Any, given: WireAnswer) -> None:
    assert wire_answer(ask, answer) == given


def test_an_ask_that_is_told_as_a_call_is_known_among_calls() -> None:
    call = m.ToolCall(call_id="c", name="confirm_continue", input={"message": "on?"})
    assert NO_TOOLS_KNOWN.is_ask(call)
    assert not SessionTools(client=frozenset(("confirm_continue",))).is_ask(call)
    assert not NO_TOOLS_KNOWN.is_ask(m.ToolCall(call_id="c", name="calc"))
