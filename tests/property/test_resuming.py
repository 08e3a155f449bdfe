"""Resuming on streams nobody wrote: what a reader had and what it then gets is what it would have got, at every cut."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from adapters.aap.server.stream_options import StreamMode
from adapters.aap.server.stream_options import StreamOptions as AapOptions
from adapters.blade.server.projector import record_before_sequence
from adapters.blade.server.stream_options import StreamOptions as BladeOptions
from adapters.cas.server.stream_options import StreamOptions
from adapters.zenflux.server.stream_options import StreamOptions as Manner
from adapters.zenflux.server.views import user_id_of
from gateway import ports
from gateway.engine import Hub, SessionCommits, SessionTable
from gateway.engine.streams import channel as channel_module
from gateway.engine.streams import cursor as cursor_module
from gateway.engine.streams import feed as feed_module
from gateway.engine.streams import hub as hub_module
from gateway.engine.streams.cursor import Cursor
from gateway.engine.streams.snapshots import Snapshots
from gateway.http import ResumedSubscription
from gateway.ports import Frame, StreamKey, Subscription
from gateway.quotas import Quotas
from gateway.storage.log import MemoryLog
from tests.support.dialect_parts import live_options
from tests.support.dialect_tables import DIALECTS, dialect, table
from tests.support.dialects.cas.reader import StoredSession
from tests.support.engine.engine_fixture import CountingMetrics
from tests.support.examples import examples
from tests.support.record_streams import RandomWalk, sessions, spread

SESSION = "sess_walk"
MANNERS = {
    "socket": Manner(), "one message": Manner(multi_message=False), "whole": Manner(whole=True),
    "events": Manner(framing="sse", multi_message=False, throttle=0.0),
}
BOTH = ("agent.message", "agent.thinking")
READINGS = {
    "plain": StreamOptions(),
    "deltas": StreamOptions(deltas=BOTH),
    "raw": StreamOptions(incremental=True, raw=True),
}


class Library:
    """Sessions in a log and the hub that reads them, with a clock that is moved by hand."""

    def __init__(self, records: Sequence[m.Record] = ()) -> None:
        self.now = 0.0
        self.log = MemoryLog()
        self.said = 0
        self.hub = Hub(
            log=self.log, sessions=self, streams=self, clock=lambda: self.now, observer=CountingMetrics(),
            max_lag=lambda: 10**6,
        )
        self.log.attach(SessionCommits(SessionTable(), self.hub))
        self.all = list(records)
        self.head = 0
        if records:
            self.commit(len(records))

    def projector(self, name: str, options: ports.StreamOptions) -> ports.Projector:
        return dialect(name).projector(table(name), options)

    def replays_turn(self, name: str) -> bool:
        return dialect(name).replay_from == "turn"

    def turn_start(self, session_id: str, cursor: int) -> int:
        return m.fold(session_id, self.all).turn_start(cursor)

    def is_idle(self, session_id: str) -> bool:
        return True

    def has_unstored_records(self, session_id: str) -> bool:
        return self.said > self.head

    def commit(self, upto: int) -> None:
        for record in self.all[self.head:upto]:
            self.log.append(record)
        self.head = upto
        self.said = max(self.said, upto)

    def watch(self, name: str, options: ports.StreamOptions, after: int) -> Cursor:
        return self.hub.subscribe(SESSION, self.head, name, options, after, self.hub.reserve_slot("", Quotas()))


async def told(subscription: Subscription, *, to: str) -> list[Frame]:
    """All frames up to where the turn yields, or ends."""
    frames: list[Frame] = []
    try:
        async with asyncio.timeout(60):
            while chunks := await subscription.chunks():
                for chunk in chunks:
                    frames += chunk.frames
                    if getattr(chunk, to):
                        return frames
    finally:
        subscription.close()
    raise AssertionError("the turn did not come to its end")


# -- every cut of every stream ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("mode", ["delta", "message"])
@examples(30)
@given(records=sessions(steps=15))
async def test_aap_at_every_event(mode: StreamMode, records: list[m.Record]) -> None:
    library, numbered = Library(records), AapOptions(mode, has_ids=True)
    for record in records:
        if isinstance(record.event, m.TurnStarted | m.TurnResumed):
            whole = await told(library.watch("aap", numbered, record.seq - 1), to="yields")
            for cut in range(len(whole) + 1):
                rest = ResumedSubscription(library.watch("aap", numbered, record.seq - 1), cut)
                assert whole[:cut] + await told(rest, to="yields") == whole
            plain = await told(library.watch("aap", AapOptions(mode), record.seq - 1), to="yields")
            ids = [f"{record.seq}.{number}" for number in range(1, len(plain) + 1)]
            assert whole == [
                Frame(f"id: {one}\n".encode() + frame.body, frame.name, one)
                for one, frame in zip(ids, plain, strict=True)
            ], "as the POST tells it"


@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS)
@examples(30)
@given(records=sessions(steps=15))
async def test_zenflux_at_every_frame(manner: Manner, records: list[m.Record]) -> None:
    library = Library(records)
    for record in records:
        if isinstance(record.event, m.TurnStarted):
            before = m.fold(SESSION, records[:record.seq - 1])
            facts = Manner(
                framing=manner.framing, multi_message=manner.multi_message, whole=manner.whole,
                throttle=manner.throttle, title=before.title, created_at=before.created_at,
                user_id=user_id_of(before.owner, before.metadata),
            )
            whole = await told(library.watch("zenflux", facts, record.seq - 1), to="ends")
            for cut in range(len(whole) + 1):
                rest = ResumedSubscription(library.watch("zenflux", facts, record.seq - 1), cut)
                assert whole[:cut] + await told(rest, to="ends") == whole


@st.composite
def seeded(draw: Any) -> list[m.Record]:
    """A session that begins with what was said elsewhere, perhaps with very much of it."""
    records = draw(sessions(steps=15))
    created = records[0]
    history = tuple(
        m.SeedMessage(role=m.Role.USER, content="before") for _ in range(draw(st.sampled_from([0, 1, 120])))
    )
    assert isinstance(created.event, m.SessionCreated)
    first = m.Record(seq=1, at=created.at, session_id=created.session_id,
                   event=m.SessionCreated(agent=created.event.agent, history=history))
    return [first, *records[1:]]


@pytest.mark.parametrize(
    "manner", [BladeOptions(), BladeOptions(is_bare=True), BladeOptions(is_raw=True)], ids=["", "bare", "raw"])
@examples(30)
@given(records=seeded())
async def test_blade_at_many_events(manner: BladeOptions, records: list[m.Record]) -> None:
    """Every event has a number, and in raw a twin of the same number; a cut between the two is after the first.

    The stream is cut before the first event, and after up to twelve of them, the first and the last included.
    """
    library = Library(records)
    whole = [frame async for frame in _read(library, manner, 0)]
    numbers = [number_of(frame) for frame in whole]
    once = numbers[::2] if manner.is_raw else numbers
    assert sorted(set(once)) == once
    for number in [0, *(once[place] for place in spread(len(once)))]:
        rest = [
            frame
            async for frame in _read(library, manner, record_before_sequence(number))
            if number_of(frame) > number
        ]
        had = [frame for frame in whole if number_of(frame) <= number]
        assert had + rest == whole


def number_of(frame: Frame) -> int:
    """The number of an event of Blade, which is the cursor of its frame and stands in it."""
    assert orjson.loads(frame.body)["stream_sequence"] == frame.cursor
    assert isinstance(frame.cursor, int)
    return frame.cursor


async def _read(library: Library, manner: BladeOptions, after: int) -> AsyncIterator[Frame]:
    async for chunk in library.hub.read(SESSION, "blade", manner, after, library.head):
        for frame in chunk.frames:
            yield frame


@pytest.mark.parametrize("reading", READINGS.values(), ids=READINGS)
@examples(30)
@given(records=sessions(steps=15))
async def test_cas_at_every_event(reading: StreamOptions, records: list[m.Record]) -> None:
    shelf = StoredSession(records)

    async def frames(how: StreamOptions, after: int) -> list[Frame]:
        chunks = await shelf.read("", SESSION, "cas", how, after=after)
        return [frame async for chunk in chunks for frame in chunk.frames]

    whole = await frames(reading, 0)
    for place, frame in enumerate(whole, 1):
        event_id = frame.body.split(b"\n")[0].removeprefix(b"id: ").decode()
        assert frame.cursor == event_id
        after, how = await shelf.history(reading).resumed(event_id)
        assert whole[:place] + await frames(how, after) == whole


# -- while it happens -------------------------------------------------------------------------------------------------

LIVE = [pytest.param(name, live_options(name), id=name) for name in DIALECTS]
PACES = st.sampled_from([0.004, 0.03, 0.11, 0.5])
"""Seconds between two readings of one reader: prompt, or so slow that the others leave it behind."""


@st.composite
def replies(draw: Any) -> list[m.Record]:
    """A turn in which an agent talks in short breaths: words that are held back, merged and let go by timers."""
    walk = RandomWalk(draw)
    walk.turn_id = walk.id("turn")
    walk.say(m.InputAccepted(command_id="cmd_1", command=m.SendMessage(content="go")))
    walk.say(m.TurnStarted(command_id="cmd_1"))
    walk.start_message(m.ROOT)
    walk.open_block(m.ROOT, m.BlockKind.TEXT)
    block = walk.grammar.scopes[m.ROOT].block
    assert block is not None
    for gap in draw(st.lists(st.sampled_from([0.01, 0.04, 0.06, 0.3]), min_size=8, max_size=24)):
        walk.at += gap
        walk.say(m.BlockDelta(block_id=block.block_id, message_id=block.message_id, kind=block.kind, delta="word "))
    walk.wind_up()
    walk.say(m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN))
    return walk.records


class Hall:
    """A session as it happens: said, on its way, in the log; and readers who come when they like, each at its pace."""

    def __init__(self, records: list[m.Record], name: str, options: ports.StreamOptions) -> None:
        self.library = Library()
        self.library.all = records
        self.name, self.options = name, options
        self.readers: list[tuple[Cursor, list[Frame]]] = []

    def timeline(self, delays: list[float], readers: list[tuple[float, float]]) -> list[tuple[float, str, int]]:
        """What happens when: every record is said, and in the log after a while; readers come, and read."""
        records, safe = self.library.all, 0.0
        told = [(record.at, "say", record.seq) for record in records]
        for record in records:
            safe = max(safe, record.at + delays[record.seq % len(delays)])
            told.append((safe, "commit", record.seq))
        begin, end = records[0].at + delays[1 % len(delays)], safe + 0.2
        for number, (coming, pace) in enumerate(readers):
            opened = begin + coming * (end - begin)
            told.append((opened, "open", number))
            told += [(opened + n * pace, "read", number) for n in range(1, 1 + int((end - opened) / pace))]
        return sorted(told, key=lambda one: one[0])

    def live(self, timeline: list[tuple[float, str, int]]) -> None:
        library, places = self.library, dict[int, int]()
        for at, what, number in timeline:
            library.now = at
            if what == "say":
                library.said = number
            elif what == "commit":
                library.commit(number)
            elif what == "open":
                places[number] = len(self.readers)
                self.readers.append((library.watch(self.name, self.options, 0), []))
            else:
                self.read(places[number])

    def read(self, number: int) -> bool:
        """Whether anything was ready; a reader that would have to wait is called away, as by a task that is cancelled.

        Nothing else runs meanwhile, so it needs no task: there are hundreds of readings in one example.
        """
        cursor, heard = self.readers[number]
        reading = cursor.chunks()
        try:
            waiter = reading.send(None)
        except StopIteration as over:
            heard += [frame for chunk in over.value for frame in chunk.frames]
            return bool(over.value)
        assert waiter is cursor._waiter
        waiter.cancel()
        with suppress(asyncio.CancelledError):
            reading.throw(asyncio.CancelledError())
        return False

    def replayed(self) -> list[Frame]:
        """What the log alone tells one who comes when all is over."""
        outbound = self.library.hub.projector(self.name, self.options)
        return [frame for record in self.library.all for frame in outbound.feed(record)]


@pytest.mark.parametrize(("name", "options"), LIVE)
@examples(100)
@given(
    records=replies() | replies() | sessions(turns=1, steps=20),
    delays=st.lists(st.sampled_from([0.0, 0.002, 0.12]), min_size=2, max_size=7),
    readers=st.lists(st.tuples(st.floats(0, 1), PACES), min_size=2, max_size=4),
)
async def test_whoever_reads_when_and_however_slowly_is_told_the_same(
    name: str, options: ports.StreamOptions, records: list[m.Record], delays: list[float],
    readers: list[tuple[float, float]],
) -> None:
    """Timers go off, commits are late, readers share, fall behind and read the log: replay equals live, to the byte."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feed_module, "WINDOW", 3)
        patch.setattr(channel_module, "KEPT_CHUNKS", 3)
        patch.setattr(channel_module, "KEPT_BYTES", 2000)
        patch.setattr(cursor_module, "PAGE", 4)
        hall = Hall(records, name, options)
        hall.live(hall.timeline(delays, readers))
        for number, (cursor, heard) in enumerate(hall.readers):
            while hall.read(number):
                pass
            cursor.close()
            assert heard == hall.replayed()
        assert hall.library.hub.subscribers == 0


# -- snapshots --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(
    ("name", "options"), [*LIVE, pytest.param("aap", AapOptions("delta", has_ids=True), id="aap with ids")])
@examples(25)
@given(records=replies() | sessions(steps=20), first=st.floats(0, 1))
async def test_a_reader_that_begins_at_a_snapshot_gets_the_same_frames(
    name: str, options: ports.StreamOptions, records: list[m.Record], first: float,
) -> None:
    """After any record, whoever has read before; and a place for a client that has had so many frames is that place."""
    library, plain = Library(records), Library(records)

    async def frames(of: Library, after: int) -> list[Frame]:
        chunks = of.hub.read(SESSION, name, options, after, of.head)
        return [frame async for chunk in chunks for frame in chunk.frames]

    with pytest.MonkeyPatch.context() as patch:
        for module in (cursor_module, hub_module):
            patch.setattr(module, "PAGE", 3)
        library.hub.drain()
        origin = library.turn_start(SESSION, int(first * library.head))
        await frames(library, origin)
        await told_so_far(library.watch(name, options, origin))
        assert library.hub.snapshots.place(SESSION, StreamKey(name, options), origin, 10**6).after > origin or (
            library.head - origin <= 3), "there are snapshots, or it is too short for them"
        patch.setattr(plain.hub, "snapshots", NoSnapshots())
        for place in spread(library.head):
            assert await frames(library, place) == await frames(plain, place)
        whole = await frames(plain, origin)
        for had in {0, len(whole), *spread(len(whole))}:
            place, left = library.hub.resume_place(SESSION, name, options, origin, had)
            assert (await frames(library, place))[left:] == whole[had:]
            rest = ResumedSubscription(library.watch(name, options, place), left)
            assert await told_so_far(rest) == whole[had:]


class NoSnapshots(Snapshots):
    """Keeps none."""

    def add(self, *given: Any, **more: Any) -> None:
        pass


async def told_so_far(subscription: Subscription) -> list[Frame]:
    """All frames of the records that there are; of a hub that drains, so that the stream ends there."""
    frames: list[Frame] = []
    while chunks := await subscription.chunks():
        frames += [frame for chunk in chunks for frame in chunk.frames]
    return frames
