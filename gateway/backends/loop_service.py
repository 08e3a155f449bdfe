"""What the loop wants of a model service, whichever it is: how it is asked, and how its answer is read."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from typing import Any, Protocol

from msgspec import Struct

from gateway.errors import GatewayError
from gateway.model import StopReason, Usage
from gateway.ports import Said
from gateway.speech import Scribe
from gateway.upstream import Cut, SseEvent, Upstream

from .loop_memory import Exchange
from .loop_settings import ModelSettings
from .loop_tools import Toolbox

TRAIL_SECONDS, LINGER_SECONDS = 5.0, 0.2
"""How long an answer that is whole is listened to for what it cost, and after its last word for its connection."""


class Asking(Struct, frozen=True, kw_only=True):
    """One request to a model, in words of the house."""

    model: str
    system: str
    exchanges: Sequence[Exchange]
    toolbox: Toolbox
    provider_tools: Sequence[dict[str, Any]] = ()
    schema: dict[str, Any] | None = None


class Reading(Protocol):
    """One answer of a model as it comes; pure: events in, words of the house out."""

    stop: StopReason
    usage: Usage
    called: bool
    """Whether it calls anything that the service does not carry out itself."""
    paused: bool
    """Whether the service wants to be asked again as it is."""
    finished: bool
    """Whether the answer is whole; what it cost may still follow."""
    over: bool
    """Whether nothing at all follows."""

    def hear(self, events: Sequence[SseEvent], said: list[Said]) -> None:
        """Add what the events come to; where one of them is a failure, what came before it has been added.

        Of what comes after the answer is whole only what it cost is of interest.
        """


class Service(Protocol):
    """One kind of model service."""

    path: str

    def headers(self, settings: ModelSettings) -> dict[str, str]: ...
    def body(self, asking: Asking, settings: ModelSettings) -> dict[str, Any]: ...
    def reading(self, scribe: Scribe, toolbox: Toolbox, call_ids: set[str], upstream: Upstream) -> Reading: ...


def stop_of(reading: Reading, *, is_last: bool) -> StopReason:
    """Why the message ends; one that wants to go on does so unless it was the last that may."""
    wants_more = reading.paused or (reading.called and reading.stop in (StopReason.END_TURN, StopReason.TOOL_USE))
    if wants_more:
        return StopReason.MAX_STEPS if is_last else StopReason.TOOL_USE
    return StopReason.END_TURN if reading.stop is StopReason.TOOL_USE else reading.stop


async def hear_out(batches: AsyncGenerator[list[SseEvent], None], reading: Reading) -> None:
    """Hear what an answer cost, and let its connection come to an end so that it can be used again."""
    if not reading.finished:
        raise Cut("the answer of the model ended before it was whole")
    loop, over = asyncio.get_running_loop(), False
    with suppress(TimeoutError, GatewayError):
        async with asyncio.timeout(TRAIL_SECONDS) as limit:
            while True:
                if reading.over and not over:
                    over = True
                    limit.reschedule(loop.time() + LINGER_SECONDS)
                events = await anext(batches, None)
                if events is None:
                    return
                reading.hear(events, [])
