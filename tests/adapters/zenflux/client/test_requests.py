"""What a decision looks like on its way to a ZenFlux server."""

from typing import Any

import pytest

import gateway.model as m
from adapters.zenflux.asks import AskRef
from adapters.zenflux.client.requests import HttpCall, answer_body, answer_call
from gateway.errors import Invalid

CALL = m.ToolCall(call_id="call_1", name="rm")
PERMISSION, CLIENT = m.PermissionAsk(call=CALL), m.ClientToolAsk(call=CALL)
COLOURS = (m.Choice(label="Red"), m.Choice(label="Green"))
FORM = m.QuestionAsk(
    questions=(
        m.Question(question="Colour?", options=COLOURS),
        m.Question(question="Colours?", options=COLOURS, multi_select=True),
    )
)
ONE = m.QuestionAsk(questions=(m.Question(question="Colour?", options=COLOURS),))
OURS = AskRef(run="run", kind="", request_id="req", ids=("c", "d"), precise=True)
PLAIN = AskRef(run="run", kind="", request_id="req")


@pytest.mark.parametrize(("ask", "ref", "answer", "response"), [
    (PERMISSION, OURS, m.DecidePermission(request_id="", granted=True, reason="no"), "approve"),
    (PERMISSION, OURS, m.DecidePermission(request_id="", granted=False), "reject"),
    (PERMISSION, OURS, m.DecidePermission(request_id="", granted=False, reason="too risky"), "too risky"),
    (PERMISSION, OURS, m.DecidePermission(request_id="", granted=False, reason="Yes"), "reject"),
    (PERMISSION, OURS, m.DecidePermission(request_id="", granted=False, reason="cancel"), "reject"),
    (PERMISSION, PLAIN, m.DecidePermission(request_id="", granted=False, reason="too risky"), "reject"),
    (FORM, OURS, m.AnswerQuestion(request_id="", selections={"0": (1,), "1": (0,)}), {"c": "Green", "d": ["Red"]}),
    (FORM, OURS, m.AnswerQuestion(request_id="", selections={"0": (9,)}, custom={"1": "Blue"}), {"d": ["Blue"]}),
    (FORM, OURS, m.AnswerQuestion(request_id="", message="whatever"), {"c": "whatever", "d": ["whatever"]}),
    (ONE, PLAIN, m.AnswerQuestion(request_id="", selections={"0": (0,)}), "Red"),
    (ONE, PLAIN, m.AnswerQuestion(request_id="", selections={"0": (0, 1)}), ["Red", "Green"]),
    (ONE, PLAIN, m.AnswerQuestion(request_id="", message="none"), "none"),
    (CLIENT, OURS, m.ReturnResult(request_id="", content=(m.TextPart(text="a"), m.TextPart(text="b"))), "ab"),
    (CLIENT, OURS, m.ReturnResult(request_id="", content="x", is_error=True), "reject"),
    (PERMISSION, OURS, m.AnswerQuestion(request_id="", custom={"0": "well"}), "well"),
])
def test_a_response(ask: Any, ref: AskRef, answer: m.Answer, response: Any) -> None:
    assert answer_body(ask, ref, answer) == {"response": response}
    assert answer_call(ask, ref, answer) == HttpCall("POST", "/human-confirmation/req", {"response": response})


GO_ON, BACK = m.ContinuationAsk(turn=1, message="?"), m.RollbackAsk(task_id="t", options=({"id": "a"},))
KNOWN, UNKNOWN = AskRef(run="run", kind="", request_id="req", precise=True), AskRef(run="run", kind="")


@pytest.mark.parametrize(("ask", "ref", "answer", "call"), [
    (GO_ON, KNOWN, m.ContinueTurn(request_id=""), HttpCall("POST", "/human-confirmation/req", {"response": "approve"})),
    (GO_ON, KNOWN, m.ContinueTurn(request_id="", proceed=False),
     HttpCall("POST", "/human-confirmation/req", {"response": "reject"})),
    (GO_ON, UNKNOWN, m.ContinueTurn(request_id=""), HttpCall("POST", "/session/run/confirm_continue")),
    (GO_ON, UNKNOWN, m.ContinueTurn(request_id="", proceed=False), HttpCall("POST", "/session/run/stop")),
    (BACK, KNOWN, m.RollBack(request_id="", option="a"), HttpCall("POST", "/session/run/rollback", {"option": "a"})),
    (BACK, KNOWN, m.RollBack(request_id=""), HttpCall("DELETE", "/human-confirmation/req")),
    (BACK, UNKNOWN, m.RollBack(request_id=""), HttpCall("POST", "/session/run/stop")),
    (FORM, KNOWN, m.Withdraw(request_id=""), HttpCall("DELETE", "/human-confirmation/req")),
    (GO_ON, UNKNOWN, m.Withdraw(request_id=""), HttpCall("POST", "/session/run/stop")),
])
def test_where_it_goes(ask: Any, ref: AskRef, answer: m.Answer, call: HttpCall) -> None:
    assert answer_call(ask, ref, answer) == call


def test_what_answers_nothing_is_refused() -> None:
    with pytest.raises(Invalid):
        answer_body(PERMISSION, OURS, m.Withdraw(request_id=""))
