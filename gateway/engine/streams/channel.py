"""One dialect's reading of one session: frames are made once, and kept for the slower readers within bounds."""

from collections.abc import Callable, Sequence
from typing import Protocol

import gateway.model as m
from gateway.ports import Chunk, Projector, SkippingProjector
from gateway.time_slices import SLICE_ITEMS

KEPT_CHUNKS = 2048
"""When twice as many chunks are kept, it is looked who still wants them."""
KEPT_BYTES = 16 * 1024 * 1024
"""How much of one reading of a session is kept for its slower readers; who is further behind reads the log instead."""
GROUP, LARGE = 8, 64 * 1024
"""After so many records it is looked at the last frame; one of more bytes than that takes a while to make."""
CHUNK_BYTES = 300
"""What a chunk takes beside its bytes."""

_TURN_YIELDS = frozenset((m.TurnEnded, m.TurnSuspended))


class ChannelReader(Protocol):
    """All that a channel knows of those who read it."""

    @property
    def reserve_stream(self) -> int:
        """How many of its chunks they have had."""


class Channel:
    """One dialect's reading of one session, made once for all who watch it with the same options."""

    def __init__(self, outbound: Projector, seq: int, unsaid: Callable[[m.Record], None]) -> None:
        self.outbound = outbound
        self.unsaid = unsaid
        self.seq = seq
        self.base = 0
        self.chunks: list[Chunk] = []
        self.readers: set[ChannelReader] = set()
        self.bytes = 0
        self._look_at = 2 * KEPT_CHUNKS
        self._large = False
        """Whether the last frame was a large one."""

    @property
    def end(self) -> int:
        return self.base + len(self.chunks)

    def feed(self, records: Sequence[m.Record]) -> None:
        feed, chunks, before = self.outbound.feed, self.chunks, len(self.chunks)
        for record in records:
            frames, kind = feed(record), type(record.event)
            if kind is m.BlockDelta:  # nine records of ten
                if frames:
                    chunks.append(Chunk(record.seq, frames, False))
            elif frames or kind in _TURN_YIELDS:
                chunks.append(Chunk(record.seq, frames, kind in _TURN_YIELDS, kind is m.TurnEnded))
            else:
                self.unsaid(record)
        if records:
            self.seq = records[-1].seq
        if len(self.readers) > 1:
            self.bytes += size_of(chunks[before:])

    def take_some(self, records: Sequence[m.Record], most: int = SLICE_ITEMS) -> int:
        """Take in as many as one slice of time has room for; how many those were.

        A frame may hold all that was said so far: where frames have grown large, few of them are a slice.
        """
        taken, most = 0, min(most, len(records))
        while taken < most:
            group, before = 1 if self._large else GROUP, len(self.chunks)
            self.feed(records[taken:taken + group])
            taken += group
            if len(self.chunks) > before and self.chunks[-1].frames:
                self._large = len(self.chunks[-1].frames[0]) > LARGE
                if self._large:
                    break
        return min(taken, len(records))

    def skip(self, records: Sequence[m.Record]) -> None:
        """Take in what the reader has had already; nobody wants the frames of it."""
        if records:
            skip = self.outbound.skip if isinstance(self.outbound, SkippingProjector) else self.outbound.feed
            for record in records:
                skip(record)
            self.seq = records[-1].seq

    def flush(self, now: float) -> None:
        if frames := self.outbound.flush(now):
            self.chunks.append(Chunk(self.seq, frames, False, due=now))
            self.bytes += size_of(self.chunks[-1:]) if len(self.readers) > 1 else 0

    def catch_up(self, other: "Channel") -> list[Chunk]:
        """What the other, which has taken in as much, has let go already, and we still hold back."""
        before: float | None = None
        while (due := self.outbound.deadline) not in (None, before, other.outbound.deadline):
            self.flush(due)
            before = due
        ready, self.chunks = self.chunks, []
        return ready

    def add_reader(self, reader: ChannelReader) -> None:
        self.readers.add(reader)
        if len(self.readers) == 2:
            self.bytes = size_of(self.chunks)  # from now on it is kept, and counted

    def since(self, place: int) -> Sequence[Chunk]:
        """The chunks from that place on; for a lone reader no copy is made, because it is left the list itself."""
        return self.chunks if place <= self.base and len(self.readers) == 1 else self.chunks[place - self.base:]

    def drop_delivered(self) -> None:
        """A lone reader leaves nothing behind; several leave what the slower ones have not had, within bounds."""
        if len(self.readers) == 1:
            self.base, self.chunks, self.bytes = self.end, [], 0
        elif len(self.chunks) > self._look_at or self.bytes > KEPT_BYTES:
            self._drop(min(reader.reserve_stream for reader in self.readers) - self.base)
            if self.bytes > KEPT_BYTES:
                self._drop(len(self.chunks) // 2)  # who is there reads the log instead
            self._look_at = 2 * max(KEPT_CHUNKS, len(self.chunks))

    def _drop(self, count: int) -> None:
        if count > 0:
            self.bytes -= size_of(self.chunks[:count])
            self.base, self.chunks = self.base + count, self.chunks[count:]


def size_of(chunks: Sequence[Chunk]) -> int:
    """About how many bytes they take."""
    return sum(CHUNK_BYTES + sum(map(len, chunk.frames)) for chunk in chunks)
