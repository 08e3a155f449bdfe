"""Tools that the server executes: the class, the tools that a session has, and the three built-in ones."""

import ast
import math
import operator
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from msgspec import Struct

import gateway.model as m
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import Clock, ToolOutcome, Turn

PLANNING_MODE = "planning"
QUESTION_TOOL = "AskUserQuestion"
"""The tool by which agents ask people; many clients know its name and its input."""
OutputSink = Callable[[str], None]
"""Receives the output of a running tool."""


class ToolFailed(Exception):
    """Raised by a tool that fails; the message becomes the result of the call."""


class ToolCallResult(Struct, frozen=True, kw_only=True):
    """The result of a tool call."""

    content: m.Content = ""
    is_error: bool = False
    meta: dict[str, Any] | None = None


class Tool:
    """A tool and the function that executes it; the input is validated against the declared parameters."""

    def __init__(
        self, spec: m.ToolSpec, work: Callable[[JsonObject, OutputSink], Awaitable[ToolCallResult]]
    ) -> None:
        self.spec = spec
        self._work = work

    async def run(self, input: JsonObject, out: OutputSink) -> ToolCallResult:
        try:
            self._check(input)
            return await self._work(input, out)
        except ToolFailed as failed:
            return ToolCallResult(content=str(failed), is_error=True)

    def _check(self, input: JsonObject) -> None:
        for error in self._validator.iter_errors(input):
            field = ".".join(map(str, error.instance_path))
            raise ToolFailed(f"{self.spec.name}: {field + ': ' if field else ''}{error.message}")

    @cached_property
    def _validator(self) -> Any:
        import jsonschema_rs  # 3 MB, which an agent without tools spares

        return jsonschema_rs.validator_for(self.spec.parameters or True, offline=True)


def is_planning(turn: Turn) -> bool:
    """Whether the turn is for making a plan, so that no tool may run."""
    return isinstance(turn.command, m.SendMessage) and turn.command.mode == PLANNING_MODE


def is_headless(turn: Turn) -> bool:
    """Whether no person is there who could be asked."""
    return isinstance(turn.command, m.SendMessage) and turn.command.headless


def enabled_tools(turn: Turn) -> dict[str, m.Permission]:
    """The server tools of a session: its own choice, or else the agent's tools; none while planning."""
    if is_planning(turn):
        return {}
    chosen = turn.settings.tools
    return chosen if chosen is not None else {tool.spec.name: tool.permission for tool in turn.agent.tools}


def question_input(questions: Sequence[m.Question]) -> JsonObject:
    """The input of a call of the question tool."""
    return {"questions": [{
        "question": one.question, "header": one.header or "", "multiSelect": one.multi_select,
        "options": [{"label": choice.label, "description": choice.description or ""} for choice in one.options],
    } for one in questions]}


# -- the three that are built in --------------------------------------------------------------------------------------

def _parameters(**properties: JsonValue) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


CLOCK = m.ToolSpec(
    name="clock", title="Clock", description="The time of day, in UTC.",
    parameters={"type": "object", "properties": {}, "additionalProperties": False},
)
CALC = m.ToolSpec(
    name="calc", title="Calculator", description="Works out an arithmetic expression.",
    parameters=_parameters(expression={"type": "string", "description": "Numbers, + - * / // % ** and parentheses."}),
)
SEARCH = m.ToolSpec(
    name="search", title="Search", description="Finds passages in a small library about interpreters.",
    parameters=_parameters(query={"type": "string", "minLength": 1, "description": "Words to look for."}),
)


def builtin_tools(clock: Clock) -> dict[str, Tool]:
    """The built-in tools by name; the first one returns the time of `clock`."""
    async def tell(input: JsonObject, out: OutputSink) -> ToolCallResult:
        return ToolCallResult(content=datetime.fromtimestamp(clock(), UTC).isoformat(timespec="seconds"))

    tools = (Tool(CLOCK, tell), Tool(CALC, _calculate), Tool(SEARCH, _search))
    return {tool.spec.name: tool for tool in tools}


async def _calculate(input: dict[str, Any], out: OutputSink) -> ToolCallResult:
    return ToolCallResult(content=str(calculate(input["expression"])))


# -- arithmetic, without eval -----------------------------------------------------------------------------------------

MAX_EXPRESSION_CHARS, MAX_NUMBER_BITS = 200, 1024
"""The limits of an expression and of every number in it."""

Number = int | float
_BINARY: Mapping[type[ast.operator], Callable[[object, object], object]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], object]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}


def calculate(expression: str) -> Number:
    """The value of an arithmetic expression; raises `ToolFailed`, and nothing else, if there is none."""
    if len(expression) > MAX_EXPRESSION_CHARS:
        raise ToolFailed(f"expression: longer than {MAX_EXPRESSION_CHARS} characters")
    try:
        return _value(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ToolFailed(f"expression: not arithmetic: {expression!r}") from None
    except (ZeroDivisionError, OverflowError) as error:
        raise ToolFailed(f"expression: {error}") from None


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _bounded(value)
        case ast.UnaryOp(op, operand) if type(op) in _UNARY:
            return _bounded(_UNARY[type(op)](_value(operand)))
        case ast.BinOp(left, op, right) if type(op) in _BINARY:
            return _bounded(_apply(type(op), _value(left), _value(right)))
    raise ToolFailed("expression: only numbers, + - * / // % ** and parentheses are understood")


def _apply(op: type[ast.operator], left: Number, right: Number) -> object:
    if (
        op is ast.Pow
        and isinstance(left, int)
        and isinstance(right, int)
        and left.bit_length() * right > MAX_NUMBER_BITS
    ):
        raise OverflowError("the result is too large")
    return _BINARY[op](left, right)


def _bounded(value: Any) -> Number:
    if isinstance(value, complex) or not math.isfinite(value):
        raise OverflowError("the result is not a finite real number")
    if isinstance(value, int) and value.bit_length() > MAX_NUMBER_BITS:
        raise OverflowError("the result is too large")
    return value  # type: ignore[no-any-return]


# -- a library of six sentences ---------------------------------------------------------------------------------------

LIBRARY = {
    "Dragoman": "A dragoman was an interpreter and guide between the courts of Europe and the Ottoman Porte.",
    "Interpreter": "An interpreter carries speech from one language into another while it is being spoken.",
    "Lingua franca": "A lingua franca is a language shared by people whose own languages differ.",
    "Phrasebook": "A phrasebook lists what a traveller may need to say, spelled in two languages.",
    "Rosetta Stone": "The Rosetta Stone says one decree in three scripts, and so opened one of them to readers.",
    "Treaty": "A treaty drawn up in two languages says which of its texts is authoritative.",
}


async def _search(input: dict[str, Any], out: OutputSink) -> ToolCallResult:
    out(f"Searching {len(LIBRARY)} passages.\n")
    hits = search(input["query"])
    for title in hits:
        out(f"Found {title}.\n")
    lines = [f"{number}. {title}: {LIBRARY[title]}" for number, title in enumerate(hits, 1)]
    return ToolCallResult(content="\n".join(lines) or "Nothing was found.")


def search(query: str) -> list[str]:
    """Titles of the passages that share words with the query, the closest first."""
    wanted = _words(query)
    shared = {title: len(wanted & _words(f"{title} {passage}")) for title, passage in LIBRARY.items()}
    return sorted((title for title, count in shared.items() if count), key=lambda title: (-shared[title], title))


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{3,}", text.lower()))


class BuiltinToolRunner:
    """The built-in tools by name; the input is validated by each tool."""

    def __init__(self, clock: Clock) -> None:
        self._tools = builtin_tools(clock)
        self.specs: Mapping[str, m.ToolSpec] = {name: tool.spec for name, tool in self._tools.items()}

    async def run(self, name: str, input: JsonObject, out: Callable[[str], None]) -> ToolOutcome:
        result = await self._tools[name].run(input, out)
        return ToolOutcome(text=m.text_of(result.content), is_error=result.is_error)
