"""Who watches what: subscribers are cursors into the log; each dialect's frames are made once and shared."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Protocol

from gateway.errors import GatewayError
from gateway.model import BlockDelta, Record, SessionClosed, TurnEnded, TurnSuspended
from gateway.ports import Chunk, EventLog, Outbound

WINDOW = 2048
"""How many records are kept ready for those who read along."""
KEPT_BYTES = 16 * 1024 * 1024
"""How much of one reading of a session is kept for its slower readers; who is further behind reads the log instead."""
CHUNK_BYTES = 300
"""What a chunk takes beside its bytes."""
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
        self.end: Record | None = None
        """The record that closed the session."""
        self.torn = False
        """Whether what comes next cannot be told here: who watches is cut, and may ask again."""
        self.records: list[Record] = []
        self.channels: dict[tuple[str, str], Channel] = {}
        self.subscribers = 0
        self.waiters: dict[asyncio.Future[None], None] = {}

    @property
    def first(self) -> int:
        """The number of the oldest record still at hand."""
        return self.head - len(self.records) + 1

    def publish(self, records: Sequence[Record]) -> None:
        self.records.extend(records)
        self.head = records[-1].seq
        self.over = type(records[-1].event) is SessionClosed
        self.end = records[-1] if self.over else None
        keep = max(WINDOW, len(records))  # what comes at once is read at once, however much it is
        if len(self.records) > 2 * keep:
            del self.records[:-keep]
        if self.waiters:
            self.wake()

    def wake(self) -> None:
        waiters, self.waiters = self.waiters, {}
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
        self.readers: set[Cursor] = set()
        self.bytes = 0
        self._look_at = 2 * WINDOW

    @property
    def end(self) -> int:
        return self.base + len(self.chunks)

    def take(self, records: Sequence[Record]) -> None:
        feed, chunks, before = self.outbound.feed, self.chunks, len(self.chunks)
        for record in records:
            frames = feed(record)
            yields = type(record.event) in _YIELDS
            if frames or yields:
                chunks.append(Chunk(record.seq, frames, yields, type(record.event) is TurnEnded))
            elif type(record.event) is not BlockDelta:
                self.unsaid(record)
        if records:
            self.seq = records[-1].seq
        if len(self.readers) > 1:
            self.bytes += _size(chunks[before:])

    def pass_over(self, records: Sequence[Record]) -> None:
        """Take in what the reader has had already; nobody wants the frames of it."""
        skip = getattr(self.outbound, "skip", self.outbound.feed)
        for record in records:
            skip(record)
        if records:
            self.seq = records[-1].seq

    def flush(self, now: float) -> None:
        if frames := self.outbound.flush(now):
            self.chunks.append(Chunk(self.seq, frames, False, due=now))
            self.bytes += _size(self.chunks[-1:]) if len(self.readers) > 1 else 0

    def catch_up(self, other: "Channel") -> list[Chunk]:
        """What the other, which has taken in as much, has let go already, and we still hold back."""
        before: float | None = None
        while (due := self.outbound.deadline) not in (None, before, other.outbound.deadline):
            self.flush(due)
            before = due
        ready, self.chunks = self.chunks, []
        return ready

    def welcome(self, reader: "Cursor") -> None:
        self.readers.add(reader)
        if len(self.readers) == 2:
            self.bytes = _size(self.chunks)  # from now on it is kept, and counted

    def handed_out(self) -> None:
        """A lone reader leaves nothing behind; several leave what the slower ones have not had, within bounds."""
        if len(self.readers) == 1:
            self.base, self.chunks, self.bytes = self.end, [], 0
        elif len(self.chunks) > self._look_at or self.bytes > KEPT_BYTES:
            self._drop(min(reader.place for reader in self.readers) - self.base)
            if self.bytes > KEPT_BYTES:
                self._drop(len(self.chunks) // 2)  # who is there reads the log instead
            self._look_at = 2 * max(WINDOW, len(self.chunks))

    def _drop(self, count: int) -> None:
        if count > 0:
            self.bytes -= _size(self.chunks[:count])
            self.base, self.chunks = self.base + count, self.chunks[count:]


def _size(chunks: Sequence[Chunk]) -> int:
    """About how many bytes they take."""
    return sum(CHUNK_BYTES + sum(map(len, chunk.frames)) for chunk in chunks)


_YIELDS = frozenset((TurnEnded, TurnSuspended))


class Cursor:
    """One subscriber: a place in a shared channel or, until it has caught up, a reader of the log."""

    def __init__(self, hub: "Hub", feed: Feed, dialect: str, options: str, after: int) -> None:
        self._hub = hub
        self._feed = feed
        self._key = (dialect, options)
        self._after = after
        self._due: float | None = None
        """By when the last that we had was due, if a timer let it go."""
        self._late: Sequence[Chunk] = ()
        self._shared: Channel | None = None
        self.place = 0
        """How many of the chunks of the shared channel it has had."""
        self._alone: Channel | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._was_live = False
        self.open = True
        self.cut_at: int | None = None
        self.leaving = False

    async def chunks(self) -> Sequence[Chunk]:
        while self.open and not self._too_slow():
            if self._shared is None and not self._join():
                ready = await self._read_log()
            else:
                ready, self._late = self._late or self._take(), ()
            if ready:
                self._after, self._due = ready[-1].seq, ready[-1].due
                self._was_live = self._was_live or self._after == self._feed.head
                self._hub.watching.events(self._key[0], len(ready))
                return ready
            if self._shared is not None and self._shared.seq >= self._feed.head:  # the log may be ahead of the news
                self.leaving = self._hub.draining and self._hub.rests(self._feed.session_id)
                if self._feed.over or self.leaving:
                    self.close()
                else:
                    await self._news(self._hub.time_of(self._feed, self._shared.outbound.deadline))
        return ()

    def cut(self) -> None:
        if self.open:
            self.cut_at = self._after
            self._hub.watching.cut()
            self.close()

    def close(self) -> None:
        if self.open:
            self.open = False
            self._part()
            self._hub.leave(self._feed)
            if self._waiter is not None:
                _wake(self._waiter)

    def _too_slow(self) -> bool:
        """Whether a reader that had once caught up has fallen too far behind, or the feed is torn; it is cut then."""
        if self._feed.torn or (self._was_live and self._feed.head - self._after > self._hub.max_lag()):
            self.cut()
        return not self.open

    async def _news(self, until: float | None) -> None:
        """Wait for the next record, or until that time of the loop's clock."""
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        self._feed.waiters[waiter] = None
        timer = loop.call_at(until, _wake, waiter) if until is not None else None
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
        if self._after < feed.head and (alone is None or alone.seq < feed.head):
            return False
        if channel is not None and (news := feed.since(channel.seq)) is not None:
            channel.take(news)
            self._late = alone.catch_up(channel) if alone is not None else ()
        elif alone is not None:  # there is none, or none of its readers has read for too long
            channel = feed.channels[self._key] = alone
        else:
            return False
        channel.welcome(self)
        self._shared, self.place, self._alone = channel, channel.end, None
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
        if news is None or self.place < channel.base:
            self._part()
            return ()
        channel.take(news)
        if self._hub.is_time(feed, channel.outbound.deadline):
            channel.flush(self._hub.clock())
        if len(feed.channels) == 1:
            feed.records.clear()
        ready = channel.chunks[self.place - channel.base:] if self.place > channel.base else channel.chunks
        self.place = channel.end
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
        try:
            records = await self._hub.log.read(self._feed.session_id, alone.seq, PAGE)
        except GatewayError:  # who was cut comes back, and is told then what is wrong, if it still is
            self.cut()
            return ()
        if not records and alone.seq < self._feed.head:
            return self._last_words(alone)
        had = sum(record.seq <= self._after for record in records)
        alone.pass_over(records[:had])
        if alone.seq == self._after and self._due is not None:
            alone.outbound.flush(self._due)
        alone.take(records[had:])
        ready = alone.chunks
        alone.base, alone.chunks = alone.end, []
        self._join()  # now, if this was the last page: what comes next must not be read from the log again
        late, self._late = self._late, ()
        return [*ready, *late]

    def _last_words(self, alone: Channel) -> Sequence[Chunk]:
        """The session is gone, and its log with it; that it is gone is all that is left to tell."""
        alone.take([self._feed.end] if self._feed.end is not None else [])
        self.close()
        return alone.chunks


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
        self.draining = False
        """Whether the server is about to stop: who watches a session at rest is let go."""
        self.rests: Callable[[str], bool] = lambda session_id: True
        self.unsettled: Callable[[str], bool] = lambda session_id: False
        """Whether records of the session are on their way into the log."""
        self._feeds: dict[str, Feed] = {}
        self._deserted = asyncio.Event()

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
        if not feed.subscribers and self._feeds.get(feed.session_id) is feed:
            del self._feeds[feed.session_id]
        if not self.subscribers:
            self._deserted.set()

    def is_watched(self, session_id: str) -> bool:
        return session_id in self._feeds

    @property
    def watched(self) -> Sequence[str]:
        return tuple(self._feeds)

    def head_of(self, session_id: str) -> int | None:
        """Up to where those who watch have been told; None if nobody does."""
        feed = self._feeds.get(session_id)
        return None if feed is None else feed.head

    def tear(self, session_id: str) -> None:
        """What comes next in the session cannot be told here: those who watch are cut."""
        feed = self._feeds.pop(session_id, None)
        if feed is not None:
            feed.torn = True
            feed.wake()

    def tear_all(self) -> None:
        for session_id in self.watched:
            self.tear(session_id)

    def publish(self, records: Sequence[Record]) -> None:
        """These are in the log for good."""
        feed = self._feeds.get(records[0].session_id)
        if feed is not None:
            feed.publish(records)

    def drain(self) -> None:
        """Let those go who have been told all of a session at rest; the others when theirs rests."""
        self.draining = True
        for feed in self._feeds.values():
            feed.wake()

    async def deserted(self) -> None:
        """Wait until nobody watches any more."""
        self._deserted.clear()
        if self.subscribers:
            await self._deserted.wait()

    # -- what is held back for a while ----------------------------------------------------------------------------

    def is_time(self, feed: Feed, due: float | None) -> bool:
        """Whether what was held back leaves now.

        What is on its way into the log may have been said before that time, and would have been told with it: so that
        a reader who comes later is told the same, it is waited for.
        """
        return due is not None and due <= self.clock() and not self.unsettled(feed.session_id)

    def time_of(self, feed: Feed, due: float | None) -> float | None:
        """When to look again, in the loop's time, if no news comes first; what is on its way is news to come."""
        if due is None or self.unsettled(feed.session_id):
            return None
        return asyncio.get_running_loop().time() + max(0.0, due - self.clock())
