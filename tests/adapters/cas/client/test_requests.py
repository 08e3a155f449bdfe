"""What people say and settle, as CAS events: each ask has its kind of answer, and each part its block."""

import pytest

import gateway.model as m
from adapters.cas.client.requests import CANCELLED, answer_event, message_event
from adapters.cas.wire.sessions import SentEvents
from gateway.errors import Unsupported
from gateway.ports.remote import RemoteAsk

CALL = m.ToolCall(call_id="e1", name="t")
PERMISSION, CONTINUATION = m.PermissionAsk(call=CALL), m.ContinuationAsk(turn=1, message="go on?")
CLIENT, ROLLBACK = m.ClientToolAsk(call=CALL), m.RollbackAsk(task_id="t", options=({"id": "a"},))
QUESTION = m.QuestionAsk(
    questions=(m.Question(question="Which?", options=(m.Choice(label="this"), m.Choice(label="that"))),)
)


def words(text: str, *, is_error: bool = False) -> dict[str, object]:
    return {"content": [{"type": "text", "text": text}], "is_error": is_error}


@pytest.mark.parametrize(
    ("ask", "given", "sent"),
    [
        (PERMISSION, m.DecidePermission(request_id="r", granted=True, reason="fine"), {"result": "allow"}),
        (PERMISSION, m.DecidePermission(request_id="r", granted=False), {"result": "deny"}),
        (
            PERMISSION,
            m.DecidePermission(request_id="r", granted=False, reason="n"),
            {"result": "deny", "deny_message": "n"},
        ),
        (PERMISSION, m.Withdraw(request_id="r"), {"result": "deny", "deny_message": CANCELLED}),
        (CONTINUATION, m.ContinueTurn(request_id="r"), {"result": "allow"}),
        (CONTINUATION, m.ContinueTurn(request_id="r", proceed=False), {"result": "deny"}),
        (CLIENT, m.ReturnResult(request_id="r", content="ok"), words("ok")),
        (CLIENT, m.ReturnResult(request_id="r", content="bad", is_error=True), words("bad", is_error=True)),
        (CLIENT, m.Withdraw(request_id="r"), words(CANCELLED, is_error=True)),
        (QUESTION, m.AnswerQuestion(request_id="r", selections={"0": (1,)}), words("that")),
        (QUESTION, m.AnswerQuestion(request_id="r", custom={"0": "neither"}), words("neither")),
        (QUESTION, m.ReturnResult(request_id="r", content="this"), words("this")),
        (QUESTION, m.Withdraw(request_id="r"), words(CANCELLED, is_error=True)),
        (ROLLBACK, m.RollBack(request_id="r", option="a"), words("a")),
        (ROLLBACK, m.RollBack(request_id="r"), words("")),
    ],
)
def test_every_ask_has_its_answer(ask: m.AnyAsk, given: m.Answer, sent: dict[str, object]) -> None:
    told = answer_event(RemoteAsk(ask=ask, ref="e7"), given)
    kind, name = ("user.tool_confirmation", "tool_use_id") if "result" in sent else (
        "user.custom_tool_result", "custom_tool_use_id")
    assert told == {"type": kind, name: "e7", **sent}
    SentEvents.model_validate({"events": [told]})


def test_every_part_has_its_block() -> None:
    parts = (
        m.TextPart(text="look"), m.ImagePart(url="https://example.test/a.png"),
        m.ImagePart(url="data:image/png;charset=x;base64,AA=="),
        m.ImagePart(url="data:;base64,AA==", media_type="image/gif"),
        m.FilePart(name="a.txt", url="https://example.test/a.txt"), m.ThinkingPart(text="hm"), m.DataPart(type="plan"),
    )
    sent = message_event(m.SendMessage(content=parts))
    SentEvents.model_validate({"events": [sent]})
    assert [block["type"] for block in sent["content"]] == ["text", "image", "image", "image", "document"]
    assert [block["source"] for block in sent["content"][1:4]] == [
        {"type": "url", "url": "https://example.test/a.png"},
        {"type": "base64", "media_type": "image/png", "data": "AA=="},
        {"type": "base64", "media_type": "image/gif", "data": "AA=="},
    ]
    assert message_event(m.SendMessage(content="words"))["content"] == [{"type": "text", "text": "words"}]


def test_a_file_that_is_kept_here_cannot_be_handed_on() -> None:
    with pytest.raises(Unsupported, match=r"'a\.txt' is kept here"):
        message_event(m.SendMessage(content=(m.FilePart(name="a.txt", file_id="file_1"),)))
