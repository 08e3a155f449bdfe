"""Records of a turn become spans, by the GenAI semantic conventions of OpenTelemetry; no I/O, no clock.

    invoke_agent AGENT            the turn
      chat MODEL                  a message: one request to the model
      execute_tool NAME           a tool call, from when it may run
      ask KIND                    the wait for a person or a client; below a call that asks while it runs
      invoke_agent AGENT          a sub-agent, below the call that started it
      store turn.started          from an event to its place in the log, for the two ends of the turn

Spans have names and numbers, never the content of messages, of calls or of faults.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import gateway.model as m
from gateway.trace_context import TraceContext

Value = str | int | float | bool | tuple[str, ...]
LONGEST_TEXT = 200
"""Names come from agents and clients: a longer one is cut."""
CUT_OFF = "interrupted"
"""The error of a span that was open when its turn ended."""
EXTENSIONS = (m.ToolOrigin.PROVIDER, m.ToolOrigin.MCP)
"""Tools that are carried out elsewhere; the others are functions."""


@dataclass(kw_only=True, slots=True)
class Span:
    """One span; times are seconds since the epoch."""

    name: str
    trace_id: int
    span_id: int
    parent_id: int | None
    start: float
    end: float = 0.0
    is_client: bool = False
    attributes: dict[str, Value] = field(default_factory=dict)
    error: str | None = None

    def closed(self, end: float, error: str | None = None) -> "Span":
        """This span, which ends now."""
        self.end, self.error = max(end, self.start), error
        if error is not None:
            self.attributes["error.type"] = error
        return self


class TurnSpans:
    """The open spans of one turn; `take` returns the spans that a record ends."""

    def __init__(self, started: m.Record, trace: TraceContext, parent: int | None, agent: str,
                 new_id: Callable[[], int]) -> None:
        self._new_id = new_id
        self._session_id = started.session_id
        self._turn = Span(
            name=f"invoke_agent {agent}"[:LONGEST_TEXT], trace_id=trace.trace_id, span_id=trace.span_id,
            parent_id=parent, start=started.at, attributes=_attributes("invoke_agent", started.session_id, {
                "gen_ai.agent.name": agent, "dragoman.turn.id": started.turn_id or "",
            }),
        )
        self._open: dict[tuple[str, str], Span] = {}
        self._running_calls: set[str] = set()

    def take(self, record: m.Record) -> list[Span]:
        """The spans that end with this record."""
        take = TAKERS.get(type(record.event))
        return [] if take is None else take(self, record, record.event)

    def stored(self, record: m.Record, now: float) -> Span:
        """The span of storing a record."""
        span = self._span(f"store {record.event.name}", record, self._turn)
        span.attributes = {"gen_ai.conversation.id": self._session_id, "dragoman.record.seq": record.seq}
        return span.closed(now)

    # -- opening and closing --------------------------------------------------------------------------------------

    def _span(self, name: str, record: m.Record, parent: Span) -> Span:
        return Span(name=name[:LONGEST_TEXT], trace_id=self._turn.trace_id, span_id=self._new_id(),
                    parent_id=parent.span_id, start=record.at)

    def _begin(self, key: tuple[str, str], operation: str, about: str | None, record: m.Record, parent: Span,
               more: Mapping[str, Value | None]) -> Span:
        span = self._open[key] = self._span(f"{operation} {about}" if about else operation, record, parent)
        span.attributes = _attributes(operation, self._session_id, more)
        return span

    def _end(self, key: tuple[str, str], at: float, error: str | None = None) -> list[Span]:
        span = self._open.pop(key, None)
        return [] if span is None else [span.closed(at, error)]

    def _voice(self, scope_id: str) -> Span:
        """The span of the sub-agent whose scope this is; for the agent itself, the turn."""
        return self._open.get(("scope", scope_id), self._turn)

    # -- what records mean ----------------------------------------------------------------------------------------

    def message_started(self, record: m.Record, event: m.MessageStarted) -> list[Span]:
        span = self._begin(("message", event.message_id), "chat", event.model, record, self._voice(record.scope_id),
                           {"gen_ai.request.model": event.model})
        span.is_client = True
        return []

    def block_started(self, record: m.Record, event: m.BlockStarted) -> list[Span]:
        message = self._open.get(("message", event.message_id))
        if message is not None:
            message.attributes.setdefault("gen_ai.response.time_to_first_chunk", record.at - message.start)
        return []

    def message_ended(self, record: m.Record, event: m.MessageEnded) -> list[Span]:
        key = ("message", event.message_id)
        if key in self._open:
            self._open[key].attributes |= _result(event.stop_reason, event.usage)
        return self._end(key, record.at, None if event.outcome is m.Outcome.COMPLETED else event.stop_reason.value)

    def block_ended(self, record: m.Record, event: m.BlockEnded) -> list[Span]:
        call = event.call
        if call is not None and not event.torn:
            self._begin(("call", call.call_id), "execute_tool", call.name, record, self._voice(record.scope_id), {
                "gen_ai.tool.name": call.name, "gen_ai.tool.call.id": call.call_id,
                "gen_ai.tool.type": "extension" if call.origin in EXTENSIONS else "function",
                "dragoman.tool.origin": call.origin.value,
            })
        return []

    def tool_status(self, record: m.Record, event: m.ToolStatusChanged) -> list[Span]:
        if event.status is m.ToolStatus.CANCELLED:
            return self._end(("call", event.call_id), record.at, event.status.value)
        if event.status is m.ToolStatus.RUNNING:
            self._call_runs(event.call_id, record.at)
        return []

    def _call_runs(self, call_id: str | None, at: float) -> None:
        """The call begins to run; the time before that was the wait for permission."""
        if call_id is not None and call_id not in self._running_calls and ("call", call_id) in self._open:
            self._running_calls.add(call_id)
            self._open["call", call_id].start = at

    def tool_returned(self, record: m.Record, event: m.ToolReturned) -> list[Span]:
        return self._end(("call", event.call_id), record.at, "tool_error" if event.is_error else None)

    def input_requested(self, record: m.Record, event: m.InputRequested) -> list[Span]:
        parent = self._voice(record.scope_id)
        if event.call_id in self._running_calls:
            parent = self._open.get(("call", event.call_id), parent)
        kind = event.ask.kind
        span = self._begin(("ask", event.request_id), f"ask {kind}", None, record, parent,
                           {"dragoman.ask.kind": kind, "gen_ai.tool.call.id": event.call_id})
        del span.attributes["gen_ai.operation.name"]  # the conventions have no word for it
        return []

    def input_resolved(self, record: m.Record, event: m.InputResolved) -> list[Span]:
        ended = self._end(("ask", event.request_id), record.at)
        for span in ended:
            span.attributes["dragoman.ask.resolution"] = event.resolution.value
        self._call_runs(event.call_id, record.at)
        return ended

    def scope_opened(self, record: m.Record, event: m.ScopeOpened) -> list[Span]:
        parent = self._open.get(("call", event.call_id or ""), self._voice(event.parent))
        name = event.agent or event.title
        self._begin(("scope", record.scope_id), "invoke_agent", name, record, parent,
                    {"gen_ai.agent.name": name, "gen_ai.agent.id": record.scope_id})
        return []

    def scope_status(self, record: m.Record, event: m.ScopeStatusChanged) -> list[Span]:
        return self._end(("scope", record.scope_id), record.at) if event.status is m.ScopeStatus.ENDED else []

    def turn_ended(self, record: m.Record, event: m.TurnEnded) -> list[Span]:
        """Whatever is open ends with the turn, and the turn last."""
        cut = [span.closed(record.at, CUT_OFF) for span in reversed(self._open.values())]
        self._open.clear()
        self._turn.attributes |= _result(event.stop_reason, event.usage)
        self._turn.attributes["dragoman.turn.outcome"] = event.outcome.value
        error = event.fault.code.value if event.fault else None
        return [*cut, self._turn.closed(record.at, error)]


TAKERS: dict[type[m.Event], Callable[..., list[Span]]] = {
    m.MessageStarted: TurnSpans.message_started,
    m.MessageEnded: TurnSpans.message_ended,
    m.BlockStarted: TurnSpans.block_started,
    m.BlockEnded: TurnSpans.block_ended,
    m.ToolStatusChanged: TurnSpans.tool_status,
    m.ToolReturned: TurnSpans.tool_returned,
    m.InputRequested: TurnSpans.input_requested,
    m.InputResolved: TurnSpans.input_resolved,
    m.ScopeOpened: TurnSpans.scope_opened,
    m.ScopeStatusChanged: TurnSpans.scope_status,
    m.TurnEnded: TurnSpans.turn_ended,
}


def _attributes(operation: str, session_id: str, more: Mapping[str, Value | None]) -> dict[str, Value]:
    given = {"gen_ai.operation.name": operation, "gen_ai.conversation.id": session_id, **more}
    return {name: value[:LONGEST_TEXT] if isinstance(value, str) else value
            for name, value in given.items() if value is not None}


def _result(stop_reason: m.StopReason, usage: m.Usage) -> dict[str, Value]:
    """The attributes of a finished request; tokens that nobody counted are left out."""
    tokens = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.thinking_tokens,
    }
    counted: dict[str, Value] = {name: count for name, count in tokens.items() if count}
    return {**counted, "gen_ai.response.finish_reasons": (stop_reason.value,)}
