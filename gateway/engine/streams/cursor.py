"""One subscriber: a place in a shared channel or, until it has caught up, a reader of the log."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import gateway.model as m
from gateway.errors import GatewayError
from gateway.ports import Chunk, StreamSlot
from gateway.time_slices import next_slice

from .channel import GROUP, Channel
from .feed import Feed, wake

if TYPE_CHECKING:
    from .hub import Hub

PAGE = 512
"""How many records of the log are read in one go."""
DELETION_WAIT_SECONDS = 1.0
"""Seconds within which it is told that a session whose log is gone has been deleted."""


MAX_INLINE_HISTORY = 256
"""A session that begins with more messages than that is projected in a thread."""


async def feed_channel(channel: Channel, records: Sequence[m.Record]) -> None:
    """Let a channel that nobody shares take in what the log has, without holding up the loop."""
    first = records[0].event if records else None
    if isinstance(first, m.SessionCreated) and len(first.history) > MAX_INLINE_HISTORY:
        await asyncio.to_thread(channel.feed, records[:1])
        records = records[1:]
    while records:
        if len(records) > GROUP:
            await next_slice()
        records = records[channel.take_some(records):]


class Cursor:
    """Sees everything after its place in the log, once and in order, however late or slow it is."""

    def __init__(
        self, hub: "Hub", feed: Feed, dialect: str, options: str, after: int, reserve_stream: StreamSlot
    ) -> None:
        self._hub = hub
        self._feed = feed
        self._seat = reserve_stream
        self._key = (dialect, options)
        self._after = after
        self._due: float | None = None
        """By when the last that we had was due, if a timer let it go."""
        self._late: Sequence[Chunk] = ()
        self._shared: Channel | None = None
        self.reserve_stream = 0
        """How many of the chunks of the shared channel it has had."""
        self._alone: Channel | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._more = False
        """Whether the live end has more than was taken in last."""
        self._was_live = False
        self._heard = after
        """The last record that was told to us, in frames or in silence."""
        self.open = True
        self.cut_at: int | None = None
        self.is_draining = False

    async def chunks(self) -> Sequence[Chunk]:
        while self.open and not self._too_slow():
            if self._shared is None and not self._join():
                ready = await self._read_log()
            else:
                if self._more:
                    await next_slice()  # much came at once: others are served between two slices of it
                    if not self.open:
                        return ()
                ready, self._late = self._late or self._take(), ()
            if self._shared is not None:
                self._heard, self._was_live = self._shared.seq, True
            if ready:
                self._after, self._due = ready[-1].seq, ready[-1].due
                self._hub.observer.events(self._key[0], len(ready))
                return ready
            if self._shared is not None and self._shared.seq >= self._feed.head:  # the log may be ahead of the news
                self.is_draining = self._hub.draining and self._hub.rests(self._feed.session_id)
                if self._feed.over or self.is_draining:
                    self.close()
                else:
                    await self._news(self._hub.time_of(self._feed, self._shared.outbound.deadline))
                    self._heard = self._feed.head  # who waits is not slow, however much comes at once
        return ()

    def cut(self) -> None:
        if self.open:
            self.cut_at = self._after
            self._hub.observer.cut()
            self.close()

    def close(self) -> None:
        if self.open:
            self.open = False
            self._part()
            self._hub.leave(self._feed, self._seat)
            if self._waiter is not None:
                wake(self._waiter)

    def _too_slow(self) -> bool:
        """Whether a reader that had once caught up has fallen too far behind, or the feed is torn; it is cut then."""
        if self._feed.is_cut or (self._was_live and self._feed.head - self._heard > self._hub.max_lag()):
            self.cut()
        return not self.open

    async def _news(self, until: float | None) -> None:
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

    # -- reading along --------------------------------------------------------------------------------------------

    def _join(self) -> bool:
        """Take a place at the end of the shared channel, or offer our own, if we are at the live end."""
        feed, alone = self._feed, self._alone
        channel = feed.channels.get(self._key)
        if (self._after if alone is None else alone.seq) < feed.head:
            return False
        if channel is not None and (news := feed.since(channel.seq)) is not None:
            channel.feed(news)
            self._late = alone.catch_up(channel) if alone is not None else ()
        elif alone is not None:  # there is none, or none of its readers has read for too long
            channel = feed.channels[self._key] = alone
        else:
            return False
        channel.add_reader(self)
        self._shared, self.reserve_stream, self._alone = channel, channel.end, None
        return True

    def _part(self) -> None:
        channel, self._shared = self._shared, None
        if channel is not None:
            channel.readers.discard(self)
            if not channel.readers and self._feed.channels.get(self._key) is channel:
                del self._feed.channels[self._key]

    def _take(self) -> Sequence[Chunk]:
        """What the channel has for us; if it has gone on without us we part with it and read the log."""
        channel, feed = self._shared, self._feed
        assert channel is not None
        news = feed.since(channel.seq)
        if news is None or self.reserve_stream < channel.base:
            self._part()
            return ()
        taken = len(news)
        if taken > GROUP:
            taken = channel.take_some(news, PAGE)
        else:
            channel.feed(news)
        self._more = taken < len(news)
        if self._hub.is_time(feed, channel.outbound.deadline):
            channel.flush(self._hub.clock())
        if len(feed.channels) == 1 and not self._more:
            feed.records.clear()
        ready, self.reserve_stream = channel.since(self.reserve_stream), channel.end
        channel.drop_delivered()
        return ready

    # -- catching up ----------------------------------------------------------------------------------------------

    async def _read_log(self) -> Sequence[Chunk]:
        """One page of the log, through a projector of our own; what the feed has not told of yet is not for us yet."""
        if self._alone is None:
            start = self._hub.start_of(self._feed.session_id, self._key[0], self._after)
            unsaid = partial(self._hub.observer.record_not_sent, self._key[0])
            self._alone = Channel(self._hub.projector(*self._key), start, unsaid)
        alone, most = self._alone, min(PAGE, self._feed.head - self._alone.seq)
        try:
            records = await self._hub.log.read(self._feed.session_id, alone.seq, most) if most > 0 else ()
        except GatewayError:  # who was cut comes back, and is told then what is wrong, if it still is
            self.cut()
            return ()
        if not records and most > 0:
            return await self._last_words(alone)
        if not self.open:
            return ()
        had = sum(record.seq <= self._after for record in records)
        alone.skip(records[:had])
        if alone.seq == self._after and self._due is not None:
            alone.outbound.flush(self._due)
        await feed_channel(alone, records[had:])
        if not self.open:
            return ()
        ready, self._heard = alone.chunks, max(self._heard, alone.seq)
        alone.base, alone.chunks = alone.end, []
        self._join()  # now, if this was the last page: what comes next must not be read from the log again
        late, self._late = self._late, ()
        return [*ready, *late]

    async def _last_words(self, alone: Channel) -> Sequence[Chunk]:
        """The session is gone, and its log with it; that is all that is left to tell, or will be soon."""
        if self._feed.end is None:
            await self._news(asyncio.get_running_loop().time() + DELETION_WAIT_SECONDS)
        if self.open and self._feed.end is not None:
            alone.feed([self._feed.end])
        self.close()
        return alone.chunks
