"""A subscriber sees everything after its cursor, once and in order, however late or slow."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.engine.streams import channel as channel_module
from gateway.engine.streams import cursor as cursor_module
from gateway.engine.streams import feed as feed_module
from gateway.engine.streams.cursor import Cursor
from gateway.ports import Frame, Frames
from gateway.storage.log import MemoryLog
from tests.support.engine.engine_fixture import EngineFixture, PlainProjector
from tests.support.engine.silent_agent import SlowLog, post, read, silent


async def test_replay_then_live_without_gap_or_repetition() -> None:
    stage = EngineFixture(silent)
    session = await stage.session()
    post(session, 5)
    cursor = await stage.service.subscribe("", session.view.session_id, "plain", after=2)
    assert await read(cursor) == [3, 4, 5, 6]
    post(session, 2)
    assert await read(cursor) == [7, 8]
    later = asyncio.create_task(read(cursor))
    await asyncio.sleep(0)
    post(session)
    assert await later == [9]


async def test_who_has_read_nothing_yet_still_hears_that_the_session_was_deleted() -> None:
    """Its log is gone by then, and with it all that might have been replayed."""
    stage = EngineFixture(silent)
    session = await stage.session()
    post(session, 5)
    fresh = await stage.service.subscribe("", session.view.session_id, "plain", after=0)
    behind = await stage.service.subscribe("", session.view.session_id, "plain", after=4)
    await stage.service.delete("", session.view.session_id)
    assert await read(fresh) == await read(behind) == [7]
    assert await read(fresh) == await read(behind) == []
    assert stage.hub.subscribers == 0


MOVES = st.tuples(st.sampled_from(["post", "burst", "open", "read", "close"]), st.integers(0, 12))


@given(st.lists(MOVES, max_size=60))
async def test_every_cursor_sees_everything_after_it_once(moves: list[tuple[str, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feed_module, "WINDOW", 3)
        patch.setattr(channel_module, "KEPT_CHUNKS", 3)
        patch.setattr(channel_module, "KEPT_BYTES", 2000)
        patch.setattr(cursor_module, "PAGE", 2)
        stage = EngineFixture(silent)
        session = await stage.session()
        open_cursors: list[tuple[Cursor, int, list[int]]] = []
        for move, number in moves:
            if move in ("post", "burst"):
                post(session, 1 if move == "post" else number)
            elif move == "open":
                after = min(number, session.view.head)
                cursor = await stage.service.subscribe("", session.view.session_id, "plain", after=after)
                open_cursors.append((cursor, after, []))
            elif open_cursors and move == "read":
                cursor, after, seen = open_cursors[number % len(open_cursors)]
                if (seen[-1] if seen else after) < session.view.head:
                    seen += await read(cursor)
            elif open_cursors and move == "close":
                open_cursors.pop(number % len(open_cursors))[0].close()
        for cursor, after, seen in open_cursors:
            while (seen[-1] if seen else after) < session.view.head:
                seen += await read(cursor)
            assert seen == list(range(after + 1, session.view.head + 1))
            cursor.close()
        assert stage.hub.subscribers == 0
        assert stage.watchman.watching == 0


async def test_who_falls_too_far_behind_is_cut_and_nobody_waits() -> None:
    stage = EngineFixture(silent, max_lag_events=10_000)
    session = await stage.session()
    slow = await stage.service.subscribe("", session.view.session_id, "plain", after=1)
    quick = await stage.service.subscribe("", session.view.session_id, "plain", after=1)
    post(session)
    assert await read(slow) == await read(quick) == [2]
    seen = []
    while session.view.head < 15_000:
        post(session, 500)
        seen += await read(quick)
    assert seen == list(range(3, session.view.head + 1)), "the quick one missed nothing"
    assert await read(slow) == []
    assert slow.cut_at == 2, "where it should resume"
    assert stage.watchman.cuts == 1
    again = await stage.service.subscribe("", session.view.session_id, "plain", after=slow.cut_at)
    assert (await read(again))[0] == 3


async def test_closing_wakes_a_reader_that_waits() -> None:
    stage = EngineFixture(silent)
    session = await stage.session()
    cursor = await stage.service.subscribe("", session.view.session_id, "plain", after=1)
    reading = asyncio.create_task(read(cursor))
    await asyncio.sleep(0)
    cursor.close()
    assert await reading == []


async def test_the_end_of_a_session_ends_its_streams() -> None:
    stage = EngineFixture(silent)
    session = await stage.session()
    cursor = await stage.service.subscribe("", session.view.session_id, "plain", after=1)
    reading = asyncio.create_task(read(cursor))
    await asyncio.sleep(0)
    session.append(m.SessionClosed(reason=m.CloseReason.TERMINATED))
    assert await reading == [2]
    assert await read(cursor) == []
    assert not cursor.open


async def test_what_is_held_back_is_flushed_when_it_is_due() -> None:
    class Holding(PlainProjector):
        """Holds every frame until its deadline."""

        def __init__(self) -> None:
            self.held: list[Frame] = []

        def feed(self, record: m.Record) -> Frames:
            self.held += super().feed(record)
            self.deadline = record.at + 0.01
            return ()

        def flush(self, now: float) -> Frames:
            held, self.held, self.deadline = tuple(self.held), [], None
            return held

    stage = EngineFixture(silent, projector=lambda dialect, options: Holding())
    stage.hub.clock = lambda: stage.now
    session = await stage.session()
    cursor = await stage.service.subscribe("", session.view.session_id, "plain", after=1)
    reading = asyncio.create_task(read(cursor))
    await asyncio.sleep(0)
    post(session, 3)
    await asyncio.sleep(0)
    assert not reading.done()
    stage.now += 1
    assert await reading == [1, 2, 3, 4]


class Dripping(PlainProjector):
    """Says each record in four frames, a second apart."""

    def __init__(self) -> None:
        self.held: list[tuple[float, Frame]] = []

    @property
    def deadline(self) -> float | None:  # type: ignore[override]
        return self.held[0][0] if self.held else None

    def feed(self, record: m.Record) -> Frames:
        self.held += [(record.at + number, Frame(f"{record.seq} {number}".encode())) for number in range(1, 5)]
        return ()

    def flush(self, now: float) -> Frames:
        due = tuple(frame for at, frame in self.held if at <= now)
        self.held = [(at, frame) for at, frame in self.held if at > now]
        return due


async def test_frames_that_a_timer_released_are_not_lost_where_the_channel_has_dropped_them() -> None:
    """The slow reader has all records, and the channel has dropped frames that came after the last of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(channel_module, "KEPT_BYTES", 0)
        stage = EngineFixture(silent, projector=lambda dialect, options: Dripping())
        session = await stage.session()
        quick, slow = [await stage.service.subscribe("", session.view.session_id, "plain") for _ in range(2)]
        seen: dict[Cursor, list[bytes]] = {quick: [], slow: []}

        async def look(cursor: Cursor) -> None:
            async with asyncio.timeout(30):
                seen[cursor] += [frame.body for chunk in await cursor.chunks() for frame in chunk.frames]

        stage.now += 1
        await look(quick)
        await look(slow)
        for _ in range(3):
            stage.now += 1
            await look(quick)
        while len(seen[slow]) < 4:
            await look(slow)
        assert seen[quick] == seen[slow] == [b"1 1", b"1 2", b"1 3", b"1 4"]


async def test_a_newcomer_does_not_wait_for_readers_who_have_stopped_reading() -> None:
    """Nobody has read along for longer than records are kept: the newcomer's reading becomes the shared one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feed_module, "WINDOW", 3)
        patch.setattr(channel_module, "KEPT_CHUNKS", 3)
        stage = EngineFixture(silent)
        session = await stage.session()
        hung = [await stage.service.subscribe("", session.view.session_id, "plain", after=1) for _ in range(2)]
        post(session)
        assert [await read(cursor) for cursor in hung] == [[2], [2]]
        for _ in range(5):
            post(session, 3)
        fresh = await stage.service.subscribe("", session.view.session_id, "plain", after=1)
        assert await read(fresh) == list(range(2, session.view.head + 1))
        post(session)
        assert await read(fresh) == [session.view.head]
        assert (await read(hung[0]))[0] == 3, "and who reads again misses nothing"


async def test_who_takes_nothing_can_be_cut_from_outside() -> None:
    stage = EngineFixture(silent)
    session = await stage.session()
    cursor = await stage.service.subscribe("", session.view.session_id, "plain")
    assert await read(cursor) == [1]
    cursor.cut()
    cursor.cut()
    assert (cursor.cut_at, stage.watchman.cuts, await read(cursor)) == (1, 1, [])


async def test_a_reader_that_goes_leaves_nothing_waiting() -> None:
    stage = EngineFixture(silent)
    session = await stage.session()
    staying = await stage.service.subscribe("", session.view.session_id, "plain", after=1)
    first = asyncio.create_task(read(staying))
    for _ in range(50):
        cursor = await stage.service.subscribe("", session.view.session_id, "plain", after=1)
        waiting = asyncio.create_task(cursor.chunks())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        cursor.close()
    assert len(stage.hub.feeds[session.view.session_id].waiters) == 1
    first.cancel()


async def test_who_comes_while_the_log_is_ahead_of_the_news_is_told_nothing_twice() -> None:
    log = SlowLog()
    stage = EngineFixture(silent, log=log)
    session = await stage.session()
    post(session, 2)
    first = await stage.service.subscribe("", session.view.session_id, "plain")
    assert await read(first) == [1, 2, 3]
    log.quiet = True
    post(session, 2)
    second = await stage.service.subscribe("", session.view.session_id, "plain")
    assert await read(second) == [1, 2, 3], "what is not told of yet is shown to nobody"
    log.tell()
    post(session)
    assert await read(second) == await read(first) == [4, 5, 6]


async def test_who_hears_of_a_deletion_from_the_log_first_is_told_of_it_all_the_same() -> None:
    log = SlowLog()
    stage = EngineFixture(silent, log=log)
    session = await stage.session()
    post(session, 2)
    cursor = await stage.service.subscribe("", session.view.session_id, "plain")
    log.quiet = True
    await stage.service.delete("", session.view.session_id)
    reading = asyncio.create_task(read(cursor))
    await asyncio.sleep(0)
    log.tell()
    assert await reading == [4]
    assert await read(cursor) == []


async def test_who_has_nothing_to_be_told_in_its_dialect_is_not_slow() -> None:
    class Taciturn(PlainProjector):
        def feed(self, record: m.Record) -> Frames:
            return super().feed(record) if record.seq in (1, 60) else ()

    stage = EngineFixture(silent, projector=lambda dialect, options: Taciturn(), max_lag_events=10)
    session = await stage.session()
    live = await stage.service.subscribe("", session.view.session_id, "plain")
    assert await read(live) == [1]
    reading = asyncio.create_task(read(live))
    while session.view.head < 60:
        post(session)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert await reading == [60]
    assert stage.watchman.cuts == 0


async def test_who_is_gone_when_the_log_answers_does_not_read_along() -> None:
    log = SlowLog()
    stage = EngineFixture(silent, log=log)
    session = await stage.session()
    staying = await stage.service.subscribe("", session.view.session_id, "plain")
    assert await read(staying) == [1]
    log.slow = True
    going = await stage.service.subscribe("", session.view.session_id, "plain")
    reading = asyncio.create_task(going.chunks())
    await asyncio.sleep(0)
    going.close()
    log.may_read.set()
    assert await reading == ()
    [channel] = stage.hub.feeds[session.view.session_id].channels.values()
    assert channel.readers == {staying._mode}


async def test_what_a_reader_was_given_stays_as_it_is() -> None:
    stage = EngineFixture(silent)
    session = await stage.session()
    slow, quick = [await stage.service.subscribe("", session.view.session_id, "plain", after=1) for _ in range(2)]
    waiting = [asyncio.create_task(cursor.chunks()) for cursor in (slow, quick)]
    await asyncio.sleep(0)
    post(session)
    given, _ = await asyncio.gather(*waiting)
    post(session)
    assert await read(quick) == [3]
    assert [chunk.seq for chunk in given] == [2]
    assert await read(slow) == [3]


async def test_who_has_had_all_of_a_long_session_waits_for_what_comes_next() -> None:
    """Its projector must see the session from the start, which takes several pages; there is nothing to tell of it."""
    class Patient(MemoryLog):
        pages = 0

        async def read(self, session_id: str, after: int = 0, limit: int | None = None) -> Sequence[m.Record]:
            self.pages += 1
            assert self.pages < 10, "what was read is read again and again"
            return await super().read(session_id, after, limit)

    log = Patient()
    stage = EngineFixture(silent, log=log)
    session = await stage.session()
    post(session, 2 * cursor_module.PAGE)
    cursor = await stage.service.subscribe("", session.view.session_id, "plain", after=session.view.head)
    reading = asyncio.create_task(read(cursor))
    await asyncio.sleep(0)
    assert (reading.done(), log.pages) == (False, 3)
    post(session)
    assert await reading == [session.view.head]


async def test_who_waits_is_not_slow_however_much_comes_at_once() -> None:
    log = SlowLog()
    stage = EngineFixture(silent, log=log, max_lag_events=10)
    session = await stage.session()
    cursor = await stage.service.subscribe("", session.view.session_id, "plain")
    assert await read(cursor) == [1]
    reading = asyncio.create_task(read(cursor))
    await asyncio.sleep(0)
    log.quiet = True
    post(session, 50)
    log.tell()
    assert await reading == list(range(2, 52))
    assert stage.watchman.cuts == 0
