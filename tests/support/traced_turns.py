"""Records of turns that are traced, and a tracer that collects their spans."""

from itertools import count

import gateway.model as m
from gateway.telemetry import Span, Tracer

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
