"""What the demo agent's directives do by themselves: one small function each, no waiting for people."""

from collections.abc import Iterator

from gateway.errors import BackendFailed
from gateway.model import (
    BlockKind,
    Compact,
    CustomEvent,
    NoticePosted,
    SessionCompacted,
    SessionUpdated,
    StopReason,
    ToolOrigin,
    ToolReturned,
    Topic,
    Trigger,
    text_of,
)
from gateway.ports import Said, Turn
from gateway.speech import Speech

from .directives import Directive
from .stage import Stage, words

PAUSE = 0.05
"""Seconds between the deltas of /slow."""

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4"
    "nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
)

REMARKS: dict[Topic, object] = {
    Topic.PREFACE: "Here is what I found.",
    Topic.INTENT: {"intent": "demo", "confidence": 1.0},
    Topic.SEARCH: "Searched for: dragoman",
    Topic.KNOWLEDGE: "Dragoman: an interpreter and guide.",
    Topic.MEMORY_REFS: [{"id": "mem_demo", "title": "A memory"}],
    Topic.BILLING: {"cache_read_tokens": 0, "cache_write_tokens": 0, "latency": 0.01, "model": "demo-1"},
    Topic.RECOMMENDED: {"questions": ["What is a dragoman?", "What time is it?"]},
}
"""Something to remark on every topic."""

PLAN = {"title": "A plan", "steps": [
    {"id": "1", "title": "Listen", "status": "completed"},
    {"id": "2", "title": "Interpret", "status": "in_progress"},
    {"id": "3", "title": "Answer", "status": "pending"},
]}


def think(stage: Stage, directive: Directive) -> Iterator[Said]:
    yield from stage.open()
    yield stage.pen.start(BlockKind.THINKING)
    for word in ("Let ", "me ", "think ", "about ", "that."):
        yield stage.pen.delta(word)
    yield stage.pen.end(signature="demo-signature")


async def slow(stage: Stage, directive: Directive) -> Speech:
    for said in stage.open():
        yield said
    yield stage.pen.start()
    for number in range(5 if directive.number is None else directive.number):
        await stage.sleep(PAUSE)
        yield stage.pen.delta(f"{number + 1} ")
    yield stage.pen.end()


def burst(stage: Stage, directive: Directive) -> Iterator[Said]:
    yield from stage.open()
    yield stage.pen.start()
    delta = stage.pen.delta
    for _ in range(100 if directive.number is None else directive.number):
        yield delta("word ")
    yield stage.pen.end()


def annotate(stage: Stage, directive: Directive) -> Iterator[Said]:
    """Remarks are about a message, so they come at its end; that they are coming is the custom event."""
    yield from stage.open()
    stage.remarks.extend(REMARKS.items())
    yield stage.pen.say(CustomEvent(topic="demo.annotating", payload={"topics": len(REMARKS)}))


def image(stage: Stage, directive: Directive) -> Iterator[Said]:
    yield from stage.open()
    yield from stage.pen.image(PIXEL, "image/png")


def plan(stage: Stage, directive: Directive) -> Iterator[Said]:
    """Into planning and out of it again: every kind of data block, and a notice."""
    yield from stage.open()
    yield from stage.pen.data("planning_enter")
    yield from stage.pen.data("mode_change", {"from": "executing", "to": "planning"})
    yield from stage.pen.data("plan_status", PLAN)
    yield from stage.pen.data("planning_exit")
    yield NoticePosted(topic="plan", title="The plan has three steps.", detail=PLAN)


def card(stage: Stage, directive: Directive) -> Iterator[Said]:
    """A piece of a type that nobody else has."""
    yield from stage.open()
    yield from stage.pen.data("dragoman_card", {"title": "A card", "rows": [1, 2, 3]})


def provider_tool(stage: Stage, directive: Directive) -> Iterator[Said]:
    """A tool the model's provider runs: it comes back inside the message that called it."""
    yield from stage.open()
    yield from stage.pen.call("web_search", {"query": stage.script.text or "dragoman"}, origin=ToolOrigin.PROVIDER)
    back = ToolReturned(
        call_id=stage.pen.calls[-1].call_id, content="One page was found.", origin=ToolOrigin.PROVIDER, duration_ms=0,
    )
    stage.note("web_search", back)
    yield back


def title(stage: Stage, directive: Directive) -> Iterator[Said]:
    yield SessionUpdated(title=directive.word)


def compact(stage: Stage, directive: Directive) -> Iterator[Said]:
    yield compaction(stage.turn)


def compaction(turn: Turn) -> SessionCompacted:
    """The history in a sentence, and what was saved by it."""
    history = turn.history
    last = text_of(history[-1].content).strip() if history else ""
    summary = f"{len(history)} messages were exchanged." + (f" The last one was: {last[:80]}" if last else "")
    command = turn.command
    return SessionCompacted(
        compaction_id=turn.mint("cmp"), summary=summary, preview=summary[:40], archived=len(history),
        tokens_before=sum(words(text_of(entry.content)) for entry in history), tokens_after=words(summary),
        trigger=command.trigger if isinstance(command, Compact) else Trigger.MANUAL,
    )


def json(stage: Stage, directive: Directive) -> Iterator[Said]:
    stage.json = True
    return iter(())


# -- ways to end a turn before its reply ------------------------------------------------------------------------------

def refuse(stage: Stage, directive: Directive) -> Iterator[Said]:
    stage.over = True
    yield from stage.open()
    yield from stage.pen.text("I would rather not answer that.")
    yield from stage.shut(StopReason.REFUSAL)


def max_tokens(stage: Stage, directive: Directive) -> Iterator[Said]:
    """The reply without its last word."""
    stage.over = True
    yield from stage.open()
    yield from stage.pen.text(stage.reply().rsplit(None, 1)[0])
    yield from stage.shut(StopReason.MAX_TOKENS)


def max_steps(stage: Stage, directive: Directive) -> Iterator[Said]:
    """The reply, and nothing after it."""
    stage.over = True
    yield from stage.open()
    yield from stage.pen.text(stage.reply())
    yield from stage.shut(StopReason.MAX_STEPS)


def fail(stage: Stage, directive: Directive) -> Iterator[Said]:
    """In the middle of a block."""
    yield from stage.open()
    yield stage.pen.start()
    for word in ("I ", "am ", "about ", "to "):
        yield stage.pen.delta(word)
    raise BackendFailed("The demo agent broke in the middle of a sentence, as it was told to.")


def fail_start(stage: Stage, directive: Directive) -> Iterator[Said]:
    raise BackendFailed("The demo agent broke before it said anything, as it was told to.")
