"""What a decision looks like on its way to a ZenFlux server."""

from typing import Any

import pytest

from adapters.zenflux.asks import AskRef
from adapters.zenflux.client.requests import HttpCall, answer_call, answer_response
from gateway.errors import Invalid
from gateway.model import (
    Answer,
    AnswerQuestion,
    Choice,
    ClientToolAsk,
    ContinuationAsk,
    ContinueTurn,
    DecidePermission,
    PermissionAsk,
    Question,
    QuestionAsk,
    ReturnResult,
    RollBack,
    RollbackAsk,
    TextPart,
    ToolCall,
    Withdraw,
)

CALL = ToolCall(call_id="call_1", name="rm")
PERMISSION, CLIENT = PermissionAsk(call=CALL), ClientToolAsk(call=CALL)
COLOURS = (Choice(label="Red"), Choice(label="Green"))
FORM = QuestionAsk(questions=(
    Question(question="Colour?", options=COLOURS), Question(question="Colours?", options=COLOURS, multi_select=True)))
ONE = QuestionAsk(questions=(Question(question="Colour?", options=COLOURS),))
OURS = AskRef(run="run", kind="", request_id="req", ids=("c", "d"), precise=True)
PLAIN = AskRef(run="run", kind="", request_id="req")


@pytest.mark.parametrize(("ask", "ref", "answer", "response"), [
    (PERMISSION, OURS, DecidePermission(request_id="", granted=True, reason="no"), "approve"),
    (PERMISSION, OURS, DecidePermission(request_id="", granted=False), "reject"),
    (PERMISSION, OURS, DecidePermission(request_id="", granted=False, reason="too risky"), "too risky"),
    (PERMISSION, OURS, DecidePermission(request_id="", granted=False, reason="Yes"), "reject"),
    (PERMISSION, OURS, DecidePermission(request_id="", granted=False, reason="cancel"), "reject"),
    (PERMISSION, PLAIN, DecidePermission(request_id="", granted=False, reason="too risky"), "reject"),
    (FORM, OURS, AnswerQuestion(request_id="", selections={"0": (1,), "1": (0,)}), {"c": "Green", "d": ["Red"]}),
    (FORM, OURS, AnswerQuestion(request_id="", selections={"0": (9,)}, custom={"1": "Blue"}), {"d": ["Blue"]}),
    (FORM, OURS, AnswerQuestion(request_id="", message="whatever"), {"c": "whatever", "d": ["whatever"]}),
    (ONE, PLAIN, AnswerQuestion(request_id="", selections={"0": (0,)}), "Red"),
    (ONE, PLAIN, AnswerQuestion(request_id="", selections={"0": (0, 1)}), ["Red", "Green"]),
    (ONE, PLAIN, AnswerQuestion(request_id="", message="none"), "none"),
    (CLIENT, OURS, ReturnResult(request_id="", content=(TextPart(text="a"), TextPart(text="b"))), "ab"),
    (CLIENT, OURS, ReturnResult(request_id="", content="x", is_error=True), "reject"),
    (PERMISSION, OURS, AnswerQuestion(request_id="", custom={"0": "well"}), "well"),
])
def test_a_response(ask: Any, ref: AskRef, answer: Answer, response: Any) -> None:
    assert answer_response(ask, ref, answer) == response
    assert answer_call(ask, ref, answer) == HttpCall("POST", "/human-confirmation/req", {"response": response})


GO_ON, BACK = ContinuationAsk(turn=1, message="?"), RollbackAsk(task_id="t", options=({"id": "a"},))
KNOWN, UNKNOWN = AskRef(run="run", kind="", request_id="req", precise=True), AskRef(run="run", kind="")


@pytest.mark.parametrize(("ask", "ref", "answer", "call"), [
    (GO_ON, KNOWN, ContinueTurn(request_id=""), HttpCall("POST", "/human-confirmation/req", {"response": "approve"})),
    (GO_ON, KNOWN, ContinueTurn(request_id="", proceed=False),
     HttpCall("POST", "/human-confirmation/req", {"response": "reject"})),
    (GO_ON, UNKNOWN, ContinueTurn(request_id=""), HttpCall("POST", "/session/run/confirm_continue")),
    (GO_ON, UNKNOWN, ContinueTurn(request_id="", proceed=False), HttpCall("POST", "/session/run/stop")),
    (BACK, KNOWN, RollBack(request_id="", option="a"), HttpCall("POST", "/session/run/rollback", {"option": "a"})),
    (BACK, KNOWN, RollBack(request_id=""), HttpCall("DELETE", "/human-confirmation/req")),
    (BACK, UNKNOWN, RollBack(request_id=""), HttpCall("POST", "/session/run/stop")),
    (FORM, KNOWN, Withdraw(request_id=""), HttpCall("DELETE", "/human-confirmation/req")),
    (GO_ON, UNKNOWN, Withdraw(request_id=""), HttpCall("POST", "/session/run/stop")),
])
def test_where_it_goes(ask: Any, ref: AskRef, answer: Answer, call: HttpCall) -> None:
    assert answer_call(ask, ref, answer) == call


def test_what_answers_nothing_is_refused() -> None:
    with pytest.raises(Invalid):
        answer_response(PERMISSION, OURS, Withdraw(request_id=""))
