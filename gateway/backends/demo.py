"""The embedded demo agent: offline, always the same, and able to bring about any situation by what is typed to it."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import Any

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from gateway.model import (
    AgentCard,
    AgentOption,
    AgentTool,
    Capabilities,
    Compact,
    OptionKind,
    Permission,
    StopReason,
)
from gateway.ports import Clock, Said, Turn
from gateway.speech import FRAGMENT, Speech

from . import acts, acts_people, acts_tools
from .directives import Directive
from .sample import sample
from .stage import LONG, MODEL, Sleep, Stage
from .tools import CALC, CLOCK, SEARCH, builtin, is_planning

DEMO_CARD = AgentCard(
    name="demo",
    title="Demo agent",
    description="Repeats what it is told, and obeys directives such as /think, /tool and /ask.",
    model=MODEL,
    tools=(
        *(AgentTool(spec=spec) for spec in (CLOCK, CALC, SEARCH)),
        AgentTool(spec=acts_tools.ERASE, permission=Permission.ASK),
    ),
    options=(
        AgentOption(name="greeting", title="Greeting", description="What a reply begins with, for “You said:”."),
        AgentOption(name="mood", kind=OptionKind.SELECT, default="plain", choices=("plain", "loud"), title="Mood"),
        AgentOption(name="api_key", kind=OptionKind.SECRET, title="API key", description="Taken, and never used."),
    ),
    capabilities=Capabilities(images=("http", "data"), client_tools=True),
)

Act = Callable[[Stage, Directive], Iterator[Said] | Speech]
ACTS: dict[str, Act] = {
    "think": acts.think,
    "tool": acts_tools.tool,
    "client-tool": acts_tools.client_tool,
    "provider-tool": acts.provider_tool,
    "permit": acts_tools.permit,
    "parallel": acts_tools.parallel,
    "ask": acts_people.ask,
    "fork": acts_people.fork,
    "fork-ask": acts_people.fork_ask,
    "continue": acts_people.go_on,
    "rollback": acts_people.rollback,
    "fail": acts.fail,
    "fail-start": acts.fail_start,
    "refuse": acts.refuse,
    "max-tokens": acts.max_tokens,
    "max-steps": acts.max_steps,
    "slow": acts.slow,
    "burst": acts.burst,
    "annotate": acts.annotate,
    "bridge": acts_tools.bridge,
    "ui": acts_tools.ui,
    "image": acts.image,
    "plan": acts.plan,
    "card": acts.card,
    "title": acts.title,
    "compact": acts.compact,
    "json": acts.json,
}

PEOPLED = ("ask", "fork", "fork-ask", "continue", "rollback")
"""What is left out where nobody is there to be asked."""
TOOLED = ("tool", "client-tool", "provider-tool", "permit", "parallel", "bridge", "ui", *PEOPLED)
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
        self._tools = {**builtin(clock), **acts_tools.PROPS}

    async def run(self, turn: Turn) -> Speech:
        command = turn.command
        if isinstance(command, Compact):
            yield acts.compaction(turn)
            return
        stage = Stage(turn, command, self._tools, clock=self._clock, sleep=self._sleep, delay=self._delay)
        for directive in stage.script.directives:
            if (why := _left_out(stage, directive.name)) is not None:
                stage.notes.append(why)
                continue
            act = ACTS[directive.name](stage, directive)
            if isinstance(act, AsyncGenerator):
                async with aclosing(act) as events:
                    async for said in events:
                        yield said
            else:
                for said in act:
                    yield said
            if stage.over:
                return
        async with aclosing(_reply(stage)) as events:
            async for said in events:
                yield said

    async def close(self) -> None:
        pass


def _left_out(stage: Stage, name: str) -> str | None:
    """Why a directive is not obeyed in this turn; None if it is."""
    if name in TOOLED and is_planning(stage.turn):
        return f"I only plan, and leave out /{name}."
    if name in PEOPLED and stage.command.headless:
        return f"I am on my own, and leave out /{name}."
    return None


async def _reply(stage: Stage) -> Speech:
    for said in stage.open():
        yield said
    yield stage.pen.start()
    for piece in _json_pieces(stage) if stage.json else _pieces(stage.reply()):
        if stage.delay:
            await stage.sleep(stage.delay)
        yield stage.pen.delta(piece)
    yield stage.pen.end()
    for said in stage.shut(StopReason.END_TURN):
        yield said


def _json_pieces(stage: Stage) -> list[str]:
    schema = stage.command.output_schema
    value: Any = {"ok": True} if schema is None else sample(schema, stage.script.text or "sample")
    text = msgspec.json.encode(value).decode()
    return [text[at:at + FRAGMENT] for at in range(0, len(text), FRAGMENT)]


def _pieces(text: str) -> Iterator[str]:
    """Word by word; a very long text in as many pieces as it is worth."""
    if len(text) <= LONG:
        return (match[0] for match in _WORD.finditer(text))
    size = -(-len(text) // PIECES)
    return (text[at:at + size] for at in range(0, len(text), size))


_WORD = re.compile(r"\S+\s*|\s+")
PIECES = 2000
"""A very long text is said in so many pieces."""

