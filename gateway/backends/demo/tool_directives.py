"""Directives that call tools, one function each."""

from collections.abc import Iterator

import gateway.model as m
from gateway.backends.tools import OutputSink, Tool, ToolCallResult
from gateway.client import BackendEvents
from gateway.json_values import JsonObject
from gateway.ports import BackendEvent

from .directive_parser import Directive
from .schema_sample import sample
from .turn import DemoTurn

NoEvents = Iterator[BackendEvent]

# -- tools ------------------------------------------------------------------------------------------------------------

DEFAULT_INPUTS: dict[str, JsonObject] = {
    "clock": {}, "calc": {"expression": "6 * 7"}, "search": {"query": "dragoman"}, "erase": {"note": "draft"},
}
"""The input of a tool if the directive has none."""
ERASE = m.ToolSpec(
    name="erase", title="Erase a note", description="Erases a note of the demo agent, which keeps none.",
    parameters={
        "type": "object", "properties": {"note": {"type": "string", "description": "The name of the note."}},
        "required": ["note"], "additionalProperties": False,
    },
)
"""The tool that needs permission unless a session trusts it."""


def tool(demo: DemoTurn, directive: Directive) -> BackendEvents | NoEvents:
    """The named tool, or the first enabled one; a client's tool can be named, too."""
    name = directive.word or next((name for name in DEFAULT_INPUTS if name in demo.enabled), "clock")
    client = next((spec for spec in demo.settings.client_tools if spec.name == name), None)
    if client is not None:
        return _call_client(demo, client, directive.input)
    if name not in DEFAULT_INPUTS or name not in demo.enabled:
        return _note(demo, f"I do not have the tool {name}.")
    input = DEFAULT_INPUTS[name] if directive.input is None else directive.input
    return demo.call(name, input, demo.enabled[name])


def client_tool(demo: DemoTurn, directive: Directive) -> BackendEvents | NoEvents:
    if not demo.settings.client_tools:
        return _note(demo, "The client has declared no tools.")
    return _call_client(demo, demo.settings.client_tools[0], directive.input)


def _note(demo: DemoTurn, line: str) -> NoEvents:
    demo.notes.append(line)
    return iter(())


def _call_client(demo: DemoTurn, spec: m.ToolSpec, input: JsonObject | None) -> BackendEvents:
    permission = demo.enabled.get(spec.name, m.Permission.ALLOW)
    return demo.call(spec.name, _client_input(spec) if input is None else input, permission, m.ToolOrigin.CLIENT)


def _client_input(spec: m.ToolSpec) -> JsonObject:
    made = sample(spec.parameters)
    return made if isinstance(made, dict) else {}


def permit(demo: DemoTurn, directive: Directive) -> BackendEvents | NoEvents:
    name = _tool_that_asks(demo)
    if name is None:
        return _note(demo, "I have no tool that needs permission.")
    return demo.call(name, DEFAULT_INPUTS[name], m.Permission.ASK)


def _tool_that_asks(demo: DemoTurn) -> str | None:
    """A tool that needs permission in this session; the calculator if the session has no tool settings."""
    if demo.settings.tools is None:
        return "calc"
    asked = [name for name in ("calc", "clock", "search", "erase") if demo.enabled.get(name) is m.Permission.ASK]
    return asked[0] if asked else None


def parallel(demo: DemoTurn, directive: Directive) -> BackendEvents | NoEvents:
    """One message with three calls: one allowed, one that needs permission, one of a client's tool."""
    asked = _tool_that_asks(demo)
    allowed = (name for name in DEFAULT_INPUTS if demo.enabled.get(name) is m.Permission.ALLOW and name != asked)
    client = demo.settings.client_tools[:1]
    calls = [(name, DEFAULT_INPUTS[name], m.Permission.ALLOW, m.ToolOrigin.BUILTIN) for name in [*allowed][:1]]
    calls += [(asked, DEFAULT_INPUTS[asked], m.Permission.ASK, m.ToolOrigin.BUILTIN)] if asked else []
    calls += [(spec.name, _client_input(spec), m.Permission.ALLOW, m.ToolOrigin.CLIENT) for spec in client]
    if not calls:
        return _note(demo, "I have no tools to call.")
    written = demo.open_message()
    for call in calls:
        written += demo.write_call(*call)
    return demo.run_calls(written)


# -- the demo agent's own tools ---------------------------------------------------------------------------------------

async def _erase(input: JsonObject, out: OutputSink) -> ToolCallResult:
    return ToolCallResult(content=f"There is no note {input['note']} any more.")


async def _bridge(input: JsonObject, out: OutputSink) -> ToolCallResult:
    return ToolCallResult(content="The page was told.", meta={"bridge": {"action": "map.highlight", "payload": input}})


async def _card(input: JsonObject, out: OutputSink) -> ToolCallResult:
    html = "<!doctype html><title>Demo</title><p>A card from the demo agent.</p>"
    card = {"resourceHTML": html, "target": "inline", "height": 120, "title": "Demo card"}
    return ToolCallResult(content="The card is shown.", meta={"ui": card})


DEMO_TOOLS = {
    "erase": Tool(ERASE, _erase),
    "highlight": Tool(m.ToolSpec(name="highlight", title="Highlight", parameters={"type": "object"}), _bridge),
    "show_card": Tool(m.ToolSpec(name="show_card", title="Show a card", parameters={"type": "object"}), _card),
}
"""Sessions need not enable the last two; a page acts upon their results."""


def bridge(demo: DemoTurn, directive: Directive) -> BackendEvents:
    return demo.call("highlight", {"place": "Pera"})


def ui(demo: DemoTurn, directive: Directive) -> BackendEvents:
    return demo.call("show_card", {}, origin=m.ToolOrigin.MCP)
