"""The tools of one turn: what a model is told of them, and what a call of one of them is."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

import gateway.model as m
from gateway.backends.tools import Tool, enabled_tools, is_planning
from gateway.ports import Turn

MAX_NAME_CHARS = 64
ANY_OBJECT_SCHEMA = {"type": "object", "properties": {}}
"""The parameters of a tool that declares none."""


class McpTool(Struct, frozen=True, kw_only=True):
    """A tool of an MCP server, and what the agent may do with it where the session says nothing."""

    server: str
    spec: m.ToolSpec
    tool: Tool
    """Without parameters: the server itself holds a call's input to them."""
    permission: m.Permission


class LlmToolbox:
    """What one turn has: tools of the house, of its MCP servers and of its client, each under a name of its own."""

    def __init__(
        self, turn: Turn | None, own: Mapping[str, Tool], permissions: Mapping[str, m.Permission],
        mcp: Sequence[McpTool] = (),
    ) -> None:
        self.tools: dict[str, Tool] = {}
        """Those that are carried out here, by the names clients know."""
        self.specs: list[m.ToolSpec] = []
        """What the model is told, under names that any service takes."""
        self._calls: dict[str, m.ToolCall] = {}
        self._offered: dict[str, str] = {}
        if turn is not None and not is_planning(turn):
            self._fill(turn, own, permissions, mcp)

    @classmethod
    def empty(cls) -> "LlmToolbox":
        """For a turn in which nothing is to be done, only told."""
        return cls(None, {}, {})

    def call(self, offered: str, call_id: str) -> m.ToolCall:
        """A call as it begins; of a tool nobody has, too: that it is missing is its result."""
        call = self._calls.get(offered)
        return replace(call, call_id=call_id) if call else m.ToolCall(call_id=call_id, name=offered)

    def service_name(self, name: str) -> str:
        """What the model knows a tool by, be it of this turn or of an earlier one."""
        return self._offered.get(name) or _service_name(name)

    # -- filling --------------------------------------------------------------------------------------------------

    def _fill(
        self, turn: Turn, own: Mapping[str, Tool], permissions: Mapping[str, m.Permission], mcp: Sequence[McpTool],
    ) -> None:
        client = {spec.name: spec for spec in turn.settings.client_tools}
        mcp = [one for one in mcp if one.permission is not m.Permission.DENY]
        taken = Counter([*own, *client, *(one.spec.name for one in mcp)])
        for name, tool in own.items():
            self._add_own(turn, name, tool, permissions[name])
        for one in mcp:
            name = one.spec.name
            self._add_mcp(turn, name if taken[name] == 1 else f"{one.server}__{name}", one)
        for name, spec in client.items():
            self._add(spec, m.ToolCall(call_id="", name=name, origin=m.ToolOrigin.CLIENT, display_name=spec.title))

    def _add_own(self, turn: Turn, name: str, tool: Tool, default: m.Permission) -> None:
        permission = _permission(turn, name, default)
        if permission is not m.Permission.DENY:
            self.tools[name] = tool
            self._add(tool.spec, m.ToolCall(
                call_id="", name=name, permission=permission, display_name=tool.spec.title,
            ))

    def _add_mcp(self, turn: Turn, name: str, one: McpTool) -> None:
        permission = _permission(turn, name, one.permission)
        if permission is not m.Permission.DENY:
            self.tools[name] = one.tool
            self._add(replace(one.spec, name=name), m.ToolCall(
                call_id="", name=name, origin=m.ToolOrigin.MCP, permission=permission, server=one.server,
                display_name=one.spec.title,
            ))

    def _add(self, spec: m.ToolSpec, call: m.ToolCall) -> None:
        offered, number = _service_name(spec.name), 1
        while offered in self._calls:
            number += 1
            offered = f"{_service_name(spec.name)[:MAX_NAME_CHARS - 4]}_{number}"
        self._calls[offered], self._offered[spec.name] = call, offered
        self.specs.append(replace(spec, name=offered, parameters=spec.parameters or ANY_OBJECT_SCHEMA))


def _permission(turn: Turn, name: str, default: m.Permission) -> m.Permission:
    """What the operator denies stays denied; otherwise the session decides, and what it leaves out it does not have."""
    if default is m.Permission.DENY:
        return default
    if turn.settings.tools is None:
        return enabled_tools(turn).get(name, default)
    return turn.settings.tools.get(name, m.Permission.DENY)


def _service_name(name: str) -> str:
    """A name that every service takes for a tool."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:MAX_NAME_CHARS] or "_"
