"""The built-in tools run without a turn, and a tool that fails says so."""

from gateway.backends.tool_runner import BuiltinToolRunner
from gateway.ports import ToolOutcome


async def test_the_built_in_tools_run() -> None:
    runner, told = BuiltinToolRunner(lambda: 0.0), list[str]()
    assert set(runner.specs) == {"clock", "calc", "search"}
    assert await runner.run("clock", {}, told.append) == ToolOutcome(text="1970-01-01T00:00:00+00:00")
    assert await runner.run("calc", {"expression": "6 * 7"}, told.append) == ToolOutcome(text="42")
    assert (await runner.run("calc", {"expression": "1 / 0"}, told.append)).is_error
    assert (await runner.run("calc", {}, told.append)).is_error
    assert told == []
    await runner.run("search", {"query": "stone"}, told.append)
    assert told
