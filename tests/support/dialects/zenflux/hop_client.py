"""ZenFlux, spoken to a gateway whose functions are counted."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tests.support.dialects.zenflux.client import Client
from tests.support.gateway_server import Served

SETTINGS = {"throttle_ms": 40}
"""Deltas of so many milliseconds are merged: fewer than lie between two deltas of /slow."""


@asynccontextmanager
async def connected(served: Served) -> AsyncIterator[Callable[[str], Awaitable[int]]]:
    async with Client(served).chat() as chat:
        conversation: dict[str, str] = {}

        async def say(text: str) -> int:
            begun = await chat.send(text, **conversation)
            conversation["conversation_id"] = begun["conversation_id"]
            await chat.until("session_end", begun["session_id"])
            return sum(event["type"] == "content_delta" and event["session_id"] == begun["session_id"]
                       for event in chat.events)

        yield say
