"""Quill, spoken to a gateway whose functions are counted."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tests.support.dialects.quill.client import begin, writing

from tests.support.gateway_server import Served


@asynccontextmanager
async def connected(served: Served) -> AsyncIterator[Callable[[str], Awaitable[int]]]:
    talk = await begin(served.http, served.address)

    async def say(text: str) -> int:
        async with writing(served.http, served.address, talk, text) as told:
            return len([name async for name, _ in told if name == "words"])

    yield say
