"""An agent that begins to answer and then hangs: it says nothing more, and it does not end."""

import asyncio
from collections.abc import AsyncGenerator

from gateway.backends import EventWriter
from gateway.ports import BackendOutput, Turn


class HungAgent:
    """Writes a few words, and waits for something that never comes."""

    async def run(self, turn: Turn) -> AsyncGenerator[BackendOutput, None]:
        writer = EventWriter(turn)
        yield writer.start_message(model="hung-1")
        yield writer.start()
        yield writer.delta("Just a moment, ")
        await asyncio.get_running_loop().create_future()

    async def close(self) -> None:
        """It holds nothing."""
