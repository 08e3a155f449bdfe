"""AAP, spoken to a gateway whose functions are counted."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tests.support.dialects.aap.client import Client
from tests.support.dialects.aap.reader import events
from tests.support.gateway_server import Served


@asynccontextmanager
async def connected(served: Served) -> AsyncIterator[Callable[[str], Awaitable[int]]]:
    client = Client(served)
    session = await client.session()

    async def say(text: str) -> int:
        body = {"messages": [{"role": "user", "content": text}], "stream": "delta"}
        async with served.http.post(served.url(f"/aap/sessions/{session}/turns"), json=body) as response:
            received = events(await response.read())
        assert received[-1] == ("turn_stop", {"stopReason": "end_turn"}), received[-1]
        return sum(event == "text_delta" for event, _ in received)

    yield say
