"""What the demo agent's directives do with tools: one small function each."""

from contextlib import aclosing
from typing import Any

import gateway.model as m
from gateway.backends.tools import OutputSink, Tool, ToolCallResult
from gateway.client import BackendEvents

from .directive_parser import Directive
from .schema_sample import sample
from .turn import DemoTurn

# -- tools ------------------------------------------------------------------------------------------------------------

DEFAULT_INPUTS: dict[str, dict[str, Any]] = {
    "clock": {}, "calc": {"expression": "6 * 7"}, "search": {"query": "dragoman"}, "erase": {"note": "draft"},
}
"""What a tool is called with where nothing is given."""
ERASE = m.ToolSpec(
    name="erase", title="Erase a note", description="Erases a note of the demo agent, which keeps none.",
    parameters={
        "type": "object", "properties": {"note": {"type": "string", "description": "The name of the note."}},
        "required": ["note"], "additionalProperties": False,
    },
)
"""The tool that needs permission unless a session trusts it."""


async def tool(stage: DemoTurn, directive: Directive) -> BackendEvents:
    """The tool named, or the first there is; a client's own tool will do as well."""
    name = directive.word or next((name for name in DEFAULT_INPUTS if name in stage.enabled), "clock")
    client = next((spec for spec in stage.settings.client_tools if spec.name == name), None)
    if client is not None:
        act = _call_client(stage, client, directive.input)
    elif name not in DEFAULT_INPUTS or name not in stage.enabled:
        stage.notes.append(f"I do not have the tool {name}.")
        return
    else:
        input = DEFAULT_INPUTS[name] if directive.input is None else directive.input
        act = stage.call(name, input, stage.enabled[name])
    async with aclosing(act) as events:
        async for said in events:
            yield said


async def client_tool(stage: DemoTurn, directive: Directive) -> BackendEvents:
    for spec in stage.settings.client_tools[:1]:
        async with aclosing(_call_client(stage, spec, directive.input)) as events:
            async for said in events:
                yield said
        return
    stage.notes.append("The client has declared no tools.")


def _call_client(stage: DemoTurn, spec: m.ToolSpec, input: dict[str, Any] | None) -> BackendEvents:
    permission = stage.enabled.get(spec.name, m.Permission.ALLOW)
    return stage.call(spec.name, _client_input(spec) if input is None else input, permission, m.ToolOrigin.CLIENT)


def _client_input(spec: m.ToolSpec) -> dict[str, Any]:
    made = sample(spec.parameters)
    return made if isinstance(made, dict) else {}


async def permit(stage: DemoTurn, directive: Directive) -> BackendEvents:
    name = _tool_that_asks(stage)
    if name is None:
        stage.notes.append("I have no tool that needs permission.")
        return
    async with aclosing(stage.call(name, DEFAULT_INPUTS[name], m.Permission.ASK)) as events:
        async for said in events:
            yield said


def _tool_that_asks(stage: DemoTurn) -> str | None:
    """A tool that needs permission: one the session made so, or the calculator where it said nothing."""
    if stage.settings.tools is None:
        return "calc"
    asked = [name for name in ("calc", "clock", "search", "erase") if stage.enabled.get(name) is m.Permission.ASK]
    return asked[0] if asked else None


async def parallel(stage: DemoTurn, directive: Directive) -> BackendEvents:
    """One message, three calls: one allowed, one to be permitted, one for the client."""
    asked = _tool_that_asks(stage)
    allowed = (name for name in DEFAULT_INPUTS if stage.enabled.get(name) is m.Permission.ALLOW and name != asked)
    client = stage.settings.client_tools[:1]
    calls = [(name, DEFAULT_INPUTS[name], m.Permission.ALLOW, m.ToolOrigin.BUILTIN) for name in [*allowed][:1]]
    calls += [(asked, DEFAULT_INPUTS[asked], m.Permission.ASK, m.ToolOrigin.BUILTIN)] if asked else []
    calls += [(spec.name, _client_input(spec), m.Permission.ALLOW, m.ToolOrigin.CLIENT) for spec in client]
    if not calls:
        stage.notes.append("I have no tools to call.")
        return
    for said in stage.open_message():
        yield said
    for call in calls:
        for said in stage.write_call(*call):
            yield said
    async with aclosing(stage.run_calls()) as events:
        async for said in events:
            yield said


# -- tools whose results the page acts upon ---------------------------------------------------------------------------

async def _erase(input: dict[str, Any], out: OutputSink) -> ToolCallResult:
    return ToolCallResult(content=f"There is no note {input['note']} any more.")


async def _bridge(input: dict[str, Any], out: OutputSink) -> ToolCallResult:
    return ToolCallResult(content="The page was told.", meta={"bridge": {"action": "map.highlight", "payload": input}})


async def _card(input: dict[str, Any], out: OutputSink) -> ToolCallResult:
    html = "<!doctype html><title>Demo</title><p>A card from the demo agent.</p>"
    card = {"resourceHTML": html, "target": "inline", "height": 120, "title": "Demo card"}
    return ToolCallResult(content="The card is shown.", meta={"ui": card})


DEMO_TOOLS = {
    "erase": Tool(ERASE, _erase),
    "highlight": Tool(m.ToolSpec(name="highlight", title="Highlight", parameters={"type": "object"}), _bridge),
    "show_card": Tool(m.ToolSpec(name="show_card", title="Show a card", parameters={"type": "object"}), _card),
}
"""The demo agent's own means; nobody has to enable the last two."""


def bridge(stage: DemoTurn, directive: Directive) -> BackendEvents:
    return stage.call("highlight", {"place": "Pera"})


def ui(stage: DemoTurn, directive: Directive) -> BackendEvents:
    return stage.call("show_card", {}, origin=m.ToolOrigin.MCP)
