"""The turns that are counted: each is a gateway in the loop, and a client that says something in an open session."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from tests.prove.hops.tracer import ELSEWHERE
from tests.support.backends.model_services import DONE, chunk
from tests.support.client import byte_server
from tests.support.dialect_parts import dialects_with, part
from tests.support.dialect_tables import DIALECTS
from tests.support.gateway_server import Served, serving

PAUSE = 0.05
"""Simulated seconds between the deltas of the demo agent's /slow; the model service keeps the same pace."""
PREFIX = ("You", "said:")
"""What the demo agent says before it repeats the message: the model service says as many words."""

Say = Callable[[str], Awaitable[int]]
"""Says this in a session, waits for the end of the stream, and returns how many deltas the client received."""
Client = Callable[[Served], AbstractAsyncContextManager[Say]]


# -- agents -----------------------------------------------------------------------------------------------------------

@asynccontextmanager
async def demo(folder: Path) -> AsyncIterator[dict[str, Any]]:
    yield {"backend": "demo"}


@asynccontextmanager
async def openai(folder: Path) -> AsyncIterator[dict[str, Any]]:
    """A model behind a chat-completions service that obeys /slow N and /burst N, as the demo agent does."""
    async with byte_server.serving(_complete) as service:
        yield {"backend": "openai", "settings": {"url": service.url, "model": "m", "key": "sk-none"}}


async def _complete(writer: asyncio.StreamWriter, asked: byte_server.ReceivedRequest) -> None:
    text = str(asked.json["messages"][-1]["content"])
    pace, _, number = text.partition(" ")
    count = int(number) if pace in ("/slow", "/burst") else len((*PREFIX, *text.split()))
    writer.write(byte_server.head() + byte_server.chunk(chunk({"role": "assistant", "content": ""})))
    for _ in range(count):
        if pace == "/slow":
            await asyncio.sleep(PAUSE)
        writer.write(byte_server.chunk(chunk({"content": "word "})))
    writer.write(byte_server.chunk(chunk(finish="stop")) + byte_server.chunk(DONE) + byte_server.END)
    await writer.drain()


@asynccontextmanager
async def remote(folder: Path) -> AsyncIterator[dict[str, Any]]:
    """A second gateway, which has the demo agent and is spoken to in AAP; what it enters itself is not counted."""
    (folder / "second").mkdir()
    token = ELSEWHERE.set(True)
    try:
        second = serving(folder / "second", log="memory", dialects={"aap": {}})
        served = await second.__aenter__()
    finally:
        ELSEWHERE.reset(token)
    try:
        yield {"backend": "remote", "settings": {"dialect": "aap", "url": served.url("/aap")}}
    finally:
        await second.__aexit__(None, None, None)


# -- turns ------------------------------------------------------------------------------------------------------------

BACKENDS = {"openai": openai, "remote": remote}
"""Agents that are heard in AAP, by the name of their turn."""
TURNS = [*dialects_with("hop_client"), *BACKENDS]
"""A turn of each dialect with the demo agent, and one of each of these agents."""


@asynccontextmanager
async def gateway_for(turn: str, folder: Path) -> AsyncIterator[tuple[Served, Client]]:
    """A gateway that serves all dialects, as the shipped configuration does, and the client of this turn."""
    client: Client = part("aap" if turn in BACKENDS else turn, "hop_client").connected
    agent = BACKENDS.get(turn, demo)
    dialects = {name: {} for name in DIALECTS} | {
        name: getattr(part(name, "hop_client"), "SETTINGS", {}) for name in TURNS if name not in BACKENDS}
    async with AsyncExitStack() as stack:
        agents = {"demo": await stack.enter_async_context(agent(folder))}
        yield await stack.enter_async_context(
            serving(folder, log="memory", dialects=dialects, agents=agents)), client
