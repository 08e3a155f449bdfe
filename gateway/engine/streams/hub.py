"""The hub: one feed per session that is watched; the subscribers of a feed share the frames of each dialect."""

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from typing import Protocol

import gateway.model as m
from gateway import ports
from gateway.ports import Chunk, EventLog, FramePlace, Projector, StreamKey, StreamOptions
from gateway.quotas import Quotas, QuotaSlot
from gateway.time_slices import sliced

from .channel import Channel
from .cursor import PAGE, SEQ, Cursor, feed_channel
from .feed import Feed
from .snapshots import Snapshots

PAGE_WITHOUT_DELTAS = 2 * PAGE
"""How many records of the log a page spans whose deltas are left out."""


class SessionActivity(Protocol):
    """What the hub asks about sessions."""

    def is_idle(self, session_id: str) -> bool:
        """Whether nothing will happen in the session unless a client sends something."""
    def has_unstored_records(self, session_id: str) -> bool:
        """Whether records of the session may be on their way into the log."""
    def turn_start(self, session_id: str, cursor: int) -> int:
        """After which record to begin reading, so that the turn at the cursor is read from its start."""


class StreamTypes(Protocol):
    """The dialects that are served, as the hub sees them."""

    def projector(self, dialect: str, options: StreamOptions) -> Projector:
        """A new projector of this dialect."""
    def replays_turn(self, dialect: str) -> bool:
        """Whether its projectors need only the records of the turn; the others need all records of the session."""


class StreamObserver(Protocol):
    """Counts frames and subscribers; nothing depends on it."""

    def events(self, dialect: str, count: int) -> None: ...
    def subscribed(self, change: int) -> None: ...
    def cut(self) -> None: ...
    @property
    def counted_events(self) -> Collection[type[m.Event]]:
        """The events whose records are counted; deltas are not among them."""
    def count_record(self, key: StreamKey, record: m.Record, is_sent: bool) -> None:
        """A record was projected; `is_sent` says whether the dialect had a frame for it."""


class Hub:
    """The feeds of all sessions that have subscribers."""

    def __init__(
        self, *, log: EventLog, sessions: SessionActivity, streams: StreamTypes, observer: StreamObserver,
        clock: Callable[[], float], max_lag: Callable[[], int],
    ) -> None:
        self.log = log
        self._sessions = sessions
        self._streams = streams
        self.projector = streams.projector
        self.rests = sessions.is_idle
        self.clock = clock
        self.observer = observer
        self.max_lag = max_lag
        self.subscribers = 0
        self.places = 0
        """How many subscribers there are, or are about to be."""
        self.draining = False
        """Whether the server is about to stop: streams of idle sessions end."""
        self.feeds: dict[str, Feed] = {}
        """By session: what its subscribers share."""
        self.snapshots = Snapshots()
        self._deserted = asyncio.Event()

    def reserve_slot(self, owner: str, tally: Quotas) -> QuotaSlot:
        """Reserve room for one subscriber."""
        slot = tally.reserve_stream(owner)
        self.places += 1
        slot.on_close(self._give_place_back)
        return slot

    def _give_place_back(self) -> None:
        self.places -= 1

    def subscribe(
        self, session_id: str, head: int, dialect: str, options: StreamOptions, after: int, place: ports.StreamSlot
    ) -> Cursor:
        feed = self.feeds.get(session_id)
        if feed is None:
            feed = self.feeds[session_id] = Feed(session_id, head)
        feed.subscribers += 1
        feed.watchers[dialect] += 1
        self.subscribers += 1
        self.observer.subscribed(+1)
        return Cursor(self, feed, StreamKey(dialect, options), after, place)

    async def read(
        self, session_id: str, dialect: str, options: StreamOptions, after: int, upto: int,
    ) -> AsyncIterator[Chunk]:
        """The chunks of the records after `after` and up to `upto`, read from the log in pages."""
        key = StreamKey(dialect, options)
        channel = Channel(self.projector(dialect, options))
        await self.recall(channel, session_id, key, after)
        origin, frames = self.snapshots.counted(session_id, key, after)
        while channel.seq < upto:
            if options.reads_deltas:
                if channel.seq > after:
                    self.snapshots.add(session_id, key, channel, FramePlace(origin, frames))
                records = await self.log.read(session_id, channel.seq, min(PAGE, upto - channel.seq))
                end = records[-1].seq if records else upto
            else:
                end = min(channel.seq + PAGE_WITHOUT_DELTAS, upto)
                records = await self.log.read_without_deltas(session_id, channel.seq, end)
            had = bisect_right(records, after, key=SEQ)
            channel.skip(records[:had])
            await feed_channel(channel, records[had:])
            channel.seq = end
            ready, channel.chunks = channel.chunks, []
            for chunk in ready:
                frames += len(chunk.frames)
                yield chunk

    async def recall(self, channel: Channel, session_id: str, key: StreamKey, cursor: int) -> None:
        """Bring a new channel to the start of the turn at the cursor, or to a snapshot between the two.

        What a projector needs of earlier turns is in their records without deltas, of which there are few.
        """
        start, replays_turn = self._sessions.turn_start(session_id, cursor), self._streams.replays_turn(key.dialect)
        if self.snapshots.streams:
            snapshot = self.snapshots.latest(session_id, key, start, cursor, of_turn=replays_turn)
            if snapshot is not None:
                snapshot.restore(channel)
        if channel.seq >= start:
            return
        if not replays_turn:
            async for some in sliced(await self.log.read_without_deltas(session_id, channel.seq, start), PAGE):
                channel.skip(some)
            channel.seq = start
            self.snapshots.add(session_id, key, channel, FramePlace(start, 0), is_between_turns=True)
        channel.seq = start

    def resume_place(
        self, session_id: str, dialect: str, options: StreamOptions, after: int, had: int,
    ) -> FramePlace:
        """Where a stream can begin for a client that has had so many frames of the records after `after`."""
        place = self.snapshots.place(session_id, StreamKey(dialect, options), after, had)
        is_same_turn = self._sessions.turn_start(session_id, place.after) <= after
        return place if is_same_turn or not self._streams.replays_turn(dialect) else FramePlace(after, had)

    def leave(self, feed: Feed, dialect: str, place: ports.StreamSlot) -> None:
        place.close()
        feed.subscribers -= 1
        feed.watchers[dialect] -= 1
        self.subscribers -= 1
        self.observer.subscribed(-1)
        if not feed.subscribers and self.feeds.get(feed.session_id) is feed:
            del self.feeds[feed.session_id]
        if not self.subscribers:
            self._deserted.set()

    def watchers(self, session_id: str) -> set[str]:
        """The streams of clients that watch a session on this server, by the names of their dialects."""
        feed = self.feeds.get(session_id)
        return set() if feed is None else {dialect for dialect, count in feed.watchers.items() if count}

    def is_watched(self, session_id: str) -> bool:
        return session_id in self.feeds

    @property
    def watched(self) -> Sequence[str]:
        return tuple(self.feeds)

    def head_of(self, session_id: str) -> int | None:
        """The last record that was published to the subscribers of a session; None if it has none."""
        feed = self.feeds.get(session_id)
        return None if feed is None else feed.head

    def cut_session(self, session_id: str) -> None:
        """Cut the subscribers of a session whose next records cannot be published here."""
        self.snapshots.forget(session_id)
        feed = self.feeds.pop(session_id, None)
        if feed is not None:
            feed.is_cut = True
            feed.wake()

    def cut_all(self) -> None:
        """Cut the subscribers of all sessions, and forget all snapshots."""
        self.snapshots.streams.clear()
        for session_id in self.watched:
            self.cut_session(session_id)

    def cut(self, concerns: Callable[[str], bool]) -> None:
        """Cut the subscribers of those sessions of which this is true, and forget the snapshots of all of them."""
        for session_id in {session_id for session_id, _ in self.snapshots.streams if concerns(session_id)}:
            self.snapshots.forget(session_id)
        for session_id in filter(concerns, self.watched):
            self.cut_session(session_id)

    def publish(self, records: Sequence[m.Record]) -> None:
        """Publish records that are stored."""
        feed = self.feeds.get(records[0].session_id)
        if feed is not None:
            feed.publish(records)
        if type(records[-1].event) is m.SessionClosed:
            self.snapshots.forget(records[-1].session_id)

    def drain(self) -> None:
        """End the streams of idle sessions; the others end when their session is idle."""
        self.draining = True
        for feed in self.feeds.values():
            feed.wake()

    async def wait_until_unwatched(self) -> None:
        """Wait until there are no subscribers."""
        self._deserted.clear()
        if self.subscribers:
            await self._deserted.wait()

    # -- frames that are held back --------------------------------------------------------------------------------

    def is_time(self, feed: Feed, due: float | None) -> bool:
        """Whether frames that were held back until `due` are released now.

        Records that are not stored yet may be older than `due`, and their frames may belong to the held frames. The hub
        waits for these records, so that a client that reads the log later gets equal frames.
        """
        return due is not None and due <= self.clock() and not self._sessions.has_unstored_records(feed.session_id)

    def time_of(self, feed: Feed, due: float | None) -> float | None:
        """When to look again, in the time of the loop, if no record comes first; None if records are on their way."""
        if due is None or self._sessions.has_unstored_records(feed.session_id):
            return None
        return asyncio.get_running_loop().time() + max(0.0, due - self.clock())
