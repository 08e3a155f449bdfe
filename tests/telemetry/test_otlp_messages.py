"""Spans as OTLP messages: what a collector reads of ids, times, kinds, errors and every type of attribute."""

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1 import trace_pb2 as otlp

from gateway.telemetry import Span
from gateway.telemetry.otlp_messages import encode_spans
from tests.support.otlp_collector import attributes

WHOLE = Span(
    name="chat m", trace_id=0xAB, span_id=0xCD, parent_id=0xEF, start=1.5, end=2.000001, is_client=True,
    error="timeout", attributes={"text": "é", "flag": True, "count": 2**53, "share": 0.25, "reasons": ("a", "b")},
)
BARE = Span(name="turn", trace_id=1, span_id=2, parent_id=None, start=1.0, end=1.0)


def test_a_collector_reads_what_the_spans_have() -> None:
    request = ExportTraceServiceRequest.FromString(encode_spans([WHOLE, BARE], {"service.name": "front"}, "0.1"))
    (group,) = request.resource_spans
    (scope,) = group.scope_spans
    assert attributes(group.resource.attributes) == {"service.name": "front"}
    assert (scope.scope.name, scope.scope.version) == ("dragoman", "0.1")
    whole, bare = scope.spans
    assert (whole.trace_id.hex(), whole.span_id.hex(), whole.parent_span_id.hex()) == (
        "ab".zfill(32), "cd".zfill(16), "ef".zfill(16))
    assert (whole.name, whole.start_time_unix_nano, whole.end_time_unix_nano) == ("chat m", 1500000000, 2000001000)
    assert (whole.kind, whole.status.code, whole.status.message) == (
        otlp.Span.SPAN_KIND_CLIENT, otlp.Status.STATUS_CODE_ERROR, "timeout")
    assert attributes(whole.attributes) == WHOLE.attributes
    assert (bare.parent_span_id, bare.kind, bare.status.code) == (
        b"", otlp.Span.SPAN_KIND_INTERNAL, otlp.Status.STATUS_CODE_UNSET)
