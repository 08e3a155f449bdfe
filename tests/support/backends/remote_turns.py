"""Reads turns of remote servers item by item."""

from collections.abc import AsyncGenerator

from gateway.backends.remote.turn_reader import ItemFilter, TurnReader
from gateway.client import GeneratorTurn
from gateway.ports import DecodedItem


async def filtered(
    stream: AsyncGenerator[DecodedItem, None], *filters: ItemFilter, seconds: float = 0.5,
) -> AsyncGenerator[DecodedItem, None]:
    """The items of a stream after these filters; closing it closes the stream."""
    reader = TurnReader(GeneratorTurn(stream), *filters, seconds=seconds)
    try:
        while items := await reader.read():
            for item in items:
                yield item
    finally:
        await reader.aclose()
