"""Reads event streams to their end."""

from gateway.client import EventStream, SseEvent


async def read_all(stream: EventStream) -> list[SseEvent]:
    """Every event of a stream, which is closed afterwards."""
    received: list[SseEvent] = []
    async with stream:
        while events := await stream.read():
            received += events
    return received
