"""What people said, read out of what their programs sent: each dialect in its own way, through its own table."""

from typing import Any

import pytest

import gateway.model as m
from adapters.zenflux.asks import AskRef, encode_ref
from gateway.ports.remote import ParsedFrame
from tests.support.dialect_parts import dialects_with, part
from tests.support.dialect_tables import DIALECTS, dialect, table

CALL = m.ToolCall(call_id="call_1", name="calc")
PERMISSION, OWN = m.PermissionAsk(call=CALL), m.ClientToolAsk(call=CALL)
QUESTION = m.QuestionAsk(
    questions=(m.Question(question="Which?", options=(m.Choice(label="Red"), m.Choice(label="Blue"))),)
)
GO_ON = m.ContinuationAsk(turn=1, message="go on?")
BACK = m.RollbackAsk(task_id="t", options=({"id": "one"}, {"id": "two"}))


def view(**asks: m.AnyAsk) -> m.SessionView:
    made = m.SessionView(session_id="s")
    for ref, ask in asks.items():
        made.asks[ref] = m.OpenAsk(request_id=ref, ask=ask, seq=0, at=0.0, turn_id="", scope_id="root", call_id=ref)
    return made


def recorded(what: str) -> list[tuple[str, str, Any]]:
    """What the dialects know of this in recordings: the dialect, the name of a frame or a request, and its body."""
    return [(name, *row) for name in dialects_with("translation") for row in getattr(part(name, "translation"), what)]


def said(name: str, frame: str, body: Any, **asks: m.AnyAsk) -> list[Any]:
    commands = dialect(name).recorded_commands
    assert commands is not None
    return [*commands(ParsedFrame(frame, body), view(**asks), table(name))]


@pytest.mark.parametrize(("dialect", "name", "body"), recorded("RECORDED_HELLOS"))
def test_a_message(dialect: str, name: str, body: Any) -> None:
    assert said(dialect, name, body) == [m.SendMessage(content="hello")]


def test_a_message_that_a_stream_repeats() -> None:
    body = {"type": "user.message", "id": "evt_1", "created_at": "…", "content": [{"type": "text", "text": "hello"}]}
    assert said("cas", "user.message", body) == [m.SendMessage(content=(m.TextPart(text="hello"),))]


def test_pictures_and_files() -> None:
    image = {"type": "image", "url": "https://x/y.png"}
    assert said("aap", "POST /sessions/s/turns", {"messages": [{"role": "user", "content": [image]}]}) == [
        m.SendMessage(content=(m.ImagePart(url="https://x/y.png"),))]
    file = {"type": "file", "name": "a.txt", "data": "aGk="}
    assert said("blade", "chat:send", {"message": [file]}) == [m.SendMessage(content=(m.FilePart(name="a.txt"),))]


@pytest.mark.parametrize(("dialect", "name", "body"), recorded("RECORDED_STOPS"))
def test_an_interruption(dialect: str, name: str, body: Any) -> None:
    assert said(dialect, name, body) == [m.Interrupt()]


def test_answers_of_aap() -> None:
    path = "POST /sessions/s/turns"
    result = {"messages": [{"role": "tool", "toolCallId": "c", "content": "42"}]}
    verdict = {"messages": [{"role": "tool_permission", "toolCallId": "c", "granted": False, "reason": "no"}]}
    assert said("aap", path, result, c=OWN) == [m.ReturnResult(request_id="c", content="42")]
    assert said("aap", path, verdict, c=PERMISSION) == [m.DecidePermission(request_id="c", granted=False, reason="no")]
    assert said("aap", path, result, c=QUESTION) == [m.AnswerQuestion(request_id="c", custom={"0": "42"}, said="42")]


def test_what_a_session_of_aap_is_made_with() -> None:
    tool = {"name": "paint", "description": "Paints.", "parameters": {}}
    [configured] = said("aap", "POST /aap/sessions", {"agent": {"name": "demo"}, "tools": [tool]})
    assert isinstance(configured, m.Configure)
    assert [spec.name for spec in configured.settings.client_tools] == ["paint"]


def test_answers_of_cas() -> None:
    verdict = {"type": "user.tool_confirmation", "tool_use_id": "e", "result": "allow", "id": "evt_2"}
    assert said("cas", "", verdict, e=PERMISSION) == [m.DecidePermission(request_id="e", granted=True)]
    assert said("cas", "", verdict, e=GO_ON) == [m.ContinueTurn(request_id="e")]
    result = {"type": "user.custom_tool_result", "custom_tool_use_id": "e", "content": "42", "is_error": True}
    assert said("cas", "", {"events": [result]}, e=OWN) == [m.ReturnResult(request_id="e", content="42", is_error=True)]
    assert said("cas", "", result) == said("cas", "", verdict) == []


def test_answers_of_blade() -> None:
    answer = {"message": "", "askuser_answer": {"tool_call_id": "tc_1", "selections": {"0": [1]}}}
    assert said("blade", "chat:send", answer, tc_1=QUESTION) == [
        m.AnswerQuestion(request_id="tc_1", selections={"0": (1,)})]
    assert said("blade", "chat:send", answer, tc_1=PERMISSION) == [m.DecidePermission(request_id="tc_1", granted=False)]


def test_answers_of_zenflux() -> None:
    named, nameless = encode_ref(AskRef(run="r", kind="x", request_id="q")), encode_ref(AskRef(run="r", kind="x"))
    confirm = "POST /api/v1/human-confirmation/q"
    assert said("zenflux", confirm, {"response": "approve"}, **{named: PERMISSION}) == [
        m.DecidePermission(request_id=named, granted=True)]
    assert said("zenflux", "DELETE /api/v1/human-confirmation/q", {}, **{named: PERMISSION}) == [
        m.Withdraw(request_id=named)]
    assert said("zenflux", "POST /x/human-confirmation/other", {"response": "approve"}, **{nameless: GO_ON}) == [
        m.ContinueTurn(request_id=nameless)]
    assert said("zenflux", "POST /x/session/r/confirm_continue", {}, **{nameless: GO_ON}) == [
        m.ContinueTurn(request_id=nameless)]
    assert said("zenflux", "POST /x/session/r/rollback", {"option": 1}, **{nameless: BACK}) == [
        m.RollBack(request_id=nameless, option="two")]
    assert said("zenflux", confirm, {"response": "approve"}) == []
    assert said("zenflux", "POST /x/session/other/rollback", {}, **{nameless: BACK}) == []


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("frame", [
    ParsedFrame("", None), ParsedFrame("text_delta", {"delta": "x"}), ParsedFrame("chat:send", {"message": 7}),
    ParsedFrame("POST /sessions/s/turns", {"messages": []}),
    ParsedFrame("", {"type": "req", "method": "chat.send", "params": 7}),
    ParsedFrame("", {"events": [7]}), ParsedFrame("", {"type": "user.message", "content": 7}),
    ParsedFrame("turn:end", {"role": "user"}),
    ParsedFrame("POST /sessions", {}), ParsedFrame("POST /x/human-confirmation/q", {}),
])
def test_anything_else_says_nothing(name: str, frame: ParsedFrame) -> None:
    assert said(name, frame.name, frame.body) == []
