"""The demo agent: deterministic and offline; directives in a message bring about any situation."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing

import msgspec
from pydantic import BaseModel, ConfigDict, Field

import gateway.model as m
from gateway.backends.demo import turn as turn_module
from gateway.backends.tools import CALC, CLOCK, SEARCH, builtin_tools, is_headless, is_planning
from gateway.client import INPUT_FRAGMENT_LENGTH, BackendEvents
from gateway.ports import BackendEvent, Clock, Sleep, Turn

from . import interactive_directives, simple_directives
from .directive_parser import Directive
from .schema_sample import sample
from .turn import LONG_TEXT, MODEL, DemoTurn

DIRECTIVES = {
    "think": "a thinking block",
    "tool [name] [json]": "a tool of the server: clock, calc, search or erase; or a tool of the client",
    "client-tool [json]": "the first tool that the client declared",
    "provider-tool": "a tool that the model's provider runs",
    "permit": "a tool that needs permission",
    "parallel": "three calls at once: allowed, with permission, for the client",
    "ask": "two questions",
    "fork": "a sub-agent that receives the text and reports",
    "fork-ask": "a sub-agent that asks two questions first",
    "continue": "asks whether to go on",
    "rollback": "raises a fault, and asks which state to roll back to",
    "fail": "fails in the middle of a text block",
    "fail-start": "fails before any message",
    "refuse": "a refusal",
    "max-tokens": "a reply cut short",
    "max-steps": "a reply that ends because no more steps are left",
    "slow [N]": "N deltas, 50 ms apart",
    "burst [N]": "N deltas at once",
    "annotate": "annotations, and a custom event",
    "bridge": "a tool whose result tells the page to do something",
    "ui": "a tool whose result is a card to show",
    "image": "an image block",
    "plan": "a plan, and a notice",
    "card": "a data block of a type that no dialect knows",
    "title TEXT": "gives the session a title",
    "compact": "compacts the history",
    "json": "replies with JSON only",
}
"""What each directive does, with its arguments; docs/backends.md has it in full."""


def _directive(written: str, effect: str) -> m.AgentDirective:
    name, _, arguments = written.partition(" ")
    return m.AgentDirective(name=f"/{name}", arguments=arguments, effect=effect)


DEMO_CARD = m.AgentCard(
    name="demo",
    title="Demo agent",
    description="Repeats what it is told, and obeys directives such as /think, /tool and /ask.",
    model=MODEL,
    tools=(
        *(m.AgentTool(spec=spec) for spec in (CLOCK, CALC, SEARCH)),
        m.AgentTool(spec=simple_directives.ERASE, permission=m.Permission.ASK),
    ),
    options=(
        m.AgentOption(name="greeting", title="Greeting", description="What a reply begins with, for “You said:”."),
        m.AgentOption(name="mood", kind=m.OptionKind.SELECT, default="plain", choices=("plain", "loud"), title="Mood"),
        m.AgentOption(name="api_key", kind=m.OptionKind.SECRET, title="API key", description="Taken, and never used."),
    ),
    capabilities=m.AgentCapabilities(images=("http", "data"), client_tools=True),
    directives=tuple(_directive(written, effect) for written, effect in DIRECTIVES.items()),
)

DirectiveHandler = Callable[[DemoTurn, Directive], Iterator[BackendEvent] | BackendEvents]
HANDLERS: dict[str, DirectiveHandler] = {
    "think": simple_directives.think,
    "tool": simple_directives.tool,
    "client-tool": simple_directives.client_tool,
    "provider-tool": simple_directives.provider_tool,
    "permit": simple_directives.permit,
    "parallel": simple_directives.parallel,
    "ask": interactive_directives.ask,
    "fork": interactive_directives.fork,
    "fork-ask": interactive_directives.fork_ask,
    "continue": interactive_directives.ask_to_continue,
    "rollback": interactive_directives.rollback,
    "fail": simple_directives.fail,
    "fail-start": simple_directives.fail_start,
    "refuse": simple_directives.refuse,
    "max-tokens": simple_directives.max_tokens,
    "max-steps": simple_directives.max_steps,
    "slow": simple_directives.slow,
    "burst": simple_directives.burst,
    "annotate": simple_directives.annotate,
    "bridge": simple_directives.bridge,
    "ui": simple_directives.ui,
    "image": simple_directives.image,
    "plan": simple_directives.plan,
    "card": simple_directives.card,
    "title": simple_directives.title,
    "compact": simple_directives.compact,
    "json": simple_directives.json,
}

NEEDS_PEOPLE = ("ask", "fork", "fork-ask", "continue", "rollback")
"""Directives that are skipped in a headless turn."""
NEEDS_TOOLS = ("tool", "client-tool", "provider-tool", "permit", "parallel", "bridge", "ui", *NEEDS_PEOPLE)
"""Directives that are skipped while planning, which has no tools; some clients see an ask as a tool call."""


class DemoSettings(BaseModel):
    """The settings of a demo agent in config.yaml."""

    model_config = ConfigDict(extra="forbid")
    delay: float = Field(0.0, ge=0, le=60, description="Seconds between the words of a reply.")


class DemoBackend:
    """Obeys the directives of a message, then repeats its text word by word."""

    def __init__(
        self, *, delay: float = 0.0, clock: Clock = time.time, sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._delay, self._clock, self._sleep = delay, clock, sleep
        self._tools = {**builtin_tools(clock), **simple_directives.DEMO_TOOLS}

    async def run(self, turn: Turn) -> BackendEvents:
        command = turn.command
        if isinstance(command, m.Compact):
            yield turn_module.compaction(turn)
            return
        demo = DemoTurn(turn, command, self._tools, clock=self._clock, sleep=self._sleep, delay=self._delay)
        for directive in demo.script.directives:
            if (why := _skip_reason(demo, directive.name)) is not None:
                demo.notes.append(why)
                continue
            made = HANDLERS[directive.name](demo, directive)
            if isinstance(made, AsyncGenerator):
                async with aclosing(made) as events:
                    async for event in events:
                        yield event
            else:
                for event in made:
                    yield event
            if demo.has_ended:
                return
        for event in (*demo.open_message(), demo.writer.start()):
            yield event
        for piece in _split_json(demo) if demo.json else _split_reply(demo.reply()):
            if demo.delay:
                await demo.sleep(demo.delay)
            yield demo.writer.delta(piece)
        for event in (demo.writer.end(), *demo.close_message(m.StopReason.END_TURN)):
            yield event

    async def close(self) -> None:
        pass


def _skip_reason(demo: DemoTurn, name: str) -> str | None:
    """Why a directive is skipped in this turn; None if it is obeyed."""
    if name in NEEDS_TOOLS and is_planning(demo.turn):
        return f"I only plan, and leave out /{name}."
    if name in NEEDS_PEOPLE and is_headless(demo.turn):
        return f"I am on my own, and leave out /{name}."
    return None


def _split_json(demo: DemoTurn) -> list[str]:
    schema = demo.command.output_schema
    value: object = {"ok": True} if schema is None else sample(schema, demo.script.text or "sample")
    text = msgspec.json.encode(value).decode()
    return [text[at:at + INPUT_FRAGMENT_LENGTH] for at in range(0, len(text), INPUT_FRAGMENT_LENGTH)]


def _split_reply(text: str) -> list[str]:
    """The text word by word; a very long text in at most `MAX_PIECES` pieces."""
    if len(text) <= LONG_TEXT:
        return _WORD.findall(text)
    size = -(-len(text) // MAX_PIECES)
    return [text[at:at + size] for at in range(0, len(text), size)]


_WORD = re.compile(r"\S+\s*|\s+")
MAX_PIECES = 2000
"""A very long text is divided into so many deltas."""
