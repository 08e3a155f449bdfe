"""Directives that need neither tools nor people, one function each."""

from collections.abc import Iterator

import gateway.model as m
from gateway.client import BackendEvents
from gateway.errors import BackendFailed
from gateway.json_values import JsonObject
from gateway.ports import BackendEvent

from .directive_parser import Directive
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
