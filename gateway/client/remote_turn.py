"""A remote turn over the async generator of a client role."""

from collections.abc import AsyncGenerator, Callable, Sequence
from functools import wraps
from typing import ParamSpec

from gateway.ports import DecodedItem

P = ParamSpec("P")
ItemGenerator = AsyncGenerator[DecodedItem | list[DecodedItem], None]
"""Items of a turn; items that arrived together may come as one list."""


class GeneratorTurn:
    """See `gateway.ports.RemoteTurn`."""

    def __init__(self, generator: ItemGenerator) -> None:
        self._generator = generator
        self._unread: list[DecodedItem] = []

    async def read(self) -> Sequence[DecodedItem]:
        item = await anext(self._generator, None)
        if item is None:
            return ()
        return item if isinstance(item, list) else (item,)

    async def aclose(self) -> None:
        await self._generator.aclose()

    def __aiter__(self) -> "GeneratorTurn":
        return self

    async def __anext__(self) -> DecodedItem:
        if not self._unread:
            self._unread = list(await self.read())
        if not self._unread:
            raise StopAsyncIteration
        return self._unread.pop(0)


def generator_turn(method: Callable[P, ItemGenerator]) -> Callable[P, GeneratorTurn]:
    """Let an async generator function return a `GeneratorTurn`."""
    @wraps(method)
    def start(*args: P.args, **kwargs: P.kwargs) -> GeneratorTurn:
        return GeneratorTurn(method(*args, **kwargs))

    return start
