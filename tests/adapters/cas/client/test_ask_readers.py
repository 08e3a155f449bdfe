"""Which tool uses are asks, and what a server waits for."""

from typing import Any

import pytest

import gateway.model as m
from adapters.cas.client.readers import OpenAsks, read_ask
from gateway.errors import BackendFailed

QUESTIONS = {"questions": [{"question": "Which?", "header": "", "multiSelect": True, "options": [
    {"label": "this", "description": ""}, {"label": "that", "description": "the other"}, "both"]}]}


def custom(name: str, **input: Any) -> m.ToolCall:
    return m.ToolCall(call_id="e1", name=name, input=input, origin=m.ToolOrigin.CLIENT)


def test_questions_are_read() -> None:
    ask = read_ask(custom("AskUserQuestion", **QUESTIONS), [])
    assert ask == m.QuestionAsk(questions=(m.Question(question="Which?", multi_select=True, options=(
        m.Choice(label="this"), m.Choice(label="that", description="the other"), m.Choice(label="both"))),))


def test_questions_belong_to_the_call_that_asks_them() -> None:
    calls = [m.ToolCall(call_id=f"c{at}", name=name, input=input) for at, (name, input) in enumerate([
        ("AskUserQuestion", QUESTIONS), ("AskUserQuestion", {"questions": []}), ("clock", {})])]
    same, other = custom("AskUserQuestion", **QUESTIONS), custom("AskUserQuestion", questions=[{"question": "Why?"}])
    found = [read_ask(call, calls) for call in (same, other)]
    assert [one.call.call_id for one in found if isinstance(one, m.QuestionAsk) and one.call] == ["c0", "c1"]


def test_a_state_to_go_back_to_is_read() -> None:
    ask = read_ask(custom("choose_rollback", task_id="t", options=[{"id": "a"}], reason="It broke."), [])
    assert ask == m.RollbackAsk(task_id="t", options=({"id": "a"},), reason="It broke.")
    bare = read_ask(custom("choose_rollback", options=[{"id": "a"}]), [])
    assert bare == m.RollbackAsk(task_id="e1", options=({"id": "a"},))


def test_leave_to_go_on_is_read() -> None:
    given = {"message": "On?", "turn": 3}
    call = m.ToolCall(call_id="e1", name="confirm_continue", input=given, permission=m.Permission.ASK)
    assert read_ask(call, []) == m.ContinuationAsk(turn=3, message="On?")


@pytest.mark.parametrize("call", [
    custom("mine"), custom("AskUserQuestion"), custom("AskUserQuestion", questions=[]),
    custom("AskUserQuestion", questions=["Why?"]), custom("choose_rollback"), custom("choose_rollback", options=["a"]),
    custom("confirm_continue", message="On?"),
    m.ToolCall(call_id="e1", name="confirm_continue", input={"message": "On?"}),
    m.ToolCall(call_id="e1", name="confirm_continue", permission=m.Permission.ASK),
    m.ToolCall(call_id="e1", name="AskUserQuestion", input=QUESTIONS),
])
def test_other_calls_are_calls(call: m.ToolCall) -> None:
    assert read_ask(call, []) is None


def test_what_is_waited_for_is_what_was_told() -> None:
    asks, free = OpenAsks(), m.ToolCall(call_id="e1", name="free")
    risky, mine = m.ToolCall(call_id="e2", name="risky", permission=m.Permission.ASK), custom("mine")
    asks.made(free, m.ROOT)
    asks.made(risky, "scope_1")
    assert [(one.ask, one.scope_id) for one in asks.waiting(["e2"])] == [(m.PermissionAsk(call=risky), "scope_1")]
    assert [one.ref for one in asks.waiting(["e1", "e2"])] == ["e1", "e2"], "whatever it had said of it before"
    assert [one.ref for one in asks.waiting(None)] == ["e2"]
    asks.made(mine, m.ROOT)
    assert asks.waiting(["e1"])[0].ask == m.ClientToolAsk(call=mine)
    asks.settled("e1")
    asks.settled("e2")
    for ids in (None, [], ["e1"], [5], [None]):
        with pytest.raises(BackendFailed, match="waits for"):
            asks.waiting(ids)
