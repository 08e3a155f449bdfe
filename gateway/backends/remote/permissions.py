"""Permissions that hold although the server is elsewhere: what it is told of its tools, and what it is caught at.

Calls of a server that does not say beforehand what it asks about: told with the permission they turn out to need.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from msgspec.structs import replace

import gateway.model as m
from gateway.backends.tools import is_planning
from gateway.errors import BackendFailed, GatewayError
from gateway.ports import DecodedItem, RemoteAsk, ScopedEvent, Turn

NOT_ASKED = (
    "The server used its tool '{tool}' without asking, and it was to ask first. Its dialect cannot tell it so: "
    "have the server itself ask before it uses '{tool}', or allow the tool here."
)
NOT_ALLOWED = (
    "The server used its tool '{tool}', which is not allowed here. Its dialect cannot tell it so: take the tool "
    "away from the server's agent, or allow it here."
)


def tool_settings(turn: Turn) -> m.Settings:
    """The settings, with a word for each tool that the operator lists: the session's, or else the operator's.

    Where neither says anything it stays unsaid, and what the server does by itself holds.
    """
    listed = {tool.spec.name: tool.permission for tool in turn.agent.tools}
    chosen = turn.settings.tools
    if chosen is None:
        return replace(turn.settings, tools=listed or None)
    return replace(turn.settings, tools={**dict.fromkeys(listed, m.Permission.DENY), **chosen})


def turn_tool_settings(turn: Turn) -> m.Settings:
    """The same for this turn alone: there are no tools to make a plan with."""
    settings = tool_settings(turn)
    if not is_planning(turn):
        return settings
    return replace(settings, tools=dict.fromkeys(settings.tools or (), m.Permission.DENY))


class PermissionGuard:
    """Stops a turn in which a server that cannot be told of permissions has gone beyond them.

    That the tool was used once cannot be undone; that nobody notices can.
    """

    def __init__(self, turn: Turn) -> None:
        self._permissions: Mapping[str, m.Permission] = turn_tool_settings(turn).tools or {}
        self._headless = isinstance(turn.command, m.SendMessage) and turn.command.headless
        self._calls: dict[str, str] = {}

    def check(self, heard: DecodedItem) -> None:
        event = heard.event if isinstance(heard, ScopedEvent) else heard
        if isinstance(event, m.BlockEnded) and event.call is not None and event.call.origin is not m.ToolOrigin.CLIENT:
            self._calls[event.call.call_id] = event.call.name
        elif isinstance(event, RemoteAsk) and isinstance(event.ask, m.PermissionAsk):
            self._calls.pop(event.ask.call.call_id, None)
        elif isinstance(event, m.ToolReturned) and not event.is_error:
            self._returned(self._calls.pop(event.call_id, ""))

    def _returned(self, tool: str) -> None:
        match self._permissions.get(tool, m.Permission.ALLOW):
            case m.Permission.DENY:
                raise BackendFailed(NOT_ALLOWED.format(tool=tool))
            case m.Permission.ASK if not self._headless:
                raise BackendFailed(NOT_ASKED.format(tool=tool))


HOLD_SECONDS = 0.5
"""So long the end of a call is held, in case that people are asked about it; whatever shows it at work tells it."""


async def with_held_calls(
    stream: AsyncGenerator[DecodedItem, None], seconds: float = HOLD_SECONDS
) -> AsyncGenerator[DecodedItem, None]:
    """The stream, in which a call that people are asked about says so from its end on. Words are never held."""
    held, coming = HeldCalls(), None
    async with aclosing(stream):
        try:
            while True:
                coming = asyncio.ensure_future(_next_item(stream)) if held.calls else None
                if coming is not None and not (await asyncio.wait({coming}, timeout=seconds))[0]:
                    for one in held.release():
                        yield one
                heard = await (coming or _next_item(stream))
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


async def _next_item(stream: AsyncGenerator[DecodedItem, None]) -> DecodedItem | None:
    return await anext(stream, None)


class HeldCalls:
    """The ends of calls that nobody knows more of yet, and what followed them."""

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}
        """Where each of the calls stands in what is held."""
        self._held: list[DecodedItem] = []

    def hear(self, heard: DecodedItem) -> list[DecodedItem]:
        event = heard.event if isinstance(heard, ScopedEvent) else heard
        if isinstance(event, RemoteAsk):
            self._asked(event)
        elif (call := _open_call(event)) is not None:
            self.calls[call.call_id] = len(self._held)
        elif not _may_precede_ask(event):
            return [*self.release(), heard]
        if not self.calls:
            return [heard]
        self._held.append(heard)
        return []

    def release(self) -> list[DecodedItem]:
        held, self._held, self.calls = self._held, [], {}
        return held

    def _asked(self, asked: RemoteAsk) -> None:
        if isinstance(asked.ask, m.PermissionAsk) and (place := self.calls.get(asked.ask.call.call_id)) is not None:
            self._held[place] = _marked_ask(self._held[place])


def _open_call(event: DecodedItem) -> m.ToolCall | None:
    """The call that ends here, and that the server may carry out by itself, or may ask about."""
    call = event.call if isinstance(event, m.BlockEnded) and not event.torn else None
    is_open = call is not None and call.origin is not m.ToolOrigin.CLIENT and call.permission is m.Permission.ALLOW
    return call if is_open else None


def _may_precede_ask(event: DecodedItem) -> bool:
    """What comes between a call and the ask that is about it."""
    if isinstance(event, m.BlockStarted | m.BlockDelta | m.BlockEnded):
        return event.kind is m.BlockKind.TOOL_USE
    if isinstance(event, m.ToolStatusChanged):
        return event.status is not m.ToolStatus.RUNNING
    return isinstance(event, m.MessageEnded)


def _marked_ask(heard: DecodedItem) -> DecodedItem:
    if isinstance(heard, ScopedEvent):
        return ScopedEvent(heard.scope_id, _marked_ask(heard.event))  # type: ignore[arg-type]  # an event stays one
    if isinstance(heard, m.BlockEnded) and heard.call is not None:
        return replace(heard, call=replace(heard.call, permission=m.Permission.ASK))
    return heard
