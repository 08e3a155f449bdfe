"""The tools of one turn: as the model service gets them, and as the calls of the model name them."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

import gateway.model as m
from gateway.backends.tools import Tool, enabled_tools, is_planning
from gateway.ports import ServerTool, Turn

MAX_NAME_CHARS = 64
ANY_OBJECT_SCHEMA = {"type": "object", "properties": {}}
"""The parameters of a tool that declares none."""


class McpTool(Struct, frozen=True, kw_only=True):
    """A tool of an MCP server, and its permission if the session has none for it."""

    server: str
    spec: m.ToolSpec
    tool: Tool
    """Without parameters: the server validates the input of a call."""
    permission: m.Permission
    of_session: bool = False
    """Whether a client has named the server: no permission for another tool of the same name is its own."""

    @property
    def as_server_tool(self) -> ServerTool:
        return ServerTool(spec=self.spec, permission=self.permission)


class Toolbox:
    """The tools of one turn: built-in ones, those of MCP servers and those of the client, each with a unique name."""

    def __init__(
        self, turn: Turn | None, own: Mapping[str, Tool], permissions: Mapping[str, m.Permission],
        mcp: Sequence[McpTool] = (), always: Sequence[Tool] = (), *, are_prefixed: bool = False,
    ) -> None:
        """`always` are tools that the session has whatever it has chosen.

        If `are_prefixed` is set, tools of the session's MCP servers are called `server__tool`, since nobody here knows
        the names of the agent's own tools.
        """
        self._are_prefixed = are_prefixed
        self.tools: dict[str, Tool] = {}
        """The tools that are executed here, by the names that clients see."""
        self.specs: list[m.ToolSpec] = []
        """The tools for the request, under names that every service accepts."""
        self._calls: dict[str, m.ToolCall] = {}
        self._offered: dict[str, str] = {}
        if turn is not None and not is_planning(turn):
            self._fill(turn, own, permissions, mcp)
            for tool in always:
                self._add_always(tool)

    @classmethod
    def empty(cls) -> "Toolbox":
        """For a turn without tools."""
        return cls(None, {}, {})

    def call(self, offered: str, call_id: str) -> m.ToolCall:
        """The start of a call; a call of an unknown tool is made, too, and its result is an error."""
        call = self._calls.get(offered)
        return replace(call, call_id=call_id) if call else m.ToolCall(call_id=call_id, name=offered)

    def service_name(self, name: str) -> str:
        """The name of a tool for the service, whether it is of this turn or of an earlier one."""
        return self._offered.get(name) or _service_name(name)

    # -- filling --------------------------------------------------------------------------------------------------

    def _fill(
        self, turn: Turn, own: Mapping[str, Tool], permissions: Mapping[str, m.Permission], mcp: Sequence[McpTool],
    ) -> None:
        client = {spec.name: spec for spec in turn.settings.client_tools}
        mcp = [one for one in mcp if one.permission is not m.Permission.DENY]
        named_by_client = [one for one in mcp if one.of_session]
        mcp = [one for one in mcp if not one.of_session]
        taken = Counter([*own, *client, *(one.spec.name for one in mcp)])
        for name, tool in own.items():
            self._add_own(turn, name, tool, permissions[name])
        for one in mcp:
            name = one.spec.name
            name = name if taken[name] == 1 else f"{one.server}__{name}"
            self._add_mcp(name, one, _permission(turn, name, one.permission))
        for one in named_by_client:
            name = self._free_name(one, client)
            chosen = turn.settings.tools or {}
            is_denied = m.Permission.DENY in (chosen.get(name), chosen.get(one.spec.name))
            self._add_mcp(name, one, m.Permission.DENY if is_denied else one.permission)
        for name, spec in client.items():
            self._add(spec, m.ToolCall(call_id="", name=name, origin=m.ToolOrigin.CLIENT, display_name=spec.title))

    def _add_own(self, turn: Turn, name: str, tool: Tool, default: m.Permission) -> None:
        permission = _permission(turn, name, default)
        if permission is not m.Permission.DENY:
            self.tools[name] = tool
            self._add(tool.spec, m.ToolCall(
                call_id="", name=name, permission=permission, display_name=tool.spec.title,
            ))

    def _add_always(self, tool: Tool) -> None:
        name = tool.spec.name
        if name not in self._offered:
            self.tools[name] = tool
            self._add(tool.spec, m.ToolCall(
                call_id="", name=name, permission=m.Permission.ALLOW, display_name=tool.spec.title,
            ))

    def _free_name(self, one: McpTool, client: Mapping[str, m.ToolSpec]) -> str:
        """A name that no other tool has, for a tool of a server that a client has named."""
        name, number = f"{one.server}__{one.spec.name}" if self._are_prefixed else one.spec.name, 1
        while name in self.tools or name in client:
            name = f"{one.server}__{one.spec.name}" + (f"_{number}" if number > 1 else "")
            number += 1
        return name

    def _add_mcp(self, name: str, one: McpTool, permission: m.Permission) -> None:
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
    """The operator's denial counts first, then the session's choice; a tool that is not listed there is denied."""
    if default is m.Permission.DENY:
        return default
    if turn.settings.tools is None:
        return enabled_tools(turn).get(name, default)
    return turn.settings.tools.get(name, m.Permission.DENY)


def _service_name(name: str) -> str:
    """The name with only those characters that every service accepts."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:MAX_NAME_CHARS] or "_"
