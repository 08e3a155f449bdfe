"""Who watches what: subscribers are cursors into the log; each dialect's frames are made once and shared."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Protocol

from gateway.model import BlockDelta, Record, SessionClosed, TurnEnded, TurnSuspended
from gateway.ports import Chunk, EventLog, Outbound

WINDOW = 2048
"""How many records and chunks are kept ready for those who read along; who falls behind reads the log instead."""
PAGE = 512

Projector = Callable[[str, str], Outbound]
"""(dialect, options) → a fresh outbound."""
StartOf = Callable[[str, str, int], int]
"""(session, dialect, cursor) → after which record an outbound must be fed to be right at the cursor."""


class Watching(Protocol):
    """Who counts frames and subscribers; nothing depends on it."""

    def events(self, dialect: str, count: int) -> None: ...
    def subscribed(self, change: int) -> None: ...
    def cut(self) -> None: ...
    def unsaid(self, dialect: str, record: Record) -> None:
        """The dialect had no frame for this record."""


class Feed:
    """The live end of one session: the records of late, and who waits for the next."""

    def __init__(self, session_id: str, head: int) -> None:
        self.session_id = session_id
        self.head = head
        self.over = False
        self.records: list[Record] = []
        self.channels: dict[tuple[str, str], Channel] = {}
        self.subscribers = 0
        self.waiters: list[asyncio.Future[None]] = []

    @property
    def first(self) -> int:
        """The number of the oldest record still at hand."""
        return self.head - len(self.records) + 1

    def publish(self, records: Sequence[Record]) -> None:
        self.records.extend(records)
        self.head = records[-1].seq
        self.over = type(records[-1].event) is SessionClosed
        if len(self.records) > 2 * WINDOW:
            del self.records[:-WINDOW]
        if self.waiters:
            waiters, self.waiters = self.waiters, []
            for waiter in waiters:
                _wake(waiter)

    def since(self, seq: int) -> Sequence[Record] | None:
        """The records after that one; None if they are no longer all at hand."""
        return None if seq + 1 < self.first else self.records[seq + 1 - self.first:]


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Channel:
    """One dialect's reading of one session, made once for all who watch it with the same options."""

    def __init__(self, outbound: Outbound, seq: int, unsaid: Callable[[Record], None]) -> None:
        self.outbound = outbound
        self.unsaid = unsaid
        self.seq = seq
        self.base = 0
        self.chunks: list[Chunk] = []
        self.readers = 0

    @property
    def end(self) -> int:
        return self.base + len(self.chunks)

    def take(self, records: Sequence[Record]) -> None:
        feed, chunks = self.outbound.feed, self.chunks
        for record in records:
            frames = feed(record)
            yields = type(record.event) in _YIELDS
            if frames or yields:
                chunks.append(Chunk(record.seq, frames, yields, type(record.event) is TurnEnded))
            elif type(record.event) is not BlockDelta:
                self.unsaid(record)
        if records:
            self.seq = records[-1].seq

    def pass_over(self, records: Sequence[Record]) -> None:
        """Take in what the reader has had already; nobody wants the frames of it."""
        skip = getattr(self.outbound, "skip", self.outbound.feed)
        for record in records:
            skip(record)
        if records:
            self.seq = records[-1].seq

    def flush(self, now: float) -> None:
        due = self.outbound.deadline
        if due is not None and due <= now and (frames := self.outbound.flush(now)):
            self.chunks.append(Chunk(self.seq, frames, False))

    def handed_out(self) -> None:
        """A lone reader leaves nothing behind; several leave a window for the slower ones."""
        keep = 0 if self.readers == 1 else WINDOW
        if len(self.chunks) > 2 * keep:
            self.base += len(self.chunks) - keep
            self.chunks = self.chunks[-keep:] if keep else []


_YIELDS = frozenset((TurnEnded, TurnSuspended))


class Cursor:
    """One subscriber: a place in a shared channel or, until it has caught up, a reader of the log."""

    def __init__(self, hub: "Hub", feed: Feed, dialect: str, options: str, after: int) -> None:
        self._hub = hub
        self._feed = feed
        self._key = (dialect, options)
        self._after = after
        self._shared: Channel | None = None
        self._place = 0
        self._alone: Channel | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._was_live = False
        self.open = True
        self.cut_at: int | None = None
        """Where a reader that was too slow should resume."""

    async def chunks(self) -> Sequence[Chunk]:
        while self.open and not self._too_slow():
            if self._shared is None and not self._join():
                ready = await self._read_log()
            else:
                ready = self._take()
            if ready:
                self._after = ready[-1].seq
                self._was_live = self._was_live or self._after == self._feed.head
                self._hub.watching.events(self._key[0], len(ready))
                return ready
            if self._shared is not None and self._shared.seq == self._feed.head:
                if self._feed.over:
                    self.close()
                else:
                    await self._news(self._hub.loop_time(self._shared.outbound.deadline))
        return ()

    def close(self) -> None:
        if self.open:
            self.open = False
            self._part()
            self._hub.leave(self._feed)
            if self._waiter is not None:
                _wake(self._waiter)

    def _too_slow(self) -> bool:
        """Whether a reader that had once caught up has fallen too far behind; it is cut then."""
        if self._was_live and self._feed.head - self._after > self._hub.max_lag():
            self.cut_at = self._after
            self._hub.watching.cut()
            self.close()
        return not self.open

    async def _news(self, until: float | None) -> None:
        """Wait for the next record, or until that time of the loop's clock."""
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        self._feed.waiters.append(waiter)
        timer = loop.call_at(until, _wake, waiter) if until is not None else None
        await waiter
        if timer is not None:
            timer.cancel()

    # -- reading along --------------------------------------------------------------------------------------------

    def _join(self) -> bool:
        """Take a place at the end of the shared channel, or offer our own, if we are at the live end."""
        feed, alone = self._feed, self._alone
        channel = feed.channels.get(self._key)
        if self._after < feed.head and (alone is None or alone.seq < feed.head):
            return False
        if channel is None:
            if alone is None:
                return False
            channel = feed.channels[self._key] = alone
        elif (news := feed.since(channel.seq)) is not None:
            channel.take(news)
        else:
            return False
        channel.readers += 1
        self._shared, self._place, self._alone = channel, channel.end, None
        return True

    def _part(self) -> None:
        channel, self._shared = self._shared, None
        if channel is not None:
            channel.readers -= 1
            if not channel.readers and self._feed.channels.get(self._key) is channel:
                del self._feed.channels[self._key]

    def _take(self) -> Sequence[Chunk]:
        """What the channel has for us; if it has gone on without us we part with it and read the log."""
        channel, feed = self._shared, self._feed
        assert channel is not None
        news = feed.since(channel.seq)
        if news is None or self._place < channel.base:
            self._part()
            return ()
        channel.take(news)
        channel.flush(self._hub.clock())
        if len(feed.channels) == 1:
            feed.records.clear()
        ready = channel.chunks[self._place - channel.base:] if self._place > channel.base else channel.chunks
        self._place = channel.end
        channel.handed_out()
        return ready

    # -- catching up ----------------------------------------------------------------------------------------------

    async def _read_log(self) -> Sequence[Chunk]:
        """One page of the log, through a projector of our own."""
        if self._alone is None:
            start = self._hub.start_of(self._feed.session_id, self._key[0], self._after)
            unsaid = partial(self._hub.watching.unsaid, self._key[0])
            self._alone = Channel(self._hub.projector(*self._key), start, unsaid)
        alone = self._alone
        records = await self._hub.log.read(self._feed.session_id, alone.seq, PAGE)
        if not records and alone.seq < self._feed.head:
            self.close()  # the session is gone, and its log with it
        had = sum(record.seq <= self._after for record in records)
        alone.pass_over(records[:had])
        alone.take(records[had:])
        ready = alone.chunks
        alone.base, alone.chunks = alone.end, []
        self._join()  # now, if this was the last page: what comes next must not be read from the log again
        return ready


class Hub:
    """The feeds of all sessions that somebody watches."""

    def __init__(
        self, *, log: EventLog, projector: Projector, start_of: StartOf, clock: Callable[[], float],
        watching: Watching, max_lag: Callable[[], int],
    ) -> None:
        self.log = log
        self.projector = projector
        self.start_of = start_of
        self.clock = clock
        self.watching = watching
        self.max_lag = max_lag
        self.subscribers = 0
        self._feeds: dict[str, Feed] = {}
        log.on_commit = self._publish

    def watch(self, session_id: str, head: int, dialect: str, options: str, after: int) -> Cursor:
        feed = self._feeds.get(session_id)
        if feed is None:
            feed = self._feeds[session_id] = Feed(session_id, head)
        feed.subscribers += 1
        self.subscribers += 1
        self.watching.subscribed(+1)
        return Cursor(self, feed, dialect, options, after)

    async def read(
        self, session_id: str, dialect: str, options: str, after: int, upto: int,
    ) -> AsyncIterator[Chunk]:
        """What a subscriber would have got of the records between the two, a page of the log at a time."""
        start = self.start_of(session_id, dialect, after)
        channel = Channel(self.projector(dialect, options), start, lambda record: None)
        while channel.seq < upto:
            records = await self.log.read(session_id, channel.seq, min(PAGE, upto - channel.seq))
            if not records:
                return
            had = sum(record.seq <= after for record in records)
            channel.pass_over(records[:had])
            channel.take(records[had:])
            ready, channel.chunks = channel.chunks, []
            for chunk in ready:
                yield chunk

    def leave(self, feed: Feed) -> None:
        feed.subscribers -= 1
        self.subscribers -= 1
        self.watching.subscribed(-1)
        if not feed.subscribers:
            self._feeds.pop(feed.session_id, None)

    def _publish(self, records: Sequence[Record]) -> None:
        feed = self._feeds.get(records[0].session_id)
        if feed is not None:
            feed.publish(records)

    def loop_time(self, at: float | None) -> float | None:
        """A time of the house's clock as a time of the loop's."""
        return None if at is None else asyncio.get_running_loop().time() + max(0.0, at - self.clock())
