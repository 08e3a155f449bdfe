"""Directives that need no people, one function each: of text, of messages, of tools."""

from collections.abc import Iterator

import gateway.model as m
from gateway.backends.tools import OutputSink, Tool, ToolCallResult
from gateway.client import BackendEvents
from gateway.errors import BackendFailed
from gateway.json_values import JsonObject
from gateway.ports import BackendEvent

from .directive_parser import Directive
from .schema_sample import sample
from .turn import DemoTurn, compaction

SLOW_PAUSE_SECONDS = 0.05
"""Seconds between the deltas of /slow."""

PIXEL_PNG = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4"
    "nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
)

ANNOTATIONS: dict[m.AnnotationTopic, object] = {
    m.AnnotationTopic.PREFACE: "Here is what I found.",
    m.AnnotationTopic.INTENT: {"intent": "demo", "confidence": 1.0},
    m.AnnotationTopic.SEARCH: "Searched for: dragoman",
    m.AnnotationTopic.KNOWLEDGE: "Dragoman: an interpreter and guide.",
    m.AnnotationTopic.BILLING: {"cache_read_tokens": 0, "cache_write_tokens": 0, "latency": 0.01, "model": "demo-1"},
    m.AnnotationTopic.RECOMMENDED: {"questions": ["What is a dragoman?", "What time is it?"]},
}
"""An annotation for every topic but memories, which the server announces: an agent has none of its own."""

PLAN: JsonObject = {"title": "A plan", "steps": [
    {"id": "1", "title": "Listen", "status": "completed"},
    {"id": "2", "title": "Interpret", "status": "in_progress"},
    {"id": "3", "title": "Answer", "status": "pending"},
]}


def think(demo: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    yield from demo.open_message()
    yield demo.writer.start(m.BlockKind.THINKING)
    for word in ("Let ", "me ", "think ", "about ", "that."):
        yield demo.writer.delta(word)
    yield demo.writer.end(signature="demo-signature")


async def slow(demo: DemoTurn, directive: Directive) -> BackendEvents:
    for event in demo.open_message():
        yield event
    yield demo.writer.start()
    for number in range(5 if directive.number is None else directive.number):
        await demo.sleep(SLOW_PAUSE_SECONDS)
        yield demo.writer.delta(f"{number + 1} ")
    yield demo.writer.end()


def burst(demo: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    yield from demo.open_message()
    yield demo.writer.start()
    delta = demo.writer.delta
    for _ in range(100 if directive.number is None else directive.number):
        yield delta("word ")
    yield demo.writer.end()


def annotate(demo: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    """Annotations come at the end of the message; a custom event announces them."""
    yield from demo.open_message()
    demo.annotations.extend(ANNOTATIONS.items())
    yield demo.writer.emit(m.CustomEvent(topic="demo.annotating", payload={"topics": len(ANNOTATIONS)}))


def image(demo: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    yield from demo.open_message()
    yield from demo.writer.image(PIXEL_PNG, "image/png")


def plan(demo: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    """Into planning and out of it again: every kind of data block, and a notice."""
    yield from demo.open_message()
    yield from demo.writer.data("planning_enter")
    yield from demo.writer.data("mode_change", {"from": "executing", "to": "planning"})
    yield from demo.writer.data("plan_status", PLAN)
    yield from demo.writer.data("planning_exit")
    yield m.NoticePosted(topic="plan", title="The plan has three steps.", detail=PLAN)


def card(demo: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    """A data block of a type that no dialect knows."""
    yield from demo.open_message()
    yield from demo.writer.data("dragoman_card", {"title": "A card", "rows": [1, 2, 3]})


def provider_tool(demo: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    """A tool that the model's provider runs: its result comes inside the message."""
    yield from demo.open_message()
    yield from demo.writer.call("web_search", {"query": demo.script.text or "dragoman"}, origin=m.ToolOrigin.PROVIDER)
    result = m.ToolReturned(
        call_id=demo.writer.calls[-1].call_id,
        content="One page was found.",
        origin=m.ToolOrigin.PROVIDER,
        duration_ms=0,
    )
    demo.note_result("web_search", result)
    yield result


def title(demo: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    yield m.SessionUpdated(title=directive.word)


def compact(demo: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    yield compaction(demo.turn)



def json(demo: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    demo.json = True
    return iter(())


# -- turns that end without a reply -----------------------------------------------------------------------------------

def refuse(demo: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    demo.has_ended = True
    yield from demo.open_message()
    yield from demo.writer.text("I would rather not answer that.")
    yield from demo.close_message(m.StopReason.REFUSAL)


def max_tokens(demo: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    """The reply without its last word."""
    demo.has_ended = True
    yield from demo.open_message()
    yield from demo.writer.text(demo.reply().rsplit(None, 1)[0])
    yield from demo.close_message(m.StopReason.MAX_TOKENS)


def max_steps(demo: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    """The whole reply."""
    demo.has_ended = True
    yield from demo.open_message()
    yield from demo.writer.text(demo.reply())
    yield from demo.close_message(m.StopReason.MAX_STEPS)


def fail(demo: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    """Fail in the middle of a block."""
    yield from demo.open_message()
    yield demo.writer.start()
    for word in ("I ", "am ", "about ", "to "):
        yield demo.writer.delta(word)
    raise BackendFailed("The demo agent broke in the middle of a sentence, as it was told to.")


def fail_start(demo: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    raise BackendFailed("The demo agent broke before it said anything, as it was told to.")


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
