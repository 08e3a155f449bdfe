"""One projection of one session: frames are made once, and kept within bounds for the slower readers."""

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

import gateway.model as m
from gateway.ports import Chunk, Projector, SkippingProjector
from gateway.time_slices import SLICE_ITEMS

KEPT_CHUNKS = 2048
"""When twice as many chunks are kept, those that every reader has had are dropped."""
KEPT_BYTES = 16 * 1024 * 1024
"""How many bytes of chunks are kept for the slower readers; a reader that is further behind reads the log instead."""
GROUP, LARGE = 8, 64 * 1024
"""After so many records the size of the last frame is checked; one of more bytes than that takes a while to make."""
CHUNK_BYTES = 300
"""The bytes that a chunk takes beside its frames."""

_TURN_YIELDS = frozenset((m.TurnEnded, m.TurnSuspended))


class ChannelReader(Protocol):
    """What a channel knows of one of its readers."""

    @property
    def place(self) -> int:
        """How many chunks of the channel the reader has had."""


class Channel:
    """One projector and the chunks it has made, for all who watch a session with the same dialect and options."""

    def __init__(
        self, projector: Projector, counted: Collection[type[m.Event]] = (),
        count: Callable[[m.Record, bool], None] | None = None,
    ) -> None:
        self.projector = projector
        self._counted, self._count = counted, count
        """Called with each record of these events, and whether the projector has a frame for it."""
        self.seq = 0
        self.base = 0
        """How many chunks were dropped already."""
        self.chunks: list[Chunk] = []
        self.readers: set[ChannelReader] = set()
        self.bytes = 0
        self._look_at = 2 * KEPT_CHUNKS
        self._large = False
        """Whether the last frame was large."""

    def feed(self, records: Sequence[m.Record]) -> None:
        feed, chunks, before = self.projector.feed, self.chunks, len(self.chunks)
        for record in records:
            frames, kind = feed(record), type(record.event)
            if kind is m.BlockDelta:  # nine records of ten
                if frames:
                    chunks.append(Chunk(record.seq, frames, False))
                continue
            has_chunk = bool(frames) or kind in _TURN_YIELDS
            if has_chunk:
                chunks.append(Chunk(record.seq, frames, kind in _TURN_YIELDS, kind is m.TurnEnded))
            if kind in self._counted and self._count is not None:
                self._count(record, has_chunk)
        if records:
            self.seq = records[-1].seq
        if len(self.readers) > 1:
            self.bytes += size_of(chunks[before:])

    def take_some(self, records: Sequence[m.Record], most: int = SLICE_ITEMS) -> int:
        """Project as many records as fit in one slice of time, and return how many those were.

        A frame may hold the whole text so far: where frames have grown large, few of them fill a slice.
        """
        taken, most = 0, min(most, len(records))
        while taken < most:
            group, before = 1 if self._large else GROUP, len(self.chunks)
            self.feed(records[taken:taken + group])
            taken += group
            if len(self.chunks) > before and self.chunks[-1].frames:
                self._large = len(self.chunks[-1].frames[0].body) > LARGE
                if self._large:
                    break
        return min(taken, len(records))

    def skip(self, records: Sequence[m.Record]) -> None:
        """Project records whose frames the reader has received; the frames are dropped."""
        if records:
            skip = self.projector.skip if isinstance(self.projector, SkippingProjector) else self.projector.feed
            for record in records:
                skip(record)
            self.seq = records[-1].seq

    def flush(self, now: float) -> None:
        if frames := self.projector.flush(now):
            self.chunks.append(Chunk(self.seq, frames, False, due=now))
            self.bytes += size_of(self.chunks[-1:]) if len(self.readers) > 1 else 0

    def catch_up(self, other: "Channel") -> list[Chunk]:
        """Release held frames that the other projector, which has equal records, has released already."""
        before: float | None = None
        while (due := self.projector.deadline) not in (None, before, other.projector.deadline):
            self.flush(due)
            before = due
        return self.take()

    def take(self) -> list[Chunk]:
        """Hand over all chunks to the only reader."""
        ready, self.chunks, self.bytes = self.chunks, [], 0
        self.base += len(ready)
        return ready

    def add_reader(self, reader: ChannelReader) -> None:
        self.readers.add(reader)
        if len(self.readers) == 2:
            self.bytes = size_of(self.chunks)  # from now on chunks are kept, and counted

    def drop_delivered(self) -> None:
        """Drop all chunks of a lone reader; of several readers keep, within bounds, what the slower have not had."""
        if len(self.readers) == 1:
            self.take()
        elif len(self.chunks) > self._look_at or self.bytes > KEPT_BYTES:
            self._drop(min(reader.place for reader in self.readers) - self.base)
            if self.bytes > KEPT_BYTES:
                self._drop(len(self.chunks) // 2)  # a reader that wants these reads the log instead
            self._look_at = 2 * max(KEPT_CHUNKS, len(self.chunks))

    def _drop(self, count: int) -> None:
        if count > 0:
            self.bytes -= size_of(self.chunks[:count])
            self.base, self.chunks = self.base + count, self.chunks[count:]


def size_of(chunks: Sequence[Chunk]) -> int:
    """About how many bytes these chunks take."""
    return sum(CHUNK_BYTES + sum([len(frame.body) for frame in chunk.frames]) for chunk in chunks)
