"""The built-in tools: exact, bounded, and never the end of a turn."""

import ast
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.backends import Tool, ToolFailed, builtin_tools, enabled_tools
from gateway.backends.tools import BuiltinToolRunner, calculate, search
from gateway.ports import ToolOutcome
from tests.support.backends.turn_driver import FakeTurn

TOOLS = builtin_tools(lambda: 0.0)


async def run(name: str, **input: Any) -> tuple[str, bool]:
    result = await TOOLS[name].run(input, lambda text: None)
    return str(result.content), result.is_error


async def test_clock() -> None:
    assert await run("clock") == ("1970-01-01T00:00:00+00:00", False)


@pytest.mark.parametrize(("expression", "value"), [
    ("6 * 7", 42), ("-3 + 2 ** 10", 1021), ("7 // 2 + 7 % 4", 6), ("(1 + 2) * 3 / 4", 2.25), ("2 ** -1", 0.5),
    ("+1.5e3", 1500.0), ("  1 ", 1),
    ("-" * 199 + "1", -1),
])
def test_calculate(expression: str, value: float) -> None:
    assert calculate(expression) == value


@pytest.mark.parametrize("expression", [
    "", "1 +", "one", "__import__('os')", "1 if 1 else 2", "True", "'a' * 3", "[1]", "1 < 2", "10 ** 10000",
    "9 ** 9 ** 9", "2 ** 0.5 ** -99999", "(-1) ** 0.5", "1 / 0", "1e999", "1 << 99", "(" * 150 + ")" * 150,
    "9" * 201, "1j", "\x00", "0.1 ** -400", "x.y", "1e308 * 10", "~1",
])
def test_calculate_refuses_what_is_not_bounded_arithmetic(expression: str) -> None:
    with pytest.raises(ToolFailed, match="expression"):
        calculate(expression)


NUMBERS = st.integers(-999, 999).map(str)
EXPRESSIONS = st.recursive(NUMBERS, lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(
    lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"), max_leaves=8)


@given(EXPRESSIONS)
def test_calculate_agrees_with_python(expression: str) -> None:
    assert calculate(expression) == eval(compile(ast.parse(expression, mode="eval"), "", "eval"), {})


@given(st.text(alphabet="0123456789+-*/%(). ePx", max_size=60))
def test_calculate_never_raises_anything_else(expression: str) -> None:
    with suppress(ToolFailed):
        calculate(expression)


@pytest.mark.parametrize(("name", "input", "message"), [
    ("calc", {}, 'calc: "expression" is a required property'),
    ("calc", {"expression": 1}, 'calc: expression: 1 is not of type "string"'),
    ("search", {"query": ""}, 'search: query: "" is shorter than 1 character'),
    ("clock", {"zone": "x"}, "clock: Additional properties are not allowed ('zone' was unexpected)"),
])
async def test_bad_input_is_a_result_that_names_the_field(name: str, input: dict[str, Any], message: str) -> None:
    content, is_error = await run(name, **input)
    assert (content, is_error) == (message, True)


async def test_search() -> None:
    assert search("one language into another")[0] == "Interpreter"
    printed: list[str] = []
    result = await TOOLS["search"].run({"query": "the Ottoman court"}, printed.append)
    assert str(result.content).startswith("1. Dragoman: ")
    assert printed[:2] == ["Searching 6 passages.\n", "Found Dragoman.\n"]
    assert await run("search", query="zzz") == ("Nothing was found.", False)


async def test_a_tool_without_parameters_takes_anything() -> None:
    async def work(input: dict[str, Any], out: Any) -> Any:
        raise ToolFailed("no luck")

    result = await Tool(m.ToolSpec(name="any"), work).run({"a": 1}, print)
    assert (result.content, result.is_error) == ("no luck", True)


def test_enabled_is_the_sessions_choice_or_else_the_agents_own() -> None:
    agent = m.AgentCard(name="a", tools=(m.AgentTool(spec=m.ToolSpec(name="t"), permission=m.Permission.ASK),))
    command = m.SendMessage(content="")
    assert enabled_tools(FakeTurn(command, agent=agent)) == {"t": m.Permission.ASK}
    chosen = m.Settings(tools={"u": m.Permission.ALLOW})
    assert enabled_tools(FakeTurn(command, agent=agent, settings=chosen)) == {"u": m.Permission.ALLOW}
    assert enabled_tools(FakeTurn(command, agent=agent, settings=m.Settings(tools={}))) == {}


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
