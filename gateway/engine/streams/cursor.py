"""One subscriber: it catches up from the log, and then has a place in the channel that it shares with others."""

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import Struct

import gateway.model as m
from gateway.errors import GatewayError
from gateway.ports import Chunk, FramePlace, StreamKey, StreamSlot
from gateway.time_slices import next_slice

from .channel import GROUP, Channel
from .feed import Feed, wake

if TYPE_CHECKING:
    from .hub import Hub

PAGE = 512
"""How many records of the log are read at once."""
DELETION_WAIT_SECONDS = 1.0
"""How long a subscriber whose log is gone waits for the record that says that the session was deleted."""
FEW_RECORDS = 32
"""So many records are projected without waiting for a slice of time: a short turn has no more."""
MAX_INLINE_HISTORY = 256
"""A session that begins with more messages than that is projected in a thread."""
SEQ = attrgetter("seq")


async def feed_channel(channel: Channel, records: Sequence[m.Record]) -> None:
    """Let a channel that nobody shares project records of the log, without holding up the event loop."""
    first = records[0].event if records else None
    if isinstance(first, m.SessionCreated) and len(first.history) > MAX_INLINE_HISTORY:
        await asyncio.to_thread(channel.feed, records[:1])
        records = records[1:]
    few = FEW_RECORDS
    while records:
        if len(records) > few:
            await next_slice()
        records, few = records[channel.take_some(records):], 0


class StreamPosition(Struct):
    """Up to where a subscriber has its frames: the last record and, where a timer released its frames, their time."""

    after: int
    due: float | None = None


class LogGone(Exception):
    """The log has no records where the feed had some: the session was deleted."""


class LogUnreadable(Exception):
    """The log cannot be read just now."""


class CatchUp:
    """Reads the log a page at a time, through a projector of its own."""

    def __init__(self, hub: "Hub", feed: Feed, key: StreamKey, position: StreamPosition) -> None:
        self._hub = hub
        self._log = hub.log
        self._feed = feed
        self._key = key
        self._position = position
        self._begin = position.after
        self._counted: FramePlace | None = None
        """From where on frames are counted, and how many have been read; None until the first snapshot is kept."""
        self._is_flushed = False
        projector, observer = hub.projector(key.dialect, key.options), hub.observer
        self.channel = Channel(projector, observer.counted_events, partial(observer.count_record, key))

    async def read_page(self) -> list[Chunk]:
        """The chunks of the next records that the feed has published, without those that the subscriber has had."""
        channel, position = self.channel, self._position
        records: Sequence[m.Record] = ()
        try:
            if not channel.seq:
                await self._hub.recall(channel, self._feed.session_id, self._key, position.after)
            most = min(PAGE, self._feed.head - channel.seq)
            if most > 0:
                records = await self._log.read(self._feed.session_id, channel.seq, most)
        except GatewayError as error:
            raise LogUnreadable from error
        if most > 0 and not records:
            raise LogGone
        had = bisect_right(records, position.after, key=SEQ)
        if had:
            channel.skip(records[:had])
        if channel.seq == position.after and position.due is not None:
            channel.projector.flush(position.due)
            self._is_flushed = True
        await feed_channel(channel, records[had:])
        ready = channel.take()
        if channel.seq < self._feed.head and not self._is_flushed:
            self._keep_snapshot(ready)
        return ready

    def _keep_snapshot(self, ready: Sequence[Chunk]) -> None:
        """Keep how far the projector is, for there is another page to read and no timer has released its frames."""
        snapshots, session_id = self._hub.snapshots, self._feed.session_id
        after, frames = self._counted or snapshots.counted(session_id, self._key, self._begin)
        self._counted = FramePlace(after, frames + sum([len(chunk.frames) for chunk in ready]))
        if self._begin <= self.channel.seq:
            snapshots.add(session_id, self._key, self.channel, self._counted)


class Live:
    """A place in the channel that all subscribers with the same dialect and options share."""

    def __init__(self, feed: Feed, key: StreamKey, channel: Channel) -> None:
        self._feed = feed
        self._key = key
        self.channel = channel
        self.place = channel.base + len(channel.chunks)
        """How many chunks of the channel this subscriber has had."""
        self.has_more = False
        """Whether the feed has more records than were projected last."""
        channel.add_reader(self)

    def is_up_to_date(self) -> bool:
        """Whether this subscriber has had all records of the feed, and no frames are held back."""
        channel = self.channel
        has_all = channel.seq == self._feed.head and self.place == channel.base + len(channel.chunks)
        return has_all and channel.projector.deadline is None

    def read(self, hub: "Hub") -> Sequence[Chunk] | None:
        """The chunks that are ready; None if the channel or the feed has dropped what this subscriber has not had.

        This runs once per write to a client, so it calls no more functions than it must.
        """
        channel, feed = self.channel, self._feed
        start = len(feed.records) - (feed.head - channel.seq)
        if start < 0 or self.place < channel.base:
            self.leave()
            return None
        records = feed.records[start:]
        taken = len(records)
        if taken > GROUP:
            taken = channel.take_some(records, PAGE)
        elif taken:
            channel.feed(records)
        self.has_more = taken < len(records)
        due = channel.projector.deadline
        if due is not None and hub.is_time(feed, due):
            channel.flush(hub.clock())
        if len(feed.channels) == 1 and not self.has_more:
            feed.records.clear()
        if self.place == channel.base and len(channel.readers) == 1:
            ready = channel.take()
            self.place = channel.base
        else:
            ready, self.place = channel.chunks[self.place - channel.base:], channel.base + len(channel.chunks)
            channel.drop_delivered()
        return ready

    def leave(self) -> None:
        self._feed.leave(self._key, self.channel, self)


class Cursor:
    """Gets everything after its position in the log, once and in order, however late or slow it is.

    It is in one of two modes, or over::

        subscribe(after)
              |
              v           has all records up to feed.head
          CATCH UP ------------------------------------------> LIVE   waits for records or for a timer,
              ^                                                  |    and reads again
              +--------------------------------------------------+
                its chunks were dropped, or the feed's window
                has moved on

    CATCH UP reads pages of the log through a projector of its own; LIVE is a place in a channel that others share. A
    subscriber that has all records when it comes is live at once, if others are. The end, from either mode:

    - cut: this server cannot follow the session any more, or the subscriber was live once and is now more than
      `max_lag` records behind; `cut_at` is the last record whose frames it has had;
    - closed: the session is over and its last record is delivered, or its log is gone; or the server drains and the
      session is idle (`is_draining`); or the reader has left.
    """

    def __init__(self, hub: "Hub", feed: Feed, key: StreamKey, after: int, slot: StreamSlot) -> None:
        self._hub = hub
        self._feed = feed
        self._slot = slot
        self._key = key
        self._position = StreamPosition(after)
        self._mode: CatchUp | Live | None = None
        """None until the subscriber reads for the first time."""
        self._waiter: asyncio.Future[None] | None = None
        self._projected: int | None = None
        """The last record that was projected for a subscriber that was live once, whether it has frames or not."""
        self.open = True
        self.cut_at: int | None = None
        self.is_draining = False

    async def chunks(self) -> Sequence[Chunk]:
        hub, feed, is_woken = self._hub, self._feed, False
        while self.open:
            if feed.is_cut or (self._projected is not None and feed.head > self._projected and self._is_too_slow()):
                self.cut()
                break
            mode = self._mode = self._mode or self._start()
            ready: Sequence[Chunk] = ()
            if isinstance(mode, CatchUp):
                ready = await self._catch_up(mode)
            elif is_woken or not mode.is_up_to_date():
                if mode.has_more:
                    await next_slice()  # many records came at once: others are served between two slices of them
                    if not self.open:
                        return ()
                found = mode.read(hub)
                if found is None:
                    self._mode = CatchUp(hub, feed, self._key, self._position)
                    continue
                ready, self._projected = found, mode.channel.seq
            if ready:
                self._position.after, self._position.due = ready[-1].seq, ready[-1].due
                hub.observer.events(self._key.dialect, len(ready))
                return ready
            if isinstance(mode, Live) and mode.channel.seq >= feed.head:  # the log may be ahead of the feed
                self.is_draining = hub.draining and hub.rests(feed.session_id)
                if feed.over or self.is_draining:
                    self.close()
                    break
                due = mode.channel.projector.deadline
                if due is not None:
                    await self._wait(hub.time_of(feed, due))
                else:  # as `_wait` does, in place: a stream waits once per write
                    waiter = self._waiter = asyncio.get_running_loop().create_future()
                    feed.waiters[waiter] = None
                    try:
                        await waiter
                    finally:
                        feed.waiters.pop(waiter, None)
                self._projected = feed.head  # a subscriber that waits is not slow, however much comes at once
                is_woken = True
        return ()

    def cut(self) -> None:
        if self.open:
            self.cut_at = self._position.after
            self._hub.observer.cut()
            self.close()

    def close(self) -> None:
        if self.open:
            self.open = False
            if isinstance(self._mode, Live):
                self._mode.leave()
            self._hub.leave(self._feed, self._key.dialect, self._slot)
            if self._waiter is not None:
                wake(self._waiter)

    def _is_too_slow(self) -> bool:
        """Whether a subscriber that was live once is too far behind."""
        return self._projected is not None and self._feed.head - self._projected > self._hub.max_lag()

    # -- from one mode to the other -------------------------------------------------------------------------------

    def _start(self) -> CatchUp | Live:
        """Be live at once if the subscriber has all records and others are live; else read the log."""
        channel = self._feed.join(self._key, self._position.after, None)
        if channel is not None:
            return Live(self._feed, self._key, channel)
        return CatchUp(self._hub, self._feed, self._key, self._position)

    async def _catch_up(self, reader: CatchUp) -> Sequence[Chunk]:
        """The chunks of one page of the log; the subscriber is live from then on if that was the last page."""
        own = reader.channel
        try:
            ready = await reader.read_page()
        except LogUnreadable:  # the client reconnects, and gets the error then if the log still cannot be read
            self.cut()
            return ()
        except LogGone:
            return await self._read_end(own)
        if not self.open:
            return ()
        shared = self._feed.join(self._key, own.seq, own)  # now: what follows must not be read from the log again
        if shared is not None:
            self._mode, self._projected = Live(self._feed, self._key, shared), shared.seq
            if shared is not own:
                ready += own.catch_up(shared)
        elif self._projected is not None:
            self._projected = max(self._projected, own.seq)
        return ready

    async def _read_end(self, own: Channel) -> Sequence[Chunk]:
        """The session was deleted, and its log with it: only the record that says so is left, or will come soon."""
        if self._feed.end is None:
            await self._wait(asyncio.get_running_loop().time() + DELETION_WAIT_SECONDS)
        if self.open and self._feed.end is not None:
            own.feed([self._feed.end])
        self.close()
        return own.chunks

    async def _wait(self, until: float | None) -> None:
        """Wait for the next record, or until that time of the loop's clock."""
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        self._feed.waiters[waiter] = None
        timer = loop.call_at(until, wake, waiter) if until is not None else None
        try:
            await waiter
        finally:
            self._feed.waiters.pop(waiter, None)
            if timer is not None:
                timer.cancel()
