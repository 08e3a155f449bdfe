"""Traces turns for OpenTelemetry: records become spans, which a thread sends to a collector."""

from .tracer import Tracer
from .turn_spans import Span, TurnSpans

__all__ = ["Span", "Tracer", "TurnSpans"]
