"""Spans from streams of records: who is whose parent, when they begin and end, and what they say."""

import gateway.model as m
from tests.support.traced_turns import (
    ENDED,
    SECRET,
    TRACE,
    TURN,
    asked,
    call,
    exported,
    resolved,
    returned,
    running,
    times,
)


def test_a_turn_and_its_message_follow_the_conventions() -> None:
    spans = exported(
        m.MessageStarted(message_id="m1", model="gpt-x"),
        m.BlockStarted(block_id="b1", message_id="m1", kind=m.BlockKind.TEXT),
        m.BlockDelta(block_id="b1", message_id="m1", kind=m.BlockKind.TEXT, delta=SECRET),
        m.BlockEnded(block_id="b1", message_id="m1", kind=m.BlockKind.TEXT, text=SECRET),
        m.MessageEnded(message_id="m1", usage=m.Usage(input_tokens=3, output_tokens=7)),
        ENDED,
    )
    turn, chat = spans["invoke_agent demo"], spans["chat gpt-x"]
    assert (turn.trace_id, turn.span_id, turn.parent_id) == (int(TRACE, 16), int(TURN, 16), None)
    assert (chat.trace_id, chat.parent_id, chat.is_client) == (turn.trace_id, turn.span_id, True)
    assert times(turn) == (101, 107) and times(chat) == (102, 106)
    assert chat.attributes == {
        "gen_ai.operation.name": "chat", "gen_ai.conversation.id": "sess_1", "gen_ai.request.model": "gpt-x",
        "gen_ai.response.time_to_first_chunk": 1.0, "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 7, "gen_ai.response.finish_reasons": ("end_turn",),
    }
    assert turn.attributes == {
        "gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "sess_1", "gen_ai.agent.name": "demo",
        "dragoman.turn.id": "turn_1", "dragoman.turn.outcome": "completed", "gen_ai.usage.output_tokens": 7,
        "gen_ai.response.finish_reasons": ("end_turn",),
    }


def test_parallel_calls_end_each_at_its_own_time() -> None:
    spans = exported(
        call("c1", "slow"), call("c2", "fast"), running("c1"), running("c2"), returned("c2", is_error=True),
        returned("c1"), ENDED,
    )
    slow, fast = spans["execute_tool slow"], spans["execute_tool fast"]
    assert times(slow) == (104, 107) and times(fast) == (105, 106)
    assert slow.parent_id == fast.parent_id == int(TURN, 16)
    assert (slow.error, fast.error) == (None, "tool_error")
    assert fast.attributes["gen_ai.tool.call.id"] == "c2" and fast.attributes["gen_ai.tool.type"] == "function"


def test_the_wait_for_permission_is_apart_from_the_call() -> None:
    spans = exported(call("c1", "search"), asked("r1", "c1"), resolved("r1", "c1"), returned("c1"), ENDED)
    ask, tool = spans["ask continuation"], spans["execute_tool search"]
    assert times(ask) == (103, 104) and times(tool) == (104, 105)
    assert ask.parent_id == tool.parent_id == int(TURN, 16)
    assert ask.attributes["dragoman.ask.resolution"] == "granted"


def test_a_call_that_asks_while_it_runs_is_the_parent_of_the_ask() -> None:
    spans = exported(
        call("c1", "search"), running("c1"), asked("r1", "c1"), resolved("r1", "c1"), returned("c1"), ENDED)
    ask, tool = spans["ask continuation"], spans["execute_tool search"]
    assert ask.parent_id == tool.span_id and times(tool) == (103, 106) and times(ask) == (104, 105)


def test_a_sub_agent_is_below_the_call_that_started_it() -> None:
    spans = exported(
        call("c1", "delegate"),
        ("sub", m.ScopeOpened(parent=m.ROOT, call_id="c1", agent="helper")),
        ("sub", m.MessageStarted(message_id="m2", model="small")),
        ("sub", m.MessageEnded(message_id="m2")),
        ("sub", m.ScopeStatusChanged(status=m.ScopeStatus.IDLE)),
        ("sub", m.ScopeStatusChanged(status=m.ScopeStatus.ENDED)),
        returned("c1"), ENDED,
    )
    helper = spans["invoke_agent helper"]
    assert helper.parent_id == spans["execute_tool delegate"].span_id and times(helper) == (103, 107)
    assert spans["chat small"].parent_id == helper.span_id


def test_what_is_open_when_a_turn_is_cut_ends_with_it() -> None:
    fault = m.Fault(code=m.FaultCode.TIMEOUT, message=SECRET)
    spans = exported(
        m.MessageStarted(message_id="m1"),
        m.MessageEnded(message_id="m1", outcome=m.Outcome.INTERRUPTED, stop_reason=m.StopReason.INTERRUPTED),
        call("c1", "search"), asked("r1"),
        m.TurnEnded(outcome=m.Outcome.FAILED, stop_reason=m.StopReason.TIMEOUT, fault=fault),
    )
    assert spans["chat"].error == "interrupted"
    for name in ("execute_tool search", "ask continuation"):
        assert spans[name].end == 106 and spans[name].attributes["error.type"] == "interrupted"
    assert spans["invoke_agent demo"].error == "timeout"
    assert list(spans)[-1] == "invoke_agent demo"


def test_a_torn_call_was_never_carried_out() -> None:
    torn = m.BlockEnded(block_id="b1", message_id="m1", kind=m.BlockKind.TOOL_USE, torn=True,
                        call=m.ToolCall(call_id="c1", name="search"))
    assert list(exported(torn, ENDED)) == ["invoke_agent demo"]


def test_no_span_has_content() -> None:
    fault = m.Fault(code=m.FaultCode.BACKEND, message=SECRET)
    spans = exported(
        m.InputAccepted(command_id="cmd_1", command=m.SendMessage(content=SECRET)),
        call("c1", "search"), asked("r1", "c1"), resolved("r1", "c1"), returned("c1"),
        m.TurnEnded(outcome=m.Outcome.FAILED, stop_reason=m.StopReason.ERROR, fault=fault, result=SECRET),
    )
    assert len(spans) == 3 and SECRET not in repr(spans)
