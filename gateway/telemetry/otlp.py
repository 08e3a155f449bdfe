"""Sends spans to a collector over OTLP: the batch thread of the OpenTelemetry SDK does it, and nothing waits for it.

Only a server whose settings have `telemetry` imports this module.
"""

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from gateway.logging import get_logger

from .turn_spans import Span

log = get_logger("dragoman.telemetry")

TRACES_PATH = "/v1/traces"
QUEUED_SPANS, BATCH_SPANS = 8192, 512
"""How many spans wait for the thread; if it cannot keep up, the oldest are dropped. And how many go in one request."""
EXPORT_SECONDS = 10.0
"""How long one request may take, with its retries."""
CLOSE_SECONDS = 5.0
"""How long a server that stops waits until its last spans are sent."""
REPORT_SECONDS = 60.0
"""The shortest time between two lines about spans that could not be sent."""
SDK_LOGGERS = {
    "opentelemetry.exporter.otlp.proto.http.trace_exporter": logging.CRITICAL,  # it writes a line for each attempt
    "opentelemetry.sdk._shared_internal": logging.ERROR,  # it writes a line for each span that it drops
}


class NumberedSpan(ReadableSpan):
    """A span with its place among all spans that the thread was given."""

    number = 0


class ReportedExporter(SpanExporter):
    """An exporter that counts the spans that are lost, and tells the number once a minute.

    A span is lost if its request fails, or if it is dropped from a full queue: then its number never comes.
    """

    def __init__(self, inner: SpanExporter, collector: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._inner, self._collector, self._clock = inner, collector, clock
        self._lost, self._last = 0, 0
        self._told_at: float | None = None

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._inner.export(spans)
        for span in spans:
            if isinstance(span, NumberedSpan):
                self._lost += span.number - self._last - 1
                self._last = span.number
        if result is not SpanExportResult.SUCCESS:
            self._lost += len(spans)
        now = self._clock()
        if self._told_at is None or now - self._told_at >= REPORT_SECONDS:
            self._tell(now)
        return result

    def _tell(self, now: float) -> None:
        if self._lost:
            log.warning("spans_not_exported", collector=self._collector, count=self._lost)
            self._told_at, self._lost = now, 0

    def shutdown(self) -> None:
        self._tell(self._clock())
        self._inner.shutdown()


class OtlpExport:
    """The way of finished spans to the collector, from `open` to `close`."""

    def __init__(
        self, url: str, headers: Mapping[str, str], service: str, version: str, proxy: str | None = None,
    ) -> None:
        base = url.rstrip("/")
        self._scope = InstrumentationScope("dragoman", version)
        self._resource = Resource.create({
            "service.name": service, "service.version": version,
            "service.instance.id": f"{socket.gethostname()}-{os.getpid()}",
        })
        for name, level in SDK_LOGGERS.items():
            if (library := logging.getLogger(name)).level == logging.NOTSET:
                library.setLevel(level)
        sender = OTLPSpanExporter(
            base if base.endswith(TRACES_PATH) else base + TRACES_PATH, headers=dict(headers), timeout=EXPORT_SECONDS,
            session=_session(proxy), certificate_file=os.environ.get("SSL_CERT_FILE"),
            client_certificate_file=os.environ.get("SSL_CLIENT_CERT_FILE"),
            client_key_file=os.environ.get("SSL_CLIENT_KEY_FILE"))
        self._taken = 0
        self._exporter = ReportedExporter(sender, url)
        self._batches = BatchSpanProcessor(
            self._exporter, max_queue_size=QUEUED_SPANS, max_export_batch_size=BATCH_SPANS)

    def take(self, span: Span) -> None:
        """Hand a finished span to the thread."""
        readable = self._readable(span)
        self._taken += 1
        readable.number = self._taken
        self._batches.on_end(readable)

    async def close(self) -> None:
        """Send what is left; a collector that does not answer is waited for a few seconds only."""
        loop, is_done = asyncio.get_running_loop(), asyncio.Event()

        def finish() -> None:
            self._batches.shutdown()  # type: ignore[no-untyped-call]
            if not loop.is_closed():
                loop.call_soon_threadsafe(is_done.set)

        threading.Thread(target=finish, name="telemetry end", daemon=True).start()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await is_done.wait()
        except TimeoutError:
            log.warning("spans_given_up", seconds=CLOSE_SECONDS)

    def _readable(self, span: Span) -> NumberedSpan:
        parent = None if span.parent_id is None else _context(span.trace_id, span.parent_id)
        return NumberedSpan(
            name=span.name, context=_context(span.trace_id, span.span_id), parent=parent, resource=self._resource,
            attributes=span.attributes, kind=SpanKind.CLIENT if span.is_client else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR, span.error) if span.error else Status(), instrumentation_scope=self._scope,
            start_time=_nanoseconds(span.start), end_time=_nanoseconds(span.end),
        )


def _session(proxy: str | None) -> requests.Session:
    """A session that uses this proxy alone: by itself, requests would look for the collector of this machine there."""
    session = requests.Session()
    session.trust_env = False
    session.proxies = {} if proxy is None else {"http": proxy, "https": proxy}
    return session


def _context(trace_id: int, span_id: int) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1_000_000) * 1000
