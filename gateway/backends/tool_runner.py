"""Runs the built-in tools outside of a conversation."""

from collections.abc import Callable, Mapping

import gateway.model as m
from gateway.json_values import JsonObject
from gateway.ports import Clock, ToolOutcome

from .tools import builtin_tools


class BuiltinToolRunner:
    """The built-in tools by name; the input is validated by each tool."""

    def __init__(self, clock: Clock) -> None:
        self._tools = builtin_tools(clock)
        self.specs: Mapping[str, m.ToolSpec] = {name: tool.spec for name, tool in self._tools.items()}

    async def run(self, name: str, input: JsonObject, out: Callable[[str], None]) -> ToolOutcome:
        result = await self._tools[name].run(input, out)
        return ToolOutcome(text=m.text_of(result.content), is_error=result.is_error)
