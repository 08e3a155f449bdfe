"""CAS, spoken to a gateway whose functions are counted."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tests.support.dialects.cas.client import Client
from tests.support.gateway_server import Served

DELTAS = "event_deltas[]=agent.message"


@asynccontextmanager
async def connected(served: Served) -> AsyncIterator[Callable[[str], Awaitable[int]]]:
    client = Client(served)
    session = await client.session()
    async with client.listening(session, DELTAS) as stream:
        async def say(text: str) -> int:
            await client.sent(session, text)
            return sum(frame.type == "event_delta" for frame in await stream.until("session.status_idle"))

        yield say
