"""Sends spans to a collector over OTLP: the batch thread of the OpenTelemetry SDK does it, and nothing waits for it.

The exporter of the SDK is not used: its encoding took four fifths of all that a traced turn cost. Only a server whose
settings have `telemetry` imports this module.
"""

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import requests
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanContext, TraceFlags
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from gateway.logging import get_logger

from .otlp_messages import encode_spans
from .turn_spans import Span

log = get_logger("dragoman.telemetry")

TRACES_PATH = "/v1/traces"
QUEUED_SPANS, BATCH_SPANS = 8192, 512
"""How many spans wait for the thread; if it cannot keep up, the oldest are dropped. And how many go in one request."""
ANSWER_SECONDS = 10.0
"""How long the collector may take to answer a request."""
RETRIES = Retry(total=3, read=0, status_forcelist=(429, 502, 503, 504), allowed_methods=("POST",), backoff_factor=0.5,
                respect_retry_after_header=False, raise_on_status=False)
"""A request is repeated if it was certainly not taken: spans that came twice would be counted twice."""
CLOSE_SECONDS = 5.0
"""How long a server that stops waits until its last spans are sent."""
REPORT_SECONDS = 60.0
"""The shortest time between two lines about spans that could not be sent."""
QUEUE_LOGGER = "opentelemetry.sdk._shared_internal"
"""It writes a line for spans that it drops, without their number."""
SAMPLED = SpanContext(1, 1, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


class QueuedSpan(ReadableSpan):
    """A span on its way to the thread, and its place among all spans that went this way."""

    def __init__(self, span: Span, number: int) -> None:
        self.span, self.number = span, number
        self._context = SAMPLED  # the queue takes only spans that are sampled


class CollectorExporter(SpanExporter):
    """Sends spans to a collector, counts those that are lost, and tells their number once a minute.

    A span is lost if its request fails, or if it is dropped from a full queue: then its number never comes.
    """

    def __init__(self, send: Callable[[Sequence[Span]], bool], collector: str,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._send, self._collector, self._clock = send, collector, clock
        self._lost, self._last = 0, 0
        self._told_at: float | None = None

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        queued = cast(Sequence[QueuedSpan], spans)
        is_sent = self._send([one.span for one in queued])
        arrived, self._last = queued[-1].number - self._last, queued[-1].number
        self._lost += arrived - len(queued) if is_sent else arrived
        now = self._clock()
        if self._told_at is None or now - self._told_at >= REPORT_SECONDS:
            self._tell(now)
        return SpanExportResult.SUCCESS if is_sent else SpanExportResult.FAILURE

    def _tell(self, now: float) -> None:
        if self._lost:
            log.warning("spans_not_exported", collector=self._collector, count=self._lost)
            self._told_at, self._lost = now, 0

    def shutdown(self) -> None:
        self._tell(self._clock())


class OtlpExport:
    """The way of finished spans to the collector, from `open` to `close`."""

    def __init__(
        self, url: str, headers: Mapping[str, str], service: str, version: str, proxy: str | None = None,
    ) -> None:
        base = url.rstrip("/")
        self._url = base if base.endswith(TRACES_PATH) else base + TRACES_PATH
        self._version = version
        self._resource = dict(Resource.create({
            "service.name": service, "service.version": version,
            "service.instance.id": f"{socket.gethostname()}-{os.getpid()}",
        }).attributes)
        self._session = _session(headers, proxy)
        if (library := logging.getLogger(QUEUE_LOGGER)).level == logging.NOTSET:
            library.setLevel(logging.ERROR)
        self._taken = 0
        self._batches = BatchSpanProcessor(
            CollectorExporter(self._send, url), max_queue_size=QUEUED_SPANS, max_export_batch_size=BATCH_SPANS)

    def take(self, span: Span) -> None:
        """Hand a finished span to the thread."""
        self._taken += 1
        self._batches.on_end(QueuedSpan(span, self._taken))

    def _send(self, spans: Sequence[Span]) -> bool:
        """In the thread: whether the collector has taken these spans."""
        body = encode_spans(spans, self._resource, self._version)
        try:
            return self._session.post(self._url, body, timeout=ANSWER_SECONDS).ok
        except OSError:  # errors of requests, and files of SSL_CERT_FILE that are not there
            return False

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


def _session(headers: Mapping[str, str], proxy: str | None) -> requests.Session:
    """A session that uses this proxy alone: by itself, requests would look for the collector of this machine there."""
    session = requests.Session()
    session.trust_env = False
    session.proxies = {} if proxy is None else {"http": proxy, "https": proxy}
    session.headers.update({**headers, "Content-Type": "application/x-protobuf"})
    session.verify = os.environ.get("SSL_CERT_FILE") or True
    certificate, key = os.environ.get("SSL_CLIENT_CERT_FILE"), os.environ.get("SSL_CLIENT_KEY_FILE")
    session.cert = (certificate, key) if certificate and key else certificate
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(max_retries=RETRIES))
    return session
