"""The trace that a request or a turn belongs to, as the header `traceparent` of W3C Trace Context says it.

`TRACEPARENT` has the header for requests to other servers: within a turn it names the span of the turn. It is set only
where telemetry is on.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

TRACEPARENT: ContextVar[str] = ContextVar("traceparent", default="")
HEADER = "traceparent"
_SAMPLED = 1
_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


class TraceContext(NamedTuple):
    """One span of a trace, and whether the trace is recorded."""

    trace_id: int
    span_id: int
    is_sampled: bool

    @property
    def header(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{'01' if self.is_sampled else '00'}"


def read_traceparent(header: str) -> TraceContext | None:
    """The span that a header names; None if the header is not valid, which is treated like no header."""
    found = _FORM.fullmatch(header.strip())
    if found is None or found[1] == "ff" or (found[1] == "00" and found[5]):
        return None
    context = TraceContext(int(found[2], 16), int(found[3], 16), bool(int(found[4], 16) & _SAMPLED))
    return context if context.trace_id and context.span_id else None


@contextmanager
def within_trace(header: str) -> Iterator[None]:
    """Requests to other servers in this block belong to that trace."""
    token = TRACEPARENT.set(header)
    try:
        yield
    finally:
        TRACEPARENT.reset(token)


def trace_headers() -> dict[str, str]:
    """The header for a request to another server; empty where nothing is traced."""
    header = TRACEPARENT.get()
    return {HEADER: header} if header else {}


def trace_fields(header: str | None) -> dict[str, str]:
    """The ids for a line of the server log; empty where nothing is traced."""
    context = read_traceparent(header or "")
    return {} if context is None else {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
