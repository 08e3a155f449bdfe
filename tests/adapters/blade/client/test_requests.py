"""What is sent: messages, answers and new sessions, as Blade's servers take them."""

from typing import Any

import pytest

import gateway.model as m
from adapters.blade.asks import STAY_WORD
from adapters.blade.client.requests import NO_ANSWER, NO_OUTPUT, UNTITLED, answer_body, message_body, session_body
from adapters.blade.wire import ChatSend, NewSession
from gateway.ports.remote import NewRemoteSession, RemoteAsk

CALL = m.ToolCall(call_id="tc_1", name="calc")
PICK = m.Question(question="A?", options=(m.Choice(label="x"), m.Choice(label="y")))
TWO = m.QuestionAsk(questions=(PICK, m.Question(question="B?")))
BACK = m.RollbackAsk(task_id="t", options=({"id": "step"}, {"id": "all"}))


@pytest.mark.parametrize(
    ("ask", "answer", "selections", "custom"),
    [
        (TWO, m.AnswerQuestion(request_id="r", selections={"0": (1,)}, custom={"1": "b"}), {"0": [1]}, {"1": "b"}),
        (TWO, m.AnswerQuestion(request_id="r", selections={"0": (1,)}, message="hm"), {"0": [1]}, {"1": "hm"}),
        (TWO, m.Withdraw(request_id="r"), {}, {"0": NO_ANSWER, "1": NO_ANSWER}),
        (m.PermissionAsk(call=CALL), m.DecidePermission(request_id="r", granted=True), {"0": [0]}, {}),
        (
            m.PermissionAsk(call=CALL),
            m.DecidePermission(request_id="r", granted=False, reason="no"),
            {"0": [1]},
            {"0": "no"},
        ),
        (m.PermissionAsk(call=CALL), m.Withdraw(request_id="r"), {"0": [1]}, {}),
        (m.ContinuationAsk(turn=1, message="?"), m.ContinueTurn(request_id="r"), {"0": [0]}, {}),
        (m.ContinuationAsk(turn=1, message="?"), m.Withdraw(request_id="r"), {"0": [1]}, {}),
        (m.ClientToolAsk(call=CALL), m.ReturnResult(request_id="r", content="9"), {}, {"0": "9"}),
        (m.ClientToolAsk(call=CALL), m.ReturnResult(request_id="r"), {}, {"0": NO_OUTPUT}),
        (m.ClientToolAsk(call=CALL), m.ReturnResult(request_id="r", content="x", is_error=True), {}, {"0": "Error: x"}),
        (BACK, m.RollBack(request_id="r", option="all"), {"0": [1]}, {}),
        (BACK, m.RollBack(request_id="r"), {}, {"0": STAY_WORD}),
    ],
)
def test_an_answer_leaves_nothing_open(ask: m.AnyAsk, answer: m.Answer, selections: Any, custom: Any) -> None:
    body = answer_body("sess_1", RemoteAsk(ask=ask, ref="tc_9"), answer)
    assert body["askuser_answer"] == {"tool_call_id": "tc_9", "selections": selections, "custom": custom}
    assert ChatSend.model_validate(body).askuser_answer is not None


def test_a_message_of_parts() -> None:
    parts = (
        m.TextPart(text="look"), m.ImagePart(url="https://x.test/a.png"), m.ImagePart(url="file:a.png"),
        m.FilePart(name="a.txt", url="data:text/plain;base64,aGk="), m.FilePart(name="b.txt", url="https://x.test/b"),
        m.FilePart(name="c.txt", file_id="file_1"), m.DataPart(type="card", content={"x": 1}),
    )
    body = message_body("sess_1", m.SendMessage(content=parts), m.Settings())
    assert ChatSend.model_validate(body).message
    assert body["message"] == [
        {"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
        {"type": "text", "text": "![image](file:a.png)"}, {"type": "file", "name": "a.txt", "data": "aGk="},
        {"type": "text", "text": "[b.txt](https://x.test/b)"}, {"type": "text", "text": "[c.txt]"},
        {"type": "text", "text": '{"x":1}'},
    ]


def test_what_a_chat_runs_with() -> None:
    command = m.SendMessage(content="hi", mode="dreaming", variables={"n": 7, "tone": "mine"})
    body = message_body("sess_1", command, m.Settings(model="m", options={"tone": "theirs"}, secrets={"key": "k"}))
    assert body["runtime_env"] == {"tone": "mine", "key": "k", "n": "7"}
    assert body["model"] == "m" and "mode" not in body
    assert message_body("s", m.SendMessage(content="hi", model="own"), m.Settings(model="m"))["model"] == "own"


@pytest.mark.parametrize(("tools", "disabled"), [
    (None, None), ({}, True), ({"a": m.Permission.DENY}, True), ({"a": m.Permission.ALLOW}, []),
    ({"a": m.Permission.ALLOW, "b": m.Permission.DENY, "c": m.Permission.ASK}, ["b"]),
])
def test_tools_that_are_denied_are_disabled(tools: Any, disabled: Any) -> None:
    body = session_body(NewRemoteSession(settings=m.Settings(tools=tools)), None)
    assert body.get("disable_tools") == disabled
    assert NewSession.model_validate(body).intent == UNTITLED
