"""Blade, spoken to a gateway whose functions are counted."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tests.support.dialects.blade import client
from tests.support.gateway_server import Served


@asynccontextmanager
async def connected(served: Served) -> AsyncIterator[Callable[[str], Awaitable[int]]]:
    async with client.connect(served, transports=["websocket"]) as talker:
        session = await talker.session()
        await talker.subscribe(session)

        async def say(text: str) -> int:
            before = len(talker.raw)
            await talker.chat(session, text, mode="executing")
            return sum(event == "turn:patch" for event, _ in talker.raw[before:])

        yield say
