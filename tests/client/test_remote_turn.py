"""A turn over a generator is read in batches or item by item, and closes its generator."""

from collections.abc import AsyncGenerator

import gateway.model as m
from gateway.client import GeneratorTurn, ItemGenerator, generator_turn
from gateway.ports import DecodedItem, RemoteTurnEnd

ONE, TWO = m.NoticePosted(topic="t", title="one"), m.NoticePosted(topic="t", title="two")
END = RemoteTurnEnd()


class Server:
    """Says one thing, then two at once; `closed` tells that nobody reads any more."""

    closed = False

    @generator_turn
    async def turn(self) -> AsyncGenerator[DecodedItem | list[DecodedItem], None]:
        try:
            yield ONE
            yield [TWO, END]
        finally:
            self.closed = True


async def test_what_came_together_is_read_together() -> None:
    turn = Server().turn()
    assert [list(await turn.read()) for _ in range(4)] == [[ONE], [TWO, END], [], []]


async def test_the_items_can_be_had_one_by_one() -> None:
    assert [item async for item in Server().turn()] == [ONE, TWO, END]


async def test_closing_closes_the_generator() -> None:
    server = Server()
    turn = server.turn()
    assert isinstance(turn, GeneratorTurn) and await anext(turn) == ONE
    await turn.aclose()
    assert server.closed


async def test_nothing_happens_before_the_first_read() -> None:
    async def items() -> ItemGenerator:
        raise AssertionError("nobody has read")
        yield ONE

    await GeneratorTurn(items()).aclose()
