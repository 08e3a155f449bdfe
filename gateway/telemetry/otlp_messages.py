"""Spells spans as the protobuf messages of OTLP; messages are made from plain dicts, which is fastest."""

from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1 import trace_pb2 as otlp

from .turn_spans import Span

SCOPE = "dragoman"
LOCAL_PARENT = otlp.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK
"""It is known whether the parent is in another process, and it is not."""
VALUE_FIELDS = {str: "string_value", bool: "bool_value", int: "int_value", float: "double_value"}


def encode_spans(spans: Sequence[Span], resource: Mapping[str, Any], version: str) -> bytes:
    """The body of a request with these spans of this process."""
    scope = {"scope": {"name": SCOPE, "version": version}, "spans": [_message(span) for span in spans]}
    group: Any = {"resource": {"attributes": _attributes(resource)}, "scope_spans": [scope]}
    body: bytes = ExportTraceServiceRequest(resource_spans=[group]).SerializeToString()
    return body


def _message(span: Span) -> dict[str, Any]:
    return {
        "trace_id": span.trace_id.to_bytes(16), "span_id": span.span_id.to_bytes(8), "name": span.name,
        "parent_span_id": b"" if span.parent_id is None else span.parent_id.to_bytes(8), "flags": LOCAL_PARENT,
        "kind": otlp.Span.SPAN_KIND_CLIENT if span.is_client else otlp.Span.SPAN_KIND_INTERNAL,
        "start_time_unix_nano": _nanoseconds(span.start), "end_time_unix_nano": _nanoseconds(span.end),
        "attributes": _attributes(span.attributes),
        "status": {"code": otlp.Status.STATUS_CODE_ERROR, "message": span.error} if span.error else {},
    }


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    if type(value) is tuple:
        return {"array_value": {"values": [_value(one) for one in value]}}
    return {VALUE_FIELDS[type(value)]: value}


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1_000_000) * 1000
