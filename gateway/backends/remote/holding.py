"""Calls of a server that does not say beforehand what it asks about: told with the permission they turn out to need."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from msgspec.structs import replace

from gateway.errors import GatewayError
from gateway.model import (
    BlockDelta,
    BlockEnded,
    BlockKind,
    BlockStarted,
    MessageEnded,
    Permission,
    PermissionAsk,
    ToolCall,
    ToolOrigin,
    ToolStatus,
    ToolStatusChanged,
)
from gateway.ports import Scoped
from gateway.upstream import Asked, Heard

HOLD_SECONDS = 0.5
"""So long the end of a call is held, in case that people are asked about it; whatever shows it at work tells it."""


async def evaluated(stream: AsyncGenerator[Heard, None], seconds: float = HOLD_SECONDS) -> AsyncGenerator[Heard, None]:
    """The stream, in which a call that people are asked about says so from its end on. Words are never held."""
    held, coming = Held(), None
    async with aclosing(stream):
        try:
            while True:
                coming = asyncio.ensure_future(_next(stream)) if held.calls else None
                if coming is not None and not (await asyncio.wait({coming}, timeout=seconds))[0]:
                    for one in held.release():
                        yield one
                heard = await (coming or _next(stream))
                if heard is None:
                    break
                for one in held.hear(heard):
                    yield one
        except GatewayError:
            for one in held.release():
                yield one
            raise
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)
    for one in held.release():
        yield one


async def _next(stream: AsyncGenerator[Heard, None]) -> Heard | None:
    return await anext(stream, None)


class Held:
    """The ends of calls that nobody knows more of yet, and what followed them."""

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}
        """Where each of the calls stands in what is held."""
        self._held: list[Heard] = []

    def hear(self, heard: Heard) -> list[Heard]:
        event = heard.event if isinstance(heard, Scoped) else heard
        if isinstance(event, Asked):
            self._asked(event)
        elif (call := _open_call(event)) is not None:
            self.calls[call.call_id] = len(self._held)
        elif not _is_quiet(event):
            return [*self.release(), heard]
        if not self.calls:
            return [heard]
        self._held.append(heard)
        return []

    def release(self) -> list[Heard]:
        held, self._held, self.calls = self._held, [], {}
        return held

    def _asked(self, asked: Asked) -> None:
        if isinstance(asked.ask, PermissionAsk) and (place := self.calls.get(asked.ask.call.call_id)) is not None:
            self._held[place] = _to_be_asked(self._held[place])


def _open_call(event: Heard) -> ToolCall | None:
    """The call that ends here, and that the server may carry out by itself, or may ask about."""
    call = event.call if isinstance(event, BlockEnded) and not event.torn else None
    is_open = call is not None and call.origin is not ToolOrigin.CLIENT and call.permission is Permission.ALLOW
    return call if is_open else None


def _is_quiet(event: Heard) -> bool:
    """What comes between a call and the ask that is about it."""
    if isinstance(event, BlockStarted | BlockDelta | BlockEnded):
        return event.kind is BlockKind.TOOL_USE
    if isinstance(event, ToolStatusChanged):
        return event.status is not ToolStatus.RUNNING
    return isinstance(event, MessageEnded)


def _to_be_asked(heard: Heard) -> Heard:
    if isinstance(heard, Scoped):
        return Scoped(heard.scope_id, _to_be_asked(heard.event))  # type: ignore[arg-type]  # an event stays one
    if isinstance(heard, BlockEnded) and heard.call is not None:
        return replace(heard, call=replace(heard.call, permission=Permission.ASK))
    return heard
