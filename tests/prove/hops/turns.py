"""The turns that are counted: each is a gateway in the loop, and a client that says something in an open session."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from tests.prove.hops.tracer import ELSEWHERE
from tests.support.backends.model_services import DONE, chunk
from tests.support.client import byte_server
from tests.support.dialects.aap import client as aap_client
from tests.support.dialects.aap.reader import events
from tests.support.dialects.blade import client
from tests.support.dialects.cas import client as cas_client
from tests.support.dialects.zenflux import client as zenflux_client
from tests.support.gateway_server import Served, serving

PAUSE = 0.05
"""Simulated seconds between the deltas of the demo agent's /slow; the model service keeps the same pace."""
PREFIX = ("You", "said:")
"""What the demo agent says before it repeats the message: the model service says as many words."""
THROTTLE_MS = 40
"""ZenFlux merges the deltas of so many milliseconds: fewer than lie between two deltas of /slow."""
DELTAS = "event_deltas[]=agent.message"

Say = Callable[[str], Awaitable[int]]
"""Says this in a session, waits for the end of the stream, and returns how many deltas the client received."""
Client = Callable[[Served], AbstractAsyncContextManager[Say]]


# -- clients ----------------------------------------------------------------------------------------------------------

@asynccontextmanager
async def aap(served: Served) -> AsyncIterator[Say]:
    client = aap_client.Client(served)
    session = await client.session()

    async def say(text: str) -> int:
        body = {"messages": [{"role": "user", "content": text}], "stream": "delta"}
        async with served.http.post(served.url(f"/aap/sessions/{session}/turns"), json=body) as response:
            received = events(await response.read())
        assert received[-1] == ("turn_stop", {"stopReason": "end_turn"}), received[-1]
        return sum(event == "text_delta" for event, _ in received)

    yield say


@asynccontextmanager
async def zenflux(served: Served) -> AsyncIterator[Say]:
    async with zenflux_client.Client(served).chat() as chat:
        conversation: dict[str, str] = {}

        async def say(text: str) -> int:
            begun = await chat.send(text, **conversation)
            conversation["conversation_id"] = begun["conversation_id"]
            await chat.until("session_end", begun["session_id"])
            return sum(event["type"] == "content_delta" and event["session_id"] == begun["session_id"]
                       for event in chat.events)

        yield say


@asynccontextmanager
async def blade(served: Served) -> AsyncIterator[Say]:
    async with client.connect(served, transports=["websocket"]) as talker:
        session = await talker.session()
        await talker.subscribe(session)

        async def say(text: str) -> int:
            before = len(talker.raw)
            await talker.chat(session, text, mode="executing")
            return sum(event == "turn:patch" for event, _ in talker.raw[before:])

        yield say


@asynccontextmanager
async def cas(served: Served) -> AsyncIterator[Say]:
    client = cas_client.Client(served)
    session = await client.session()
    async with client.listening(session, DELTAS) as stream:
        async def say(text: str) -> int:
            await client.sent(session, text)
            return sum(frame.type == "event_delta" for frame in await stream.until("session.status_idle"))

        yield say


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

TURNS: dict[str, tuple[Client, Callable[[Path], AbstractAsyncContextManager[dict[str, Any]]]]] = {
    "aap": (aap, demo), "zenflux": (zenflux, demo), "blade": (blade, demo), "cas": (cas, demo),
    "openai": (aap, openai), "remote": (aap, remote),
}
"""By name: the client, and the agent. Backends are heard in AAP."""


@asynccontextmanager
async def gateway_for(turn: str, folder: Path) -> AsyncIterator[tuple[Served, Client]]:
    """A gateway that serves all dialects, as the shipped configuration does, and the client of this turn."""
    client, agent = TURNS[turn]
    dialects: dict[str, Any] = {"aap": {}, "blade": {}, "cas": {}, "zenflux": {"throttle_ms": THROTTLE_MS}}
    async with AsyncExitStack() as stack:
        agents = {"demo": await stack.enter_async_context(agent(folder))}
        yield await stack.enter_async_context(
            serving(folder, log="memory", dialects=dialects, agents=agents)), client
