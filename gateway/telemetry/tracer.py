"""Gives each turn its trace, and makes spans of the records of all sessions as they are stored."""

import random
from collections.abc import Callable, Sequence
from itertools import islice

import gateway.model as m
from gateway.ports import Clock
from gateway.trace_context import TRACEPARENT, TraceContext, read_traceparent

from .turn_spans import Span, TurnSpans

MOST_OPEN_TURNS = 20_000
"""Turns that another server took over never end here: beyond this number the oldest are forgotten."""
_RANDOM_PART = 1 << 56
"""The last 56 bits of a trace id are random, by the rules of W3C; they decide whether the trace is recorded."""


def new_span_id() -> int:
    return random.getrandbits(64) or 1


class Tracer:
    """The traces of all turns; `export` takes a finished span and must not wait."""

    def __init__(
        self, export: Callable[[Span], None], clock: Clock, agent_of: Callable[[str], str], share: float = 1.0,
        new_id: Callable[[], int] = new_span_id,
    ) -> None:
        self._export, self._clock, self._agent_of = export, clock, agent_of
        self._share = share
        self._new_id = new_id
        self._turns: dict[str, TurnSpans] = {}
        """By session: the turn that runs or waits in it."""

    def begin(self) -> tuple[str, str | None]:
        """The trace of a turn that starts now, and the span that it is part of.

        A client that sends `traceparent` decides whether the trace is recorded; otherwise the settings do.
        """
        parent = read_traceparent(TRACEPARENT.get())
        if parent is not None:
            turn = TraceContext(parent.trace_id, self._new_id(), parent.is_sampled)
            return turn.header, f"{parent.span_id:016x}"
        trace_id = self._new_id() << 64 | self._new_id()
        is_sampled = trace_id % _RANDOM_PART < self._share * _RANDOM_PART
        return TraceContext(trace_id, self._new_id(), is_sampled).header, None

    def committed(self, records: Sequence[m.Record]) -> None:
        """Export the spans that end with these records; a delta costs the look at its type."""
        for record in records:
            if type(record.event) is not m.BlockDelta:
                for span in self._take(record, self._clock()):
                    self._export(span)

    def restored(self, records: Sequence[m.Record]) -> None:
        """Take up a turn that another process began; that process has exported what ended meanwhile."""
        for record in records:
            self._take(record, record.at)

    def _take(self, record: m.Record, now: float) -> list[Span]:
        kind = type(record.event)
        if kind is m.TurnStarted:
            self._start(record, record.event)  # type: ignore[arg-type]  # its type was looked at
        turn = self._turns.get(record.session_id)
        if turn is None:
            return []
        ended = turn.take(record)
        if kind is m.TurnEnded:
            del self._turns[record.session_id]
        return [*ended, turn.stored(record, now)] if kind in (m.TurnStarted, m.TurnEnded) else ended

    def _start(self, record: m.Record, event: m.TurnStarted) -> None:
        self._turns.pop(record.session_id, None)
        trace = read_traceparent(event.trace or "")
        if trace is None or not trace.is_sampled:
            return
        parent = int(event.trace_parent, 16) if event.trace_parent else None
        self._turns[record.session_id] = TurnSpans(
            record, trace, parent, self._agent_of(record.session_id), self._new_id)
        for oldest in list(islice(self._turns, max(0, len(self._turns) - MOST_OPEN_TURNS))):
            del self._turns[oldest]
