"""Spans from streams of records: who is whose parent, when they begin and end, and what they say."""

from itertools import count

import gateway.model as m
from gateway.telemetry import Span, Tracer
from gateway.trace_context import TRACEPARENT, within_trace

TRACE, TURN, CLIENT = "ab" * 16, "cd" * 8, "ef" * 8
HEADER = f"00-{TRACE}-{TURN}-01"
STARTED = m.TurnStarted(command_id="cmd_1", trace=HEADER)
ENDED = m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN, usage=m.Usage(output_tokens=7))
SECRET = "what nobody else may read"

Told = m.AnyEvent | tuple[str, m.AnyEvent]


def records(*told: Told) -> list[m.Record]:
    """One record each second, from second 101 on; a pair is an event of another scope."""
    scoped = [one if isinstance(one, tuple) else (m.ROOT, one) for one in told]
    return [
        m.Record(seq=seq, at=100.0 + seq, session_id="sess_1", event=event, turn_id="turn_1", scope_id=scope)
        for seq, (scope, event) in enumerate(scoped, 1)
    ]


def tracer(spans: list[Span], share: float = 1.0) -> Tracer:
    ids = count(1)
    return Tracer(spans.append, clock=lambda: 1000.0, agent_of=lambda session: "demo", share=share,
                  new_id=lambda: next(ids))


def exported(*told: Told) -> dict[str, Span]:
    """The spans of a turn by their names, without those of storing."""
    spans: list[Span] = []
    tracer(spans).committed(records(STARTED, *told))
    found = [span for span in spans if not span.name.startswith("store ")]
    assert len({span.name for span in found}) == len(found), "each span of these tests has a name of its own"
    return {span.name: span for span in found}


def call(call_id: str, name: str, scope: str = m.ROOT) -> Told:
    block = m.BlockEnded(block_id=f"b_{call_id}", message_id="m1", kind=m.BlockKind.TOOL_USE,
                         call=m.ToolCall(call_id=call_id, name=name, input={"query": SECRET}))
    return scope, block


def running(call_id: str) -> m.ToolStatusChanged:
    return m.ToolStatusChanged(call_id=call_id, status=m.ToolStatus.RUNNING)


def returned(call_id: str, *, is_error: bool = False) -> m.ToolReturned:
    return m.ToolReturned(call_id=call_id, content=SECRET, is_error=is_error)


def asked(request_id: str, call_id: str | None = None) -> m.InputRequested:
    return m.InputRequested(request_id=request_id, call_id=call_id, ask=m.ContinuationAsk(turn=1, message=SECRET))


def resolved(request_id: str, call_id: str | None = None) -> m.InputResolved:
    return m.InputResolved(request_id=request_id, resolution=m.Resolution.GRANTED, call_id=call_id)


def times(span: Span) -> tuple[float, float]:
    return span.start, span.end


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
    spans = exported(call("c1", "search"), running("c1"), asked("r1", "c1"), resolved("r1", "c1"), returned("c1"), ENDED)
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


def test_storing_takes_until_the_log_reports_it() -> None:
    spans: list[Span] = []
    tracer(spans).committed(records(STARTED, ENDED))
    stored = {span.name: span for span in spans if span.name.startswith("store ")}
    assert list(stored) == ["store turn.started", "store turn.ended"]
    assert times(stored["store turn.ended"]) == (102, 1000)


def test_a_turn_without_a_trace_and_one_that_is_not_sampled_make_no_spans() -> None:
    for trace in (None, f"00-{TRACE}-{TURN}-00", "nonsense"):
        spans: list[Span] = []
        tracer(spans).committed(records(m.TurnStarted(command_id="cmd_1", trace=trace), call("c1", "search"), ENDED))
        assert spans == []


def test_a_turn_of_another_process_goes_on_here_and_nothing_is_exported_twice() -> None:
    told = records(STARTED, m.MessageStarted(message_id="m1"), m.MessageEnded(message_id="m1"), asked("r1"),
                   resolved("r1"), ENDED)
    spans: list[Span] = []
    second = tracer(spans)
    second.restored(told[:4])
    second.committed(told[4:])
    assert [span.name for span in spans] == ["ask continuation", "invoke_agent demo", "store turn.ended"]
    assert times(spans[0]) == (104, 105) and times(spans[1]) == (101, 106)


def test_a_client_gives_its_trace_and_decides_whether_it_is_recorded() -> None:
    one = tracer([], share=0.0)
    with within_trace(f"00-{TRACE}-{CLIENT}-01"):
        assert one.begin() == (f"00-{TRACE}-0000000000000001-01", CLIENT)
    with within_trace(f"00-{TRACE}-{CLIENT}-00"):
        assert tracer([]).begin() == (f"00-{TRACE}-0000000000000001-00", CLIENT)
    assert TRACEPARENT.get() == ""
    assert one.begin()[0].endswith("-00") and one.begin()[1] is None
    assert tracer([]).begin()[0].endswith("-01")


def test_the_parent_of_a_turn_is_the_span_of_the_client() -> None:
    spans: list[Span] = []
    tracer(spans).committed(records(m.TurnStarted(command_id="c", trace=HEADER, trace_parent=CLIENT), ENDED))
    assert next(span for span in spans if span.name == "invoke_agent demo").parent_id == int(CLIENT, 16)
