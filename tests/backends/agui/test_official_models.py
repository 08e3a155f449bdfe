"""AG-UI's own package as judge: of what the server of the tests tells, and of what we ask it."""

from typing import Any

import pytest
from ag_ui.core import Interrupt, RunAgentInput, RunFinishedInterruptOutcome
from ag_ui.core import events as agui

import gateway.model as m
from gateway.backends.agui.decoder import _HANDLERS
from tests.support.backends.agui_server import END, START, backend, call, encoded, played, result, server, text
from tests.support.backends.official_models import data_of, validation_problems

PATCH: Any = [{"op": "add", "path": "/list/-", "value": "x"}]
WAITING = RunFinishedInterruptOutcome(interrupts=[Interrupt(id="i", reason="tool_call", tool_call_id="c1")])
TOLD: list[Any] = [
    START, *text("Good day.", cuts=2), *call("c1", "look", '{"n"', ": 1}", parent="m1"), result("c1", "found"),
    agui.TextMessageChunkEvent(message_id="m2", delta="a"),
    agui.ToolCallChunkEvent(tool_call_id="c2", tool_call_name="t", delta="{}"),
    agui.ReasoningStartEvent(message_id="r"), agui.ReasoningMessageStartEvent(message_id="r1"),
    agui.ReasoningMessageContentEvent(message_id="r1", delta="hm"), agui.ReasoningMessageEndEvent(message_id="r1"),
    agui.ReasoningMessageChunkEvent(message_id="r2", delta="ah"),
    agui.ReasoningEncryptedValueEvent(subtype="message", entity_id="r1", encrypted_value="sig"),
    agui.ReasoningEndEvent(message_id="r"), agui.StateSnapshotEvent(snapshot={"list": []}),
    agui.StateDeltaEvent(delta=PATCH), agui.StepStartedEvent(step_name="s"), agui.StepFinishedEvent(step_name="s"),
    agui.MessagesSnapshotEvent.model_validate({"messages": [{"id": "m1", "role": "assistant", "content": "Hi."}]}),
    agui.ActivitySnapshotEvent(message_id="p", activity_type="PLAN", content={"list": []}),
    agui.ActivityDeltaEvent.model_validate({"messageId": "p", "activityType": "PLAN", "patch": PATCH}),
    agui.CustomEvent(name="mood", value="good"), agui.RawEvent(event=[1]),
    agui.SubagentStartedEvent(subagent_run_id="s1", name="scout", parent_tool_call_id="c1"),
    agui.SubagentErrorEvent(subagent_run_id="s1", message="lost"), agui.SubagentFinishedEvent(subagent_run_id="s2"),
    END.model_copy(update={"usage": [agui.TokenUsage(input_tokens=10, output_tokens=5)], "outcome": WAITING}),
    agui.RunErrorEvent(message="broken", code="E"),
]
"""One event of every type, as the server of the tests tells it."""


def test_every_event_is_in_the_words_of_the_protocol() -> None:
    told = list(data_of(encoded(*TOLD)))
    assert len(told) == len(TOLD)
    assert [place for data in told for place in validation_problems(agui.Event, data)] == []


def test_every_type_of_the_protocol_is_told_here_and_known_to_us() -> None:
    types = {kind.value for kind in agui.EventType}
    assert {event.type for event in TOLD} == types
    ended_otherwise = {"REASONING_MESSAGE_START", "REASONING_MESSAGE_END"}  # a thought ends where another word begins
    old = {kind for kind in _HANDLERS if kind.startswith("THINKING_")}
    assert types - ended_otherwise == _HANDLERS.keys() - old


@pytest.mark.parametrize("wrong", [
    b'{"type": "TEXT_MESSAGE_CONTENT", "messageId": "m"}', b'{"type": "NEWS"}', b'{"messageId": "m"}',
    b'{"type": "TOOL_CALL_START", "toolCallId": "c"}', b'{"type": "RUN_FINISHED", "threadId": 7, "runId": "r"}',
])
def test_the_judge_notices_what_is_wrong(wrong: bytes) -> None:
    with pytest.raises(ValueError, match="validation error"):
        validation_problems(agui.Event, wrong)


def test_the_judge_names_what_it_does_not_know() -> None:
    odd = b'{"type": "TEXT_MESSAGE_END", "messageId": "m", "colour": "red"}'
    assert validation_problems(agui.Event, odd) == ["colour"]


async def test_what_we_ask_is_in_the_words_of_the_protocol() -> None:
    made = m.ToolCall(call_id="c0", name="t", input={"a": 1})
    history = [
        m.HistoryEntry(role=m.Role.SYSTEM, content="a summary", seq=1, at=0),
        m.HistoryEntry(role=m.Role.USER, content="hi", seq=2, at=0, message_id="u1"),
        m.HistoryEntry(role=m.Role.ASSISTANT, seq=3, at=0, message_id="a1", content=(
            m.ThinkingPart(text="hm", signature="sig"), m.TextPart(text="hello"), m.ToolUsePart(call=made))),
        m.HistoryEntry(role=m.Role.TOOL, content="failed", seq=4, at=0, call_id="c0", is_error=True),
        m.HistoryEntry(role=m.Role.USER, seq=5, at=0, message_id="u2", content=(
            m.TextPart(text="see"), m.ImagePart(url="data:image/png;base64,AAAA"), m.ImagePart(url="https://x/y.png"),
            m.FilePart(name="a.pdf", url="https://x/a.pdf"), m.FilePart(name="b", file_id="f1"))),
    ]
    command = m.SendMessage(content="see", variables={"tz": "UTC"}, output_schema={"type": "object"})
    settings = m.Settings(system="Be brief.", client_tools=(m.ToolSpec(name="mine", parameters={"type": "object"}),))
    waits = RunFinishedInterruptOutcome(interrupts=[Interrupt(id="i1", reason="input_required", message="Which?")])
    async with server() as agent, backend(agent.url, forward={"a": 1}) as asking:
        agent.play([START, agui.StateSnapshotEvent(snapshot={"n": 1}), END.model_copy(update={"outcome": waits})],
                   [START, *text("So be it."), END])
        turn = await played(asking, command, history=history, settings=settings,
                            answering=lambda ask, id: m.AnswerQuestion(request_id=id, custom={"0": "blue"}))
    assert (turn.text, len(agent.bodies)) == ("So be it.", 2)
    assert [place for body in agent.bodies for place in validation_problems(RunAgentInput, body)] == []
    assert agent.asked[1].resume and agent.asked[1].state == {"n": 1}
