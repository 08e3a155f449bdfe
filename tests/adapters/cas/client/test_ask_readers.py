"""Which tool uses are asks, and what a server waits for."""

from typing import Any

import pytest

from adapters.cas.client.ask_readers import OpenAsks, read_ask
from gateway.errors import BackendFailed
from gateway.model import (
    ROOT,
    Choice,
    ClientToolAsk,
    ContinuationAsk,
    Permission,
    PermissionAsk,
    Question,
    QuestionAsk,
    RollbackAsk,
    ToolCall,
    ToolOrigin,
)

QUESTIONS = {"questions": [{"question": "Which?", "header": "", "multiSelect": True, "options": [
    {"label": "this", "description": ""}, {"label": "that", "description": "the other"}, "both"]}]}


def custom(name: str, **input: Any) -> ToolCall:
    return ToolCall(call_id="e1", name=name, input=input, origin=ToolOrigin.CLIENT)


def test_questions_are_read() -> None:
    ask = read_ask(custom("AskUserQuestion", **QUESTIONS), [])
    assert ask == QuestionAsk(questions=(Question(question="Which?", multi_select=True, options=(
        Choice(label="this"), Choice(label="that", description="the other"), Choice(label="both"))),))


def test_questions_belong_to_the_call_that_asks_them() -> None:
    calls = [ToolCall(call_id=f"c{at}", name=name, input=input) for at, (name, input) in enumerate([
        ("AskUserQuestion", QUESTIONS), ("AskUserQuestion", {"questions": []}), ("clock", {})])]
    same, other = custom("AskUserQuestion", **QUESTIONS), custom("AskUserQuestion", questions=[{"question": "Why?"}])
    found = [read_ask(call, calls) for call in (same, other)]
    assert [one.call.call_id for one in found if isinstance(one, QuestionAsk) and one.call] == ["c0", "c1"]


def test_a_state_to_go_back_to_is_read() -> None:
    ask = read_ask(custom("choose_rollback", task_id="t", options=[{"id": "a"}], reason="It broke."), [])
    assert ask == RollbackAsk(task_id="t", options=({"id": "a"},), reason="It broke.")
    bare = read_ask(custom("choose_rollback", options=[{"id": "a"}]), [])
    assert bare == RollbackAsk(task_id="e1", options=({"id": "a"},))


def test_leave_to_go_on_is_read() -> None:
    given = {"message": "On?", "turn": 3}
    call = ToolCall(call_id="e1", name="confirm_continue", input=given, permission=Permission.ASK)
    assert read_ask(call, []) == ContinuationAsk(turn=3, message="On?")


@pytest.mark.parametrize("call", [
    custom("mine"), custom("AskUserQuestion"), custom("AskUserQuestion", questions=[]),
    custom("AskUserQuestion", questions=["Why?"]), custom("choose_rollback"), custom("choose_rollback", options=["a"]),
    custom("confirm_continue", message="On?"),
    ToolCall(call_id="e1", name="confirm_continue", input={"message": "On?"}),
    ToolCall(call_id="e1", name="confirm_continue", permission=Permission.ASK),
    ToolCall(call_id="e1", name="AskUserQuestion", input=QUESTIONS),
])
def test_other_calls_are_calls(call: ToolCall) -> None:
    assert read_ask(call, []) is None


def test_what_is_waited_for_is_what_was_told() -> None:
    asks, free = OpenAsks(), ToolCall(call_id="e1", name="free")
    risky, mine = ToolCall(call_id="e2", name="risky", permission=Permission.ASK), custom("mine")
    asks.made(free, ROOT)
    asks.made(risky, "scope_1")
    assert [(one.ask, one.scope_id) for one in asks.waiting(["e2"])] == [(PermissionAsk(call=risky), "scope_1")]
    assert [one.ref for one in asks.waiting(["e1", "e2"])] == ["e1", "e2"], "whatever it had said of it before"
    assert [one.ref for one in asks.waiting(None)] == ["e2"]
    asks.made(mine, ROOT)
    assert asks.waiting(["e1"])[0].ask == ClientToolAsk(call=mine)
    asks.settled("e1")
    asks.settled("e2")
    for ids in (None, [], ["e1"], "e1", [5]):
        with pytest.raises(BackendFailed, match="waits for"):
            asks.waiting(ids)
