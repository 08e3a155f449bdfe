"""What the loop wants of a model service, whichever it is: how it is asked, and how its answer is read.

What a model service complains of in the middle of its answer, as a fault of ours.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from typing import Any, Protocol

from msgspec import Struct

import gateway.model as m
from gateway.client import HttpClient, SseEvent, StreamAssembler, error_text
from gateway.errors import BackendFailed, ConnectionLost, GatewayError, Overloaded, RateLimited, TimedOut
from gateway.ports import BackendEvent

from .conversation import ConversationMessage
from .settings import LlmSettings
from .toolbox import LlmToolbox

TRAILER_SECONDS, LINGER_SECONDS = 5.0, 0.2
"""How long an answer that is whole is listened to for what it cost, and after its last word for its connection."""


class ModelRequest(Struct, frozen=True, kw_only=True):
    """One request to a model, in words of the house."""

    model: str
    system: str
    exchanges: Sequence[ConversationMessage]
    toolbox: LlmToolbox
    provider_tools: Sequence[dict[str, Any]] = ()
    schema: dict[str, Any] | None = None


class ResponseDecoder(Protocol):
    """One answer of a model as it comes; pure: events in, words of the house out."""

    stop: m.StopReason
    usage: m.Usage
    has_calls: bool
    """Whether it calls anything that the service does not carry out itself."""
    wants_continuation: bool
    """Whether the service wants to be asked again as it is."""
    is_complete: bool
    """Whether the answer is whole; what it cost may still follow."""
    is_closed: bool
    """Whether nothing at all follows."""

    def feed(self, events: Sequence[SseEvent], said: list[BackendEvent]) -> None:
        """Add what the events come to; where one of them is a failure, what came before it has been added.

        Of what comes after the answer is whole only what it cost is of interest.
        """


class ModelService(Protocol):
    """One kind of model service."""

    path: str

    def headers(self, settings: LlmSettings) -> dict[str, str]: ...
    def request_body(self, asking: ModelRequest, settings: LlmSettings) -> dict[str, Any]: ...
    def decoder(
        self, scribe: StreamAssembler, toolbox: LlmToolbox, call_ids: set[str], upstream: HttpClient
    ) -> ResponseDecoder: ...


def stop_reason_of(reading: ResponseDecoder, *, is_last: bool) -> m.StopReason:
    """Why the message ends; one that wants to go on does so unless it was the last that may."""
    wants_more = reading.wants_continuation or (
        reading.has_calls and reading.stop in (m.StopReason.END_TURN, m.StopReason.TOOL_USE)
    )
    if wants_more:
        return m.StopReason.MAX_STEPS if is_last else m.StopReason.TOOL_USE
    return m.StopReason.END_TURN if reading.stop is m.StopReason.TOOL_USE else reading.stop


async def read_trailer(batches: AsyncGenerator[list[SseEvent], None], reading: ResponseDecoder) -> None:
    """Hear what an answer cost, and let its connection come to an end so that it can be used again."""
    if not reading.is_complete:
        raise ConnectionLost("the answer of the model ended before it was whole")
    loop, over = asyncio.get_running_loop(), False
    with suppress(TimeoutError, GatewayError):
        async with asyncio.timeout(TRAILER_SECONDS) as limit:
            while True:
                if reading.is_closed and not over:
                    over = True
                    limit.reschedule(loop.time() + LINGER_SECONDS)
                events = await anext(batches, None)
                if events is None:
                    return
                reading.feed(events, [])


ERROR_CLASSES: dict[str, type[GatewayError]] = {
    "rate_limit_error": RateLimited, "rate_limit_exceeded": RateLimited, "insufficient_quota": RateLimited,
    "429": RateLimited,
    "overloaded_error": Overloaded, "overloaded": Overloaded, "server_error": Overloaded, "api_error": Overloaded,
    "service_unavailable": Overloaded, "500": Overloaded, "502": Overloaded, "503": Overloaded, "529": Overloaded,
    "timeout_error": TimedOut, "timeout": TimedOut, "504": TimedOut, "408": TimedOut,
}


def service_error(error: Any, upstream: HttpClient) -> GatewayError:
    """The error that a service's own error stands for, by its type or its code; quoted without our secrets."""
    marks = [str(error.get(field)) for field in ("type", "code", "status")] if isinstance(error, dict) else []
    kind = next((ERROR_CLASSES[mark] for mark in marks if mark in ERROR_CLASSES), BackendFailed)
    words = upstream.quote(error_text({"error": error}).encode(errors="replace")) or "no reason was given"
    return kind(f"{upstream.name} aborted its response: {words}")
