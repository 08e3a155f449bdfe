"""Permissions that hold although the server is elsewhere: what it is told of its tools, and what it is caught at."""

from collections.abc import Mapping

from msgspec.structs import replace

from gateway.backends.tools import is_planning
from gateway.errors import BackendFailed
from gateway.model import BlockEnded, Permission, PermissionAsk, SendMessage, Settings, ToolOrigin, ToolReturned
from gateway.ports import Scoped, Turn
from gateway.upstream import Asked, Heard

NOT_ASKED = (
    "The server used its tool '{tool}' without asking, and it was to ask first. Its dialect cannot tell it so: "
    "have the server itself ask before it uses '{tool}', or allow the tool here."
)
NOT_ALLOWED = (
    "The server used its tool '{tool}', which is not allowed here. Its dialect cannot tell it so: take the tool "
    "away from the server's agent, or allow it here."
)


def settled(turn: Turn) -> Settings:
    """The settings, with a word for each tool that the operator lists: the session's, or else the operator's.

    Where neither says anything it stays unsaid, and what the server does by itself holds.
    """
    listed = {tool.spec.name: tool.permission for tool in turn.agent.tools}
    chosen = turn.settings.tools
    if chosen is None:
        return replace(turn.settings, tools=listed or None)
    return replace(turn.settings, tools={**dict.fromkeys(listed, Permission.DENY), **chosen})


def settled_now(turn: Turn) -> Settings:
    """The same for this turn alone: there are no tools to make a plan with."""
    settings = settled(turn)
    if not is_planning(turn):
        return settings
    return replace(settings, tools=dict.fromkeys(settings.tools or (), Permission.DENY))


class Guard:
    """Stops a turn in which a server that cannot be told of permissions has gone beyond them.

    That the tool was used once cannot be undone; that nobody notices can.
    """

    def __init__(self, turn: Turn) -> None:
        self._permissions: Mapping[str, Permission] = settled_now(turn).tools or {}
        self._headless = isinstance(turn.command, SendMessage) and turn.command.headless
        self._calls: dict[str, str] = {}

    def watch(self, heard: Heard) -> None:
        event = heard.event if isinstance(heard, Scoped) else heard
        if isinstance(event, BlockEnded) and event.call is not None and event.call.origin is not ToolOrigin.CLIENT:
            self._calls[event.call.call_id] = event.call.name
        elif isinstance(event, Asked) and isinstance(event.ask, PermissionAsk):
            self._calls.pop(event.ask.call.call_id, None)
        elif isinstance(event, ToolReturned) and not event.is_error:
            self._returned(self._calls.pop(event.call_id, ""))

    def _returned(self, tool: str) -> None:
        match self._permissions.get(tool, Permission.ALLOW):
            case Permission.DENY:
                raise BackendFailed(NOT_ALLOWED.format(tool=tool))
            case Permission.ASK if not self._headless:
                raise BackendFailed(NOT_ASKED.format(tool=tool))
