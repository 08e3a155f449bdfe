"""Permissions at a remote server: those of its tools, which calls it asks about, and what it may not do."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

import gateway.model as m
from gateway.backends.tools import is_headless, is_planning
from gateway.errors import BackendFailed
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
    """The session's settings, with a permission for each tool that the operator lists: the session's or else theirs.

    If neither lists any tool, nothing is sent, and the server applies its own permissions.
    """
    listed = {tool.spec.name: tool.permission for tool in turn.agent.tools}
    chosen = turn.settings.tools
    if chosen is None:
        return replace(turn.settings, tools=listed or None)
    return replace(turn.settings, tools={**dict.fromkeys(listed, m.Permission.DENY), **chosen})


def turn_tool_settings(turn: Turn) -> m.Settings:
    """The settings of this turn: while planning, every tool is denied."""
    settings = tool_settings(turn)
    if not is_planning(turn):
        return settings
    return replace(settings, tools=dict.fromkeys(settings.tools or (), m.Permission.DENY))


class PermissionGuard:
    """Fails a turn in which a server, whose dialect has no permissions, has used a tool that it may not use.

    The use cannot be undone, but it does not stay unnoticed.
    """

    def __init__(self, turn: Turn) -> None:
        self._permissions: Mapping[str, m.Permission] = turn_tool_settings(turn).tools or {}
        self._is_headless = is_headless(turn)
        self._calls: dict[str, str] = {}

    def check(self, item: DecodedItem) -> None:
        event = item.event if isinstance(item, ScopedEvent) else item
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
            case m.Permission.ASK if not self._is_headless:
                raise BackendFailed(NOT_ASKED.format(tool=tool))


class HeldCalls:
    """Holds the ends of calls until it is known whether the server asks about them; then the permission says so.

    Only calls, and what may come between a call and its ask, are held; text never is.
    """

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        """The place of each call in what is held."""
        self._held: list[DecodedItem] = []

    @property
    def is_holding(self) -> bool:
        return bool(self._places)

    def feed(self, items: Sequence[DecodedItem]) -> list[DecodedItem]:
        return [passed for item in items for passed in self._feed(item)]

    def _feed(self, item: DecodedItem) -> list[DecodedItem]:
        event = item.event if isinstance(item, ScopedEvent) else item
        if isinstance(event, RemoteAsk):
            self._mark(event)
        elif (call := _open_call(event)) is not None:
            self._places[call.call_id] = len(self._held)
        elif not _may_precede_ask(event):
            return [*self.release(), item]
        if not self._places:
            return [item]
        self._held.append(item)
        return []

    def release(self) -> list[DecodedItem]:
        held, self._held, self._places = self._held, [], {}
        return held

    def _mark(self, asked: RemoteAsk) -> None:
        if isinstance(asked.ask, m.PermissionAsk) and (place := self._places.get(asked.ask.call.call_id)) is not None:
            self._held[place] = _marked_ask(self._held[place])


def _open_call(event: DecodedItem) -> m.ToolCall | None:
    """The call that ends with this event, if the server may execute it or may ask about it."""
    call = event.call if isinstance(event, m.BlockEnded) and not event.torn else None
    is_open = call is not None and call.origin is not m.ToolOrigin.CLIENT and call.permission is m.Permission.ALLOW
    return call if is_open else None


def _may_precede_ask(event: DecodedItem) -> bool:
    """Whether the event may come between a call and the ask about it."""
    if isinstance(event, m.BlockStarted | m.BlockDelta | m.BlockEnded):
        return event.kind is m.BlockKind.TOOL_USE
    if isinstance(event, m.ToolStatusChanged):
        return event.status is not m.ToolStatus.RUNNING
    return isinstance(event, m.MessageEnded)


def _marked_ask(item: DecodedItem) -> DecodedItem:
    if isinstance(item, ScopedEvent):
        return ScopedEvent(item.scope_id, _marked_ask(item.event))  # type: ignore[arg-type]  # an event stays one
    if isinstance(item, m.BlockEnded) and item.call is not None:
        return replace(item, call=replace(item.call, permission=m.Permission.ASK))
    return item
