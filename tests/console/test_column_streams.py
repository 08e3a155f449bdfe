"""Columns as one stream: positions, the order of events, and the end, with subscriptions that a test plays."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest

from gateway.console.column_streams import ColumnPosition, ColumnSubscription, read_columns, read_positions
from gateway.errors import Invalid
from gateway.ports import Chunk, Frame

KNOWN = ["one", "two"]


class Played:
    """A subscription that gives the items of a list, and then waits or ends."""

    def __init__(self, *cursors: object, ends: bool = True) -> None:
        self.left = [Chunk(1, (Frame(b"{}", "frames", cursor),), False) for cursor in cursors]
        self.ends = ends
        self.cut_at: int | None = None
        self.is_draining = False
        self.is_closed = False

    async def chunks(self) -> Sequence[Chunk]:
        if not self.left and not self.ends:
            await asyncio.Event().wait()
        given, self.left = self.left[:1], self.left[1:]
        return given

    def cut(self) -> None:
        self.cut_at = 7

    def close(self) -> None:
        self.is_closed = True


async def told(subscription: ColumnSubscription) -> list[bytes]:
    found = []
    while chunks := await subscription.chunks():
        found += [frame.body for chunk in chunks for frame in chunk.frames]
    return found


def ids(events: list[bytes]) -> list[str]:
    return [line.removeprefix(b"id: ").decode() for event in events for line in event.splitlines()
            if line.startswith(b"id: ")]


async def test_an_id_has_the_position_of_every_column() -> None:
    columns = ColumnSubscription([Played(1, 2, "2+1", 3), Played(1, 2)], [ColumnPosition(), ColumnPosition()])
    events = await told(columns)
    found = [[ColumnPosition.read(part) for part in id_.split(".")] for id_ in ids(events)]
    assert [max(one) for one in zip(*found, strict=True)] == [ColumnPosition(3), ColumnPosition(2)]
    for before, after in pairwise(found):
        assert all(earlier <= later for earlier, later in zip(before, after, strict=True)), "positions never go back"
    assert events[-1] == b'event: end\ndata: {"reason":"closed"}\n\n'


async def test_what_a_timer_released_is_not_told_again() -> None:
    columns = ColumnSubscription([Played("5+1", "5+2", 6)], [ColumnPosition(5, 1)])
    assert ids(await told(columns)) == ["5+2", "6"]


async def test_a_column_that_waits_does_not_hold_up_another() -> None:
    columns = ColumnSubscription([Played(ends=False), Played(1, 2)], [ColumnPosition(), ColumnPosition()])
    assert ids([frame.body for chunk in await columns.chunks() for frame in chunk.frames]) == ["0.1"]
    columns.close()


@pytest.mark.parametrize(("state", "reason"), [("cut_at", b"slow"), ("is_draining", b"restart")])
async def test_the_end_says_why(state: str, reason: bytes) -> None:
    slow = Played()
    setattr(slow, state, 3)
    assert reason in (await told(ColumnSubscription([slow, Played()], [ColumnPosition()] * 2)))[-1]


async def test_all_columns_are_cut_and_closed_together() -> None:
    both = [Played(ends=False), Played(ends=False)]
    columns = ColumnSubscription(both, [ColumnPosition()] * 2)
    columns.cut()
    columns.close()
    assert [one.cut_at for one in both] == [7, 7]
    assert all(one.is_closed for one in both)
    assert columns.cut_at == 7


def test_positions_are_read_as_they_were_written() -> None:
    for position in (ColumnPosition(), ColumnPosition(12), ColumnPosition(12, 3)):
        assert ColumnPosition.read(str(position)) == position
    assert read_positions(None, KNOWN, 9) == [ColumnPosition(9)] * 2
    assert read_positions("3.4+1", KNOWN, 9) == [ColumnPosition(3), ColumnPosition(4, 1)]
    with pytest.raises(Invalid, match="3 positions, and there are 2 columns"):
        read_positions("1.2.3", KNOWN, 0)


def test_columns_are_named_once() -> None:
    assert read_columns("records, two", KNOWN) == ["records", "two"]
    for wrong in ("", "three", "one,one", ",", "one;two"):
        with pytest.raises(Invalid, match="columns"):
            read_columns(wrong, KNOWN)
