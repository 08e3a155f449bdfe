"""AAP's table against the wire forms of its schema page."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

import gateway.model as m
from adapters.aap.bodies import AgentBody, ServerToolBody, SessionAgentBody
from mappings.language import FEATURES, SupportLevel, Table
from tests.support.frames import BodyEncoder

CALL = m.ToolCall(call_id="call_1", name="search", input={"q": "x"})
MakeRecord = Callable[..., m.Record]


def words(kind: m.BlockKind, delta: str) -> m.BlockDelta:
    return m.BlockDelta(block_id="b", message_id="m", kind=kind, delta=delta)


def ended(stop_reason: m.StopReason) -> m.TurnEnded:
    return m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=stop_reason)


def whole(**block: Any) -> m.BlockEnded:
    return m.BlockEnded(block_id="b", message_id="m", kind=m.BlockKind.TOOL_USE, **block)


SAID: list[tuple[m.Event, list[bytes]]] = [
    (m.TurnStarted(command_id="c"), [b"event: turn_start\ndata: {}\n\n"]),
    (m.TurnResumed(), [b"event: turn_start\ndata: {}\n\n"]),
    (m.TurnSuspended(pending=("r",)), [b'event: turn_stop\ndata: {"stopReason":"tool_use"}\n\n']),
    (ended(m.StopReason.END_TURN), [b'event: turn_stop\ndata: {"stopReason":"end_turn"}\n\n']),
    (words(m.BlockKind.TEXT, "Hi"), [b'event: text_delta\ndata: {"delta":"Hi"}\n\n']),
    (words(m.BlockKind.TEXT, "a\nb\r\n"), [b'event: text_delta\ndata: {"delta":"a\\nb\\r\\n"}\n\n']),
    (words(m.BlockKind.THINKING, "Hm"), [b'event: thinking_delta\ndata: {"delta":"Hm"}\n\n']),
    (words(m.BlockKind.TOOL_USE, '{"q"'), []),
    (whole(call=CALL), [b'event: tool_call\ndata: {"toolCallId":"call_1","name":"search","input":{"q":"x"}}\n\n']),
    (whole(call=CALL, torn=True), []),
    (
        m.ToolReturned(call_id="call_1", content="found"),
        [b'event: tool_result\ndata: {"toolCallId":"call_1","content":"found"}\n\n'],
    ),
    (
        m.ToolReturned(
            call_id="call_1", content=(m.TextPart(text="t"), m.ImagePart(url="https://x/y")), origin=m.ToolOrigin.MCP
        ),
        [
            b'event: tool_result\ndata: {"toolCallId":"call_1","content":[{"type":"text","text":"t"},'
            b'{"type":"image","url":"https://x/y"}]}\n\n'
        ],
    ),
    (m.ToolReturned(call_id="call_1", content="mine", origin=m.ToolOrigin.CLIENT), []),
    (m.InputRequested(request_id="r", ask=m.ClientToolAsk(call=CALL), call_id="call_1"), []),
    (
        m.InputRequested(request_id="r", ask=m.ContinuationAsk(turn=20, message="Go on?")),
        [
            b'event: tool_call\ndata: {"toolCallId":"r","name":"confirm_continue",'
            b'"input":{"message":"Go on?","turn":20},"description":"A person must decide whether the agent goes on. '
            b'Return the text \\"no\\" to stop it; any other text lets it go on."}\n\n'
        ],
    ),
    (
        m.InputRequested(request_id="r", ask=m.RollbackAsk(task_id="t", options=({"id": "a"},), reason="broke")),
        [
            b'event: tool_call\ndata: {"toolCallId":"r","name":"choose_rollback",'
            b'"input":{"task_id":"t","options":[{"id":"a"}],"reason":"broke"},"description":"A person must choose a '
            b'state to go back to. Return the id of one of the options, or an empty text to stay."}\n\n'
        ],
    ),
    (m.FaultRaised(fault=m.Fault(code=m.FaultCode.BACKEND, message="gone")), []),
    (m.SessionCompacted(compaction_id="c", summary="s"), []),
]


@pytest.mark.parametrize(("event", "frames"), SAID, ids=lambda value: getattr(value, "name", ""))
def test_an_event_is_said_as_the_schema_says(
    aap: Table, record: MakeRecord, event: m.Event, frames: list[bytes]
) -> None:
    assert list(BodyEncoder(aap, "sse").record(record(event))) == frames
    assert aap.silent(event) is (frames == [])


@pytest.mark.parametrize("reason", m.StopReason)
def test_every_stop_reason_is_one_of_aaps(aap: Table, record: MakeRecord, reason: m.StopReason) -> None:
    (frame,) = BodyEncoder(aap, "json").record(record(ended(reason)))
    assert orjson.loads(frame)["data"]["stopReason"] in {"end_turn", "tool_use", "max_tokens", "refusal", "error"}


@pytest.mark.parametrize(("reason", "word"), [
    (m.StopReason.MAX_TOKENS, "max_tokens"), (m.StopReason.REFUSAL, "refusal"), (m.StopReason.NEEDS_INPUT, "tool_use"),
    (m.StopReason.INTERRUPTED, "error"), (m.StopReason.TIMEOUT, "error"), (m.StopReason.ERROR, "error"),
    (m.StopReason.MAX_STEPS, "error"),
])
def test_stop_reasons_by_word(aap: Table, reason: m.StopReason, word: str) -> None:
    assert aap.word("stop_reason", reason) == word


def test_cues_of_its_own(aap: Table, record: MakeRecord) -> None:
    say, at = BodyEncoder(aap, "sse").cue, record(m.TurnResumed())
    assert say("whole.text", at, {"text": "Hi"}) == (b'event: text\ndata: {"text":"Hi"}\n\n',)
    assert say("whole.thinking", at, {"text": "Hm"}) == (b'event: thinking\ndata: {"thinking":"Hm"}\n\n',)
    assert say("image.delta", at, {"text": "![](u)"}) == (b'event: text_delta\ndata: {"delta":"![](u)"}\n\n',)
    assert say("image.whole", at, {"text": "![](u)"}) == (b'event: text\ndata: {"text":"![](u)"}\n\n',)
    assert say("child.asked", at, {"call": CALL}) == (
        b'event: tool_call\ndata: {"toolCallId":"call_1","name":"search","input":{"q":"x"}}\n\n',)
    assert say("turn.waiting", None) == (
        b"event: turn_start\ndata: {}\n\n", b'event: turn_stop\ndata: {"stopReason":"tool_use"}\n\n')


def test_history_messages(aap: Table) -> None:
    content = (m.ThinkingPart(text="Hm"), m.TextPart(text="Hi"), m.ToolUsePart(call=CALL), m.ImagePart(url="data:x"),
               m.DataPart(type="card"), m.FilePart(name="a.txt"))
    assert aap.object("message", role=m.Role.ASSISTANT, content=content) == {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Hm"},
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "toolCallId": "call_1", "name": "search", "input": {"q": "x"}},
        {"type": "image", "url": "data:x"},
        {"type": "text", "text": "a.txt"},
    ]}
    assert aap.object("message", role=m.Role.USER, content="Hi") == {"role": "user", "content": "Hi"}
    assert aap.object("message", role=m.Role.SYSTEM, content="Be kind") == {"role": "system", "content": "Be kind"}
    told = aap.object("message", role=m.Role.TOOL, call_id="call_1", content="found")
    assert told == {"role": "tool", "toolCallId": "call_1", "content": "found"}
    assert list(told) == ["role", "toolCallId", "content"]
    block = aap.object("asked.call", call=CALL)
    assert aap.object("message", role=m.Role.ASSISTANT, content=[block])["content"] == [block], "spelled already"


def test_meta_and_its_parts(aap: Table) -> None:
    assert aap.object("meta", version=3, agents=[]) == {"version": 3, "agents": []}
    told = aap.object("agent", AgentBody(name="demo", version="1.0.0", how_to_answer="Answer."))
    assert [ask["name"] for ask in told.pop("asks")] == ["AskUserQuestion", "confirm_continue", "choose_rollback"]
    assert told == {"name": "demo", "version": "1.0.0"}
    assert aap.object("tool", name="t", title=None, description="d", parameters={"type": "object"}) == {
        "name": "t", "description": "d", "parameters": {"type": "object"}}
    given = {"name": "o", "title": "T", "description": None, "choices": None, "default": "a"}
    assert aap.object("option", kind=m.OptionKind.TEXT, **given) == {
        "type": "text", "name": "o", "title": "T", "default": "a"}
    assert aap.object("option", kind=m.OptionKind.SECRET, **given)["type"] == "secret"
    chosen = aap.object("option", kind=m.OptionKind.SELECT, **given | {"choices": ("a", "b")})
    assert orjson.loads(orjson.dumps(chosen)) == {
        "type": "select", "name": "o", "title": "T", "options": ["a", "b"], "default": "a"}


def test_sessions_history_and_turn(aap: Table) -> None:
    agent = SessionAgentBody(name="demo", options={"o": "***"}, tools=[ServerToolBody(name="t", trust=True)])
    assert aap.object("session", session_id="ses_1", agent=agent, tools=None) == {
        "sessionId": "ses_1",
        "agent": {"name": "demo", "tools": [{"name": "t", "trust": True}], "options": {"o": "***"}}}
    assert aap.object("sessions", sessions=[], next=None) == {"sessions": []}
    assert aap.object("sessions", sessions=[], next="9") == {"sessions": [], "next": "9"}
    assert aap.object("created", session_id="ses_1") == {"sessionId": "ses_1"}
    assert aap.object("history", history={"full": []}) == {"history": {"full": []}}
    assert aap.object("history", history={"compacted": []}) == {"history": {"compacted": []}}
    assert aap.object("turn", stop_reason=m.StopReason.NEEDS_INPUT, messages=[]) == {
        "stopReason": "tool_use", "messages": []}


def said(role: str, **members: Any) -> dict[str, Any]:
    return {"role": role, "toolCallId": "call_1", **members}


@pytest.mark.parametrize(("row", "body", "given", "command"), [
    ("message.user", {"role": "user", "content": "Hi"}, {}, m.SendMessage(content="Hi")),
    ("message.tool", said("tool", content="ok"), {}, m.ReturnResult(request_id="r", content="ok")),
    ("message.tool_permission", said("tool_permission", granted=False, reason="no"), {},
     m.DecidePermission(request_id="r", granted=False, reason="no")),
    ("answer.question", said("tool", content="blue "), {"custom": {"0": "blue"}},
     m.AnswerQuestion(request_id="r", custom={"0": "blue"}, said="blue ")),
    ("answer.continuation", said("tool", content="No."), {"proceed": False},
     m.ContinueTurn(request_id="r", proceed=False, said="No.")),
    ("decision.continuation", said("tool_permission", granted=False), {},
     m.ContinueTurn(request_id="r", proceed=False)),
    ("answer.rollback", said("tool", content=" a"), {"option": "a"}, m.RollBack(request_id="r", option="a", said=" a")),
])
def test_client_messages_become_commands_and_commands_become_messages(
    aap: Table, row: str, body: dict[str, Any], given: dict[str, Any], command: m.AnyCommand
) -> None:
    known = {"request_id": "r"} if "toolCallId" in body else {}
    assert aap.read_command(row, body, **known, **given) == command
    assert aap.message(row, command, request_id="call_1") == body


def test_a_message_that_the_session_makes_of_several(aap: Table) -> None:
    results = (m.SeedMessage(role=m.Role.TOOL, content="ok", call_id="c"),)
    assert aap.command("message.results", content="x returned ok", results=results) == m.SendMessage(
        content="x returned ok", results=results)


@pytest.mark.parametrize("code", m.FaultCode)
def test_every_fault_is_an_error_with_its_status(aap: Table, code: m.FaultCode) -> None:
    body = {"error": "so it is"} | ({"code": "timeout"} if code is m.FaultCode.TIMEOUT else {})
    assert aap.error(code, message="so it is") == (code.status, body)


def test_its_support_is_complete_and_what_it_loses_is_explained(aap: Table) -> None:
    assert aap.support.keys() == FEATURES.keys()
    in_between = {name for name, level in aap.support.items() if level in (SupportLevel.PARTIAL, SupportLevel.FALLBACK)}
    assert in_between <= aap.notes.keys()
