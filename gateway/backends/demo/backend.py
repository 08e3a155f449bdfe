"""The embedded demo agent: offline, always the same, and able to bring about any situation by what is typed to it."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import Any

import msgspec
from pydantic import BaseModel, ConfigDict, Field

import gateway.model as m
from gateway.backends.demo import turn as turn_module
from gateway.backends.tools import CALC, CLOCK, SEARCH, builtin_tools, is_planning
from gateway.client import INPUT_FRAGMENT_LENGTH, BackendEvents
from gateway.ports import BackendEvent, Clock, Sleep, Turn

from . import interactive_directives, simple_directives, tool_directives
from .directive_parser import Directive
from .schema_sample import sample
from .turn import LONG_TEXT, MODEL, DemoTurn

DEMO_CARD = m.AgentCard(
    name="demo",
    title="Demo agent",
    description="Repeats what it is told, and obeys directives such as /think, /tool and /ask.",
    model=MODEL,
    tools=(
        *(m.AgentTool(spec=spec) for spec in (CLOCK, CALC, SEARCH)),
        m.AgentTool(spec=tool_directives.ERASE, permission=m.Permission.ASK),
    ),
    options=(
        m.AgentOption(name="greeting", title="Greeting", description="What a reply begins with, for “You said:”."),
        m.AgentOption(name="mood", kind=m.OptionKind.SELECT, default="plain", choices=("plain", "loud"), title="Mood"),
        m.AgentOption(name="api_key", kind=m.OptionKind.SECRET, title="API key", description="Taken, and never used."),
    ),
    capabilities=m.AgentCapabilities(images=("http", "data"), client_tools=True),
)

DirectiveHandler = Callable[[DemoTurn, Directive], Iterator[BackendEvent] | BackendEvents]
HANDLERS: dict[str, DirectiveHandler] = {
    "think": simple_directives.think,
    "tool": tool_directives.tool,
    "client-tool": tool_directives.client_tool,
    "provider-tool": simple_directives.provider_tool,
    "permit": tool_directives.permit,
    "parallel": tool_directives.parallel,
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
    "bridge": tool_directives.bridge,
    "ui": tool_directives.ui,
    "image": simple_directives.image,
    "plan": simple_directives.plan,
    "card": simple_directives.card,
    "title": simple_directives.title,
    "compact": simple_directives.compact,
    "json": simple_directives.json,
}

NEEDS_PEOPLE = ("ask", "fork", "fork-ask", "continue", "rollback")
"""What is left out where nobody is there to be asked."""
NEEDS_TOOLS = ("tool", "client-tool", "provider-tool", "permit", "parallel", "bridge", "ui", *NEEDS_PEOPLE)
"""What is left out of planning, which is done without tools; to some clients, who asks calls a tool."""


class DemoSettings(BaseModel):
    """What config may say about a demo agent."""

    model_config = ConfigDict(extra="forbid")
    delay: float = Field(0.0, ge=0, le=60, description="Seconds between the words of a reply.")


class DemoBackend:
    """Answers with what it was told, word by word, after doing what the directives say."""

    def __init__(
        self, *, delay: float = 0.0, clock: Clock = time.time, sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._delay, self._clock, self._sleep = delay, clock, sleep
        self._tools = {**builtin_tools(clock), **tool_directives.DEMO_TOOLS}

    async def run(self, turn: Turn) -> BackendEvents:
        command = turn.command
        if isinstance(command, m.Compact):
            yield turn_module.compaction(turn)
            return
        stage = DemoTurn(turn, command, self._tools, clock=self._clock, sleep=self._sleep, delay=self._delay)
        for directive in stage.script.directives:
            if (why := _skip_reason(stage, directive.name)) is not None:
                stage.notes.append(why)
                continue
            act = HANDLERS[directive.name](stage, directive)
            if isinstance(act, AsyncGenerator):
                async with aclosing(act) as events:
                    async for said in events:
                        yield said
            else:
                for said in act:
                    yield said
            if stage.has_ended:
                return
        async with aclosing(_reply(stage)) as events:
            async for said in events:
                yield said

    async def close(self) -> None:
        pass


def _skip_reason(stage: DemoTurn, name: str) -> str | None:
    """Why a directive is not obeyed in this turn; None if it is."""
    if name in NEEDS_TOOLS and is_planning(stage.turn):
        return f"I only plan, and leave out /{name}."
    if name in NEEDS_PEOPLE and stage.command.headless:
        return f"I am on my own, and leave out /{name}."
    return None


async def _reply(stage: DemoTurn) -> BackendEvents:
    for said in stage.open_message():
        yield said
    yield stage.writer.start()
    for piece in _split_json(stage) if stage.json else _split_reply(stage.reply()):
        if stage.delay:
            await stage.sleep(stage.delay)
        yield stage.writer.delta(piece)
    yield stage.writer.end()
    for said in stage.close_message(m.StopReason.END_TURN):
        yield said


def _split_json(stage: DemoTurn) -> list[str]:
    schema = stage.command.output_schema
    value: Any = {"ok": True} if schema is None else sample(schema, stage.script.text or "sample")
    text = msgspec.json.encode(value).decode()
    return [text[at:at + INPUT_FRAGMENT_LENGTH] for at in range(0, len(text), INPUT_FRAGMENT_LENGTH)]


def _split_reply(text: str) -> Iterator[str]:
    """Word by word; a very long text in as many pieces as it is worth."""
    if len(text) <= LONG_TEXT:
        return (match[0] for match in _WORD.finditer(text))
    size = -(-len(text) // MAX_PIECES)
    return (text[at:at + size] for at in range(0, len(text), size))


_WORD = re.compile(r"\S+\s*|\s+")
MAX_PIECES = 2000
"""A very long text is said in so many pieces."""

