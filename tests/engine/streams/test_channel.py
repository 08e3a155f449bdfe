"""Frames are made once for all who read along, and kept no longer than the slowest of them needs."""

import asyncio

import pytest

import gateway.model as m
from gateway.engine.streams import channel as channel_module
from gateway.engine.streams import feed as feed_module
from gateway.ports import Frame, Frames
from tests.support.engine.engine_fixture import EngineFixture, PlainProjector
from tests.support.engine.silent_agent import post, read, silent


class Counting(PlainProjector):
    """Counts how often a record is made into a frame."""

    fed = 0

    def feed(self, record: m.Record) -> Frames:
        type(self).fed += 1
        return super().feed(record)


async def test_frames_are_made_once_for_all_who_watch() -> None:
    Counting.fed = 0
    stage = EngineFixture(silent, projector=lambda dialect, options: Counting())
    session = await stage.session()
    cursors = [await stage.service.subscribe("", session.view.session_id, "plain", after=1) for _ in range(50)]
    waiting = [asyncio.create_task(read(cursor)) for cursor in cursors]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    before = Counting.fed
    post(session, 10)
    assert await asyncio.gather(*waiting) == [list(range(2, 12))] * 50
    assert Counting.fed - before == 10


async def test_a_lone_reader_leaves_no_frames_behind() -> None:
    stage = EngineFixture(silent)
    session = await stage.session()
    cursor = await stage.service.subscribe("", session.view.session_id, "plain", after=1)
    for _ in range(100):
        post(session, 50)
        await read(cursor)
    feed = stage.hub.feeds[session.view.session_id]
    assert len(feed.records) == 0
    assert [len(channel.chunks) for channel in feed.channels.values()] == [0]


async def test_where_a_turn_yields_is_marked() -> None:
    stage = EngineFixture(silent)
    session = await stage.session()
    session.submit([m.SendMessage(content="go")])
    await stage.until(session, m.TurnEnded)
    cursor = await stage.service.subscribe("", session.view.session_id, "plain")
    assert [chunk.yields for chunk in await cursor.chunks()] == [False, False, False, True]


async def test_what_a_reader_has_had_is_passed_over_where_that_is_cheaper() -> None:
    class Sparing(PlainProjector):
        skipped: list[int] = []  # noqa: RUF012  # shared by all of them, to be counted

        def skip(self, record: m.Record) -> None:
            self.skipped.append(record.seq)

    stage = EngineFixture(silent, projector=lambda dialect, options: Sparing())
    session = await stage.session()
    post(session, 5)
    cursor = await stage.service.subscribe("", session.view.session_id, "plain", after=4)
    assert await read(cursor) == [5, 6]
    assert Sparing.skipped == [1, 2, 3, 4]
    told = await stage.service.read("", session.view.session_id, "plain", after=5)
    assert [chunk.seq async for chunk in told] == [6]


async def test_what_the_slowest_reader_has_had_is_not_kept() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feed_module, "WINDOW", 10)
        patch.setattr(channel_module, "KEPT_CHUNKS", 10)
        stage = EngineFixture(silent)
        session = await stage.session()
        quick, slow = [await stage.service.subscribe("", session.view.session_id, "plain", after=1) for _ in range(2)]
        seen: list[int] = []
        for number in range(200):
            post(session)
            await read(quick)
            if number % 30 == 0:
                seen += await read(slow)
        [channel] = stage.hub.feeds[session.view.session_id].channels.values()
        assert len(channel.chunks) <= 80
        assert seen == list(range(2, seen[-1] + 1))
        assert channel.bytes == channel_module.size_of(channel.chunks)


class Large(PlainProjector):
    """Every frame takes a while to make."""

    def feed(self, record: m.Record) -> Frames:
        return (Frame(b"x" * (channel_module.LARGE + 1)),)


@pytest.mark.parametrize(("projector", "slice_"), [(PlainProjector, 100), (Large, 1)])
async def test_what_comes_at_once_is_taken_in_slices_and_nothing_is_missed(
    projector: type[PlainProjector], slice_: int
) -> None:
    stage = EngineFixture(silent, projector=lambda dialect, options: projector())
    session = await stage.session()
    cursor = await stage.service.subscribe("", session.view.session_id, "plain", after=1)
    post(session)
    seqs = [chunk.seq for chunk in await cursor.chunks()]
    post(session, 100)
    first = [chunk.seq for chunk in await cursor.chunks()]
    assert len(first) == slice_
    seqs += first
    while seqs[-1] < session.view.head:
        seqs += [chunk.seq for chunk in await cursor.chunks()]
    assert seqs == list(range(2, session.view.head + 1))
