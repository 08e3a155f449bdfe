"""ZenFlux, inward: what messages and responses mean."""

from typing import Any

import pytest

import gateway.model as m
from adapters.zenflux.asks import answer_of, option_of
from adapters.zenflux.server.inbound import message_of
from adapters.zenflux.wire import ChatRequest, ChatSend
from gateway.errors import Invalid
from tests.support.dialect_tables import table

CARD = m.AgentCard(name="demo", capabilities=m.AgentCapabilities(images=("http",)))
CALL = m.ToolCall(call_id="call_1", name="calc")
ONE = m.QuestionAsk(questions=(m.Question(question="Which?", options=(m.Choice(label="Red"), m.Choice(label="Blue"))),))
ROLLBACK = m.RollbackAsk(task_id="t", options=({"id": "a", "action": "undo"}, {"action": "restart"}))


def sent(**body: Any) -> m.SendMessage:
    stored = {"file_1": m.FilePart(name="kept.pdf", file_id="file_1", media_type="application/pdf", size=7)}
    command = message_of(ChatSend(user_id="local", **body), CARD, stored, table("zenflux"))
    assert isinstance(command, m.SendMessage)
    return command


def answered(ask: m.AnyAsk, response: Any) -> Any:
    asked = m.OpenAsk(request_id="ask_1", ask=ask, seq=1, at=1.0, turn_id="turn_1", scope_id="root")
    return answer_of(asked, response, table("zenflux"))


def test_plain_words_stay_a_string() -> None:
    assert sent(message="hi", variables={"locale": "en"}) == m.SendMessage(content="hi", variables={"locale": "en"})


def test_files_come_after_the_words() -> None:
    files = [
        {"file_id": "file_1"}, {"file_url": "https://x.test/a/b.png", "file_type": "image/png"},
        {"file_url": "data:image/png;base64,AA", "file_type": "image/png", "file_name": "p.png"},
        {"file_url": "https://x.test/doc.txt", "file_size": 3},
    ]
    assert sent(message="see", files=files).content == (
        m.TextPart(text="see"),
        m.FilePart(name="kept.pdf", file_id="file_1", media_type="application/pdf", size=7),
        m.ImagePart(url="https://x.test/a/b.png", media_type="image/png"),
        m.FilePart(name="p.png", url="data:image/png;base64,AA", media_type="image/png"),
        m.FilePart(name="doc.txt", url="https://x.test/doc.txt", size=3),
    )
    assert sent(files=[{"file_id": "file_1"}]).content == (
        m.FilePart(name="kept.pdf", file_id="file_1", media_type="application/pdf", size=7),)


@pytest.mark.parametrize("body", [{}, {"message": ""}, {"message": "", "files": []}, {"files": [{"file_name": "x"}]}])
def test_nothing_is_no_message(body: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        sent(**body)


def test_both_spellings_of_a_request_mean_the_same() -> None:
    camel = {"message": "x", "userId": "u", "conversationId": "c", "agentId": "a", "backgroundTasks": ["t"]}
    snake = {"message": "x", "user_id": "u", "conversation_id": "c", "agent_id": "a", "background_tasks": ["t"]}
    assert ChatRequest.model_validate(camel) == ChatRequest.model_validate(snake)
    assert ChatRequest.model_validate({"message": "x", "intentId": "a"}).agent_id == "a"


@pytest.mark.parametrize(("response", "granted", "reason"), [
    ("approve", True, None), (" Approve ", True, None), ("yes", True, None), (True, True, None), ("ok", True, None),
    ("reject", False, None), ("no", False, None), (False, False, None), ("not now", False, "not now"),
    (["a"], False, '["a"]'), ({"a": 1}, False, '{"a":1}'), ("", False, ""),
])
def test_a_verdict(response: Any, granted: bool, reason: str | None) -> None:
    command = answered(m.PermissionAsk(call=CALL), response)
    assert command == m.DecidePermission(request_id="ask_1", granted=granted, reason=reason)


@pytest.mark.parametrize("ask", [m.PermissionAsk(call=CALL), ONE, m.ClientToolAsk(call=CALL), ROLLBACK])
@pytest.mark.parametrize("word", ["cancel", "Cancelled"])
def test_nobody_has_to_answer(ask: m.AnyAsk, word: str) -> None:
    assert answered(ask, word) == m.Withdraw(request_id="ask_1")


@pytest.mark.parametrize(("response", "selections", "custom"), [
    ("red", {"0": (0,)}, {}), ("green", {}, {"0": "green"}), (["Blue", "Red"], {"0": (1, 0)}, {}),
    ({"Which?": "Blue"}, {"0": (1,)}, {}), ({"0": ["Red", "mauve"]}, {"0": (0,)}, {"0": "mauve"}),
    (True, {}, {"0": "true"}), ({"0": None}, {}, {}), (["Red", "red"], {"0": (0,)}, {}),
])
def test_a_question(response: Any, selections: dict[str, Any], custom: dict[str, str]) -> None:
    assert answered(ONE, response) == m.AnswerQuestion(request_id="ask_1", selections=selections, custom=custom)


def test_a_tool_of_the_client() -> None:
    ask = m.ClientToolAsk(call=CALL)
    assert answered(ask, "sunny") == m.ReturnResult(request_id="ask_1", content="sunny")
    assert answered(ask, {"t": 20}) == m.ReturnResult(request_id="ask_1", content='{"t":20}')
    assert answered(ask, "reject") == m.ReturnResult(request_id="ask_1", content="reject", is_error=True)


def test_long_work() -> None:
    ask = m.ContinuationAsk(turn=3, message="go on?")
    assert answered(ask, "continue") == m.ContinueTurn(request_id="ask_1", proceed=True)
    assert answered(ask, "stop") == m.ContinueTurn(request_id="ask_1", proceed=False)
    with pytest.raises(Invalid):
        answered(ask, "perhaps")


@pytest.mark.parametrize(("chosen", "option"), [
    (None, "a"), ("approve", "a"), ("a", "a"), ("undo", "a"), (0, "a"), (1, "restart"), ("restart", "restart"),
    ({"action": "restart"}, "restart"),
])
def test_a_rollback(chosen: Any, option: str) -> None:
    assert option_of(ROLLBACK, chosen) == option
    assert answered(ROLLBACK, "a") == m.RollBack(request_id="ask_1", option="a")


@pytest.mark.parametrize("chosen", ["nope", 2, -1, []])
def test_a_rollback_to_nowhere(chosen: Any) -> None:
    with pytest.raises(Invalid):
        option_of(ROLLBACK, chosen)


def test_nothing_to_go_back_to() -> None:
    assert option_of(m.RollbackAsk(task_id="t", options=()), None) is None
