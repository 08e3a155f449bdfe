"""A collector for tests: takes OTLP over HTTP on a port of the machine, and decodes its protobuf."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.gateway_server import simulation


@dataclass
class Collector:
    """What arrived: the spans in their order, their resources, and the headers of the requests."""

    address: str = ""
    status: int = 200
    spans: list[Span] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    """Cleared, the collector takes requests and does not answer them."""

    def __post_init__(self) -> None:
        self.may_answer.set()

    async def take(self, request: web.Request) -> web.Response:
        message = ExportTraceServiceRequest.FromString(await request.read())
        self.headers.append(dict(request.headers))
        for group in message.resource_spans:
            self.resources.append(attributes(group.resource.attributes))
            self.spans.extend(span for scope in group.scope_spans for span in scope.spans)
        self.came.set()
        await self.may_answer.wait()
        return web.Response(status=self.status)

    def named(self, beginning: str) -> list[Span]:
        return [span for span in self.spans if span.name.startswith(beginning)]


def attributes(values: Any) -> dict[str, Any]:
    """The attributes of a span or a resource as plain values; a list is a tuple."""
    return {value.key: _plain(value.value) for value in values}


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return tuple(_plain(one) for one in value.array_value.values)
    return getattr(value, kind)


@asynccontextmanager
async def collecting(tls: ssl.SSLContext | None = None) -> AsyncIterator[Collector]:
    """A collector that the threads of the SDK can reach, until the block ends."""
    collector = Collector()
    app = web.Application()
    app.router.add_post("/v1/traces", collector.take)
    runner = web.AppRunner(app)
    await runner.setup()
    assert runner.server is not None
    server = await simulation().create_real_server(runner.server, "127.0.0.1", 0, ssl=tls)
    try:
        collector.address = f"http{'s' if tls else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield collector
    finally:
        collector.may_answer.set()
        server.close()
        await runner.cleanup()  # first: since Python 3.12, a server waits for the end of its connections
        await server.wait_closed()
