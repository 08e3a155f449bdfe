"""The protocols of a model service: its requests, its responses, and its errors as `GatewayError`."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from msgspec import Struct

import gateway.model as m
from gateway.backends.toolbox import Toolbox
from gateway.client import EventStream, HttpClient, SseEvent, StreamAssembler, error_text
from gateway.errors import BackendFailed, ConnectionLost, GatewayError, Overloaded, RateLimited, TimedOut
from gateway.json_values import JsonObject
from gateway.ports import BackendEvent

from .conversation import ConversationMessage
from .settings import LlmSettings

TRAILER_SECONDS, LINGER_SECONDS = 5.0, 0.2
"""Seconds to wait for the usage after a complete response, and for the end of the connection after the last event."""


class ModelRequest(Struct, frozen=True, kw_only=True):
    """One request to a model, independent of the service."""

    model: str
    system: str
    exchanges: Sequence[ConversationMessage]
    toolbox: Toolbox
    provider_tools: Sequence[JsonObject] = ()
    schema: JsonObject | None = None


class ResponseDecoder(Protocol):
    """Decodes one response of a model: server-sent events in, canonical events out. No I/O."""

    stop: m.StopReason
    usage: m.Usage
    has_calls: bool
    """Whether there are calls that the service does not execute itself."""
    wants_continuation: bool
    """Whether the service paused, and continues if it gets the conversation once more."""
    is_complete: bool
    """Whether the response is complete; its usage may still follow."""
    is_closed: bool
    """Whether nothing follows at all."""

    def feed(self, events: Sequence[SseEvent], output: list[BackendEvent]) -> None:
        """Append the decoded events to `output`; if one event raises, those before it have been appended.

        After the response is complete, only its usage is read.
        """


class ModelService(Protocol):
    """One kind of model service."""

    path: str

    def headers(self, settings: LlmSettings) -> dict[str, str]: ...
    def request_body(self, asking: ModelRequest, settings: LlmSettings) -> JsonObject: ...
    def decoder(
        self, assembler: StreamAssembler, toolbox: Toolbox, call_ids: set[str], upstream: HttpClient
    ) -> ResponseDecoder: ...


def stop_reason_of(reading: ResponseDecoder, *, is_last: bool) -> m.StopReason:
    """Why the message ends: for its calls (or a pause) while another step is left, else for the limit of steps."""
    wants_more = reading.wants_continuation or (
        reading.has_calls and reading.stop in (m.StopReason.END_TURN, m.StopReason.TOOL_USE)
    )
    if wants_more:
        return m.StopReason.MAX_STEPS if is_last else m.StopReason.TOOL_USE
    return m.StopReason.END_TURN if reading.stop is m.StopReason.TOOL_USE else reading.stop


class ModelResponse:
    """The response to one request, as canonical events; the end of the message is left to the caller."""

    def __init__(self, stream: EventStream, decoder: ResponseDecoder) -> None:
        self.decoder, self._stream = decoder, stream
        self._failure: GatewayError | None = None

    async def read(self) -> list[BackendEvent]:
        """All events that have arrived, at least one; an empty list once the response and its usage are complete.

        What the service reports as an error is raised after the events before it were returned.
        """
        decoder = self.decoder
        while not decoder.is_complete and self._failure is None:
            received = await self._stream.read()
            if not received:
                raise ConnectionLost("the answer of the model ended before it was whole")
            events = list[BackendEvent]()
            try:
                decoder.feed(received, events)
            except GatewayError as error:
                self._failure = error
            if events:
                return events
        if self._failure is not None and not decoder.is_complete:
            raise self._failure
        await self._read_trailer()
        return []

    async def _read_trailer(self) -> None:
        """Read the usage, and the end of the response, so that the connection can be used again."""
        loop, is_last = asyncio.get_running_loop(), False
        with suppress(TimeoutError, GatewayError):
            async with asyncio.timeout(TRAILER_SECONDS) as limit:
                while True:
                    if self.decoder.is_closed and not is_last:
                        is_last = True
                        limit.reschedule(loop.time() + LINGER_SECONDS)
                    received = await self._stream.read()
                    if not received:
                        return
                    self.decoder.feed(received, [])


ERROR_CLASSES: dict[str, type[GatewayError]] = {
    "rate_limit_error": RateLimited, "rate_limit_exceeded": RateLimited, "insufficient_quota": RateLimited,
    "429": RateLimited,
    "overloaded_error": Overloaded, "overloaded": Overloaded, "server_error": Overloaded, "api_error": Overloaded,
    "service_unavailable": Overloaded, "500": Overloaded, "502": Overloaded, "503": Overloaded, "529": Overloaded,
    "timeout_error": TimedOut, "timeout": TimedOut, "504": TimedOut, "408": TimedOut,
}


def service_error(error: object, upstream: HttpClient) -> GatewayError:
    """The error that a service's error stands for, by its type or code; its message without our secrets."""
    marks = [str(error.get(field)) for field in ("type", "code", "status")] if isinstance(error, dict) else []
    kind = next((ERROR_CLASSES[mark] for mark in marks if mark in ERROR_CLASSES), BackendFailed)
    words = upstream.quote(error_text({"error": error}).encode(errors="replace")) or "no reason was given"
    return kind(f"{upstream.name} aborted its response: {words}")
