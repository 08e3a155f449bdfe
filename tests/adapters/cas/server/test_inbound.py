"""CAS, inward: what each event of a client asks of the house."""

from typing import Any

import pytest

import gateway.model as m
from adapters.cas.asks import ask_event_id
from adapters.cas.server.inbound import commands_of
from adapters.cas.wire.sessions import SentEvents
from gateway.errors import Invalid, NotPending, Unsupported
from gateway.http import validate
from tests.support.dialect_tables import table

CARD = m.AgentCard(name="demo", capabilities=m.AgentCapabilities(images=("http",)))
SERVER = m.ToolCall(call_id="c1", name="calc")
CLIENT = m.ToolCall(call_id="c2", name="mine", origin=m.ToolOrigin.CLIENT)
QUESTIONS = (m.Question(question="One?"), m.Question(question="Two?"))


def waiting() -> m.SessionView:
    """A session that waits for one of each."""
    events = [
        m.MessageStarted(message_id="m"),
        m.BlockStarted(block_id="b1", message_id="m", kind=m.BlockKind.TOOL_USE, call=SERVER),
        m.BlockEnded(block_id="b1", message_id="m", kind=m.BlockKind.TOOL_USE, call=SERVER),
        m.BlockStarted(block_id="b2", message_id="m", kind=m.BlockKind.TOOL_USE, call=CLIENT),
        m.BlockEnded(block_id="b2", message_id="m", kind=m.BlockKind.TOOL_USE, call=CLIENT),
        m.InputRequested(request_id="permission", ask=m.PermissionAsk(call=SERVER), call_id="c1"),
        m.InputRequested(request_id="client_tool", ask=m.ClientToolAsk(call=CLIENT), call_id="c2"),
        m.InputRequested(request_id="question", ask=m.QuestionAsk(questions=QUESTIONS)),
        m.InputRequested(request_id="continuation", ask=m.ContinuationAsk(turn=1, message="on?")),
        m.InputRequested(request_id="rollback", ask=m.RollbackAsk(task_id="t", options=())),
    ]
    return m.fold("sess_1", [
        m.Record(seq=seq, at=1.0, session_id="sess_1", turn_id="turn_1", event=event)
        for seq, event in enumerate(events, 1)
    ])


TOLD = {"permission": "evt_1_2", "client_tool": "evt_1_4", "question": "evt_1_8", "continuation": "evt_1_9",
        "rollback": "evt_1_10"}


def command(event: dict[str, Any]) -> Any:
    [made] = commands_of(validate(SentEvents, {"events": [event]}).events, waiting(), CARD, table("cas"))
    return made


def test_an_ask_is_known_by_the_event_that_told_it() -> None:
    view = waiting()
    assert {ask.request_id: ask_event_id(view, ask) for ask in view.asks.values()} == TOLD


@pytest.mark.parametrize(("event", "wanted"), [
    ({"type": "user.message", "content": "hi"}, m.SendMessage(content="hi")),
    ({"type": "user.message", "content": [{"type": "text", "text": "hi"}]},
     m.SendMessage(content=(m.TextPart(text="hi"),))),
    ({"type": "user.interrupt"}, m.Interrupt()),
    ({"type": "user.define_outcome", "a": {"b": 1}}, m.CustomCommand(name="define_outcome", payload={"a": {"b": 1}})),
    ({"type": "user.tool_confirmation", "tool_use_id": TOLD["permission"], "result": "allow", "deny_message": "x"},
     m.DecidePermission(request_id="permission", granted=True)),
    ({"type": "user.tool_confirmation", "tool_use_id": TOLD["permission"], "result": "deny", "deny_message": "x"},
     m.DecidePermission(request_id="permission", granted=False, reason="x")),
    ({"type": "user.tool_confirmation", "tool_use_id": TOLD["continuation"], "result": "deny"},
     m.ContinueTurn(request_id="continuation", proceed=False)),
    ({"type": "user.custom_tool_result", "custom_tool_use_id": TOLD["client_tool"]},
     m.ReturnResult(request_id="client_tool")),
    ({"type": "user.custom_tool_result", "custom_tool_use_id": TOLD["client_tool"], "content": "x", "is_error": True},
     m.ReturnResult(request_id="client_tool", content="x", is_error=True)),
    ({"type": "user.custom_tool_result", "custom_tool_use_id": TOLD["question"], "content": " Red "},
     m.AnswerQuestion(request_id="question", custom={"0": "Red", "1": "Red"}, said=" Red ")),
    ({"type": "user.custom_tool_result", "custom_tool_use_id": TOLD["continuation"], "content": "No"},
     m.ContinueTurn(request_id="continuation", proceed=False)),
    ({"type": "user.custom_tool_result", "custom_tool_use_id": TOLD["rollback"], "content": "step"},
     m.RollBack(request_id="rollback", option="step")),
])
def test_what_an_event_asks_for(event: dict[str, Any], wanted: Any) -> None:
    assert command(event) == wanted


@pytest.mark.parametrize(("event", "refusal"), [
    ({"type": "user.tool_confirmation", "tool_use_id": "evt_1_6", "result": "allow"}, NotPending),
    ({"type": "user.custom_tool_result", "custom_tool_use_id": "c2"}, NotPending),
    ({"type": "user.tool_confirmation", "tool_use_id": TOLD["client_tool"], "result": "allow"}, Invalid),
    ({"type": "user.custom_tool_result", "custom_tool_use_id": TOLD["permission"]}, Invalid),
])
def test_an_answer_that_does_not_fit(event: dict[str, Any], refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        command(event)


def test_a_call_is_answered_once() -> None:
    answer = {"type": "user.custom_tool_result", "custom_tool_use_id": TOLD["client_tool"], "content": "x"}
    events = validate(SentEvents, {"events": [answer, answer]}).events
    with pytest.raises(NotPending, match=f"'{TOLD['client_tool']}' is answered twice"):
        commands_of(events, waiting(), CARD, table("cas"))


def content(*blocks: dict[str, Any]) -> Any:
    return command({"type": "user.message", "content": list(blocks)}).content


def test_pictures_and_documents() -> None:
    assert content({"type": "image", "source": {"type": "url", "url": "https://x/a.png"}}) == (
        m.ImagePart(url="https://x/a.png"),)
    assert content({"type": "image", "source": {"type": "file", "file_id": "file_1"}}) == (
        m.FilePart(name="file_1", file_id="file_1"),)
    assert content(
        {"type": "document", "title": "t", "source": {"type": "base64", "media_type": "text/plain", "data": "QQ=="}},
    ) == (m.FilePart(name="t", url="data:text/plain;base64,QQ==", media_type="text/plain"),)
    assert content({"type": "document", "source": {"type": "text", "data": "words"}}) == (m.TextPart(text="words"),)
    with pytest.raises(Unsupported, match="data"):
        content({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}})
