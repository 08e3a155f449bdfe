"""Directives that need neither tools nor people, one function each."""

from collections.abc import Iterator

import gateway.model as m
from gateway.client import BackendEvents
from gateway.errors import BackendFailed
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
    m.AnnotationTopic.MEMORY_REFS: [{"id": "mem_demo", "title": "A memory"}],
    m.AnnotationTopic.BILLING: {"cache_read_tokens": 0, "cache_write_tokens": 0, "latency": 0.01, "model": "demo-1"},
    m.AnnotationTopic.RECOMMENDED: {"questions": ["What is a dragoman?", "What time is it?"]},
}
"""An annotation for every topic."""

PLAN = {"title": "A plan", "steps": [
    {"id": "1", "title": "Listen", "status": "completed"},
    {"id": "2", "title": "Interpret", "status": "in_progress"},
    {"id": "3", "title": "Answer", "status": "pending"},
]}


def think(stage: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    yield from stage.open_message()
    yield stage.writer.start(m.BlockKind.THINKING)
    for word in ("Let ", "me ", "think ", "about ", "that."):
        yield stage.writer.delta(word)
    yield stage.writer.end(signature="demo-signature")


async def slow(stage: DemoTurn, directive: Directive) -> BackendEvents:
    for said in stage.open_message():
        yield said
    yield stage.writer.start()
    for number in range(5 if directive.number is None else directive.number):
        await stage.sleep(SLOW_PAUSE_SECONDS)
        yield stage.writer.delta(f"{number + 1} ")
    yield stage.writer.end()


def burst(stage: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    yield from stage.open_message()
    yield stage.writer.start()
    delta = stage.writer.delta
    for _ in range(100 if directive.number is None else directive.number):
        yield delta("word ")
    yield stage.writer.end()


def annotate(stage: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    """Annotations come at the end of the message; a custom event announces them."""
    yield from stage.open_message()
    stage.annotations.extend(ANNOTATIONS.items())
    yield stage.writer.emit(m.CustomEvent(topic="demo.annotating", payload={"topics": len(ANNOTATIONS)}))


def image(stage: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    yield from stage.open_message()
    yield from stage.writer.image(PIXEL_PNG, "image/png")


def plan(stage: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    """Into planning and out of it again: every kind of data block, and a notice."""
    yield from stage.open_message()
    yield from stage.writer.data("planning_enter")
    yield from stage.writer.data("mode_change", {"from": "executing", "to": "planning"})
    yield from stage.writer.data("plan_status", PLAN)
    yield from stage.writer.data("planning_exit")
    yield m.NoticePosted(topic="plan", title="The plan has three steps.", detail=PLAN)


def card(stage: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    """A data block of a type that no dialect knows."""
    yield from stage.open_message()
    yield from stage.writer.data("dragoman_card", {"title": "A card", "rows": [1, 2, 3]})


def provider_tool(stage: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    """A tool that the model's provider runs: its result comes inside the message."""
    yield from stage.open_message()
    yield from stage.writer.call("web_search", {"query": stage.script.text or "dragoman"}, origin=m.ToolOrigin.PROVIDER)
    result = m.ToolReturned(
        call_id=stage.writer.calls[-1].call_id,
        content="One page was found.",
        origin=m.ToolOrigin.PROVIDER,
        duration_ms=0,
    )
    stage.note_result("web_search", result)
    yield result


def title(stage: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    yield m.SessionUpdated(title=directive.word)


def compact(stage: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    yield compaction(stage.turn)



def json(stage: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    stage.json = True
    return iter(())


# -- turns that end without a reply -----------------------------------------------------------------------------------

def refuse(stage: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    stage.has_ended = True
    yield from stage.open_message()
    yield from stage.writer.text("I would rather not answer that.")
    yield from stage.close_message(m.StopReason.REFUSAL)


def max_tokens(stage: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    """The reply without its last word."""
    stage.has_ended = True
    yield from stage.open_message()
    yield from stage.writer.text(stage.reply().rsplit(None, 1)[0])
    yield from stage.close_message(m.StopReason.MAX_TOKENS)


def max_steps(stage: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    """The whole reply."""
    stage.has_ended = True
    yield from stage.open_message()
    yield from stage.writer.text(stage.reply())
    yield from stage.close_message(m.StopReason.MAX_STEPS)


def fail(stage: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    """Fail in the middle of a block."""
    yield from stage.open_message()
    yield stage.writer.start()
    for word in ("I ", "am ", "about ", "to "):
        yield stage.writer.delta(word)
    raise BackendFailed("The demo agent broke in the middle of a sentence, as it was told to.")


def fail_start(stage: DemoTurn, directive: Directive) -> Iterator[BackendEvent]:
    raise BackendFailed("The demo agent broke before it said anything, as it was told to.")
